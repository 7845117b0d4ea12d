"""Appending records to a replica manager as a produce request does."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    RequestContext,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster


def send(
    cluster: ReplicaCluster,
    records: bytes | None,
    acks: int = 1,
    broker: int = 0,
    tp: TopicPartition = TP,
    context: RequestContext = INTERNAL_CONTEXT,
    **more: Any,
) -> ProducePartitionResponse:
    """Append records; return the partition's response, which must come at once."""
    answers = send_async(cluster, records, acks, broker, tp, context, **more)
    assert answers, "no answer yet"
    return answers[0]


def send_async(
    cluster: ReplicaCluster,
    records: bytes | None,
    acks: int = 1,
    broker: int = 0,
    tp: TopicPartition = TP,
    context: RequestContext = INTERNAL_CONTEXT,
    **more: Any,
) -> list[ProducePartitionResponse]:
    """Append records; return a list that gets the partition's response."""
    answers: list[ProducePartitionResponse] = []
    cluster[broker].manager.produce.append_records(
        ProduceRequest(acks, 1000, (ProducePartition(tp, records),)),
        context,
        lambda r: answers.extend(r.partitions),
        **more,
    )
    return answers
