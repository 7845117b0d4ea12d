"""A led partition with records, and fetches of several partitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    RequestContext,
)
from fakekafka.protocol.records.batch import whole_batches
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led


def filled(values: str = "abcdef", committed: int = 4, **more: Any) -> ReplicaCluster:
    """Return a cluster led by broker 0, one batch per value, with high watermark ``committed``."""
    cluster = led(**more)
    cluster.produce(0, *values)
    if len(cluster.replicas[TP]) > 1:
        cluster.fetch(0, committed, replica_id=1, log_start_offset=0)
    return cluster


def offsets(answer: FetchPartitionResponse) -> list[int]:
    return [batch.base_offset for batch in whole_batches(answer.records)]


def multi(
    cluster: ReplicaCluster,
    specs: Iterable[FetchPartition],
    broker: int = 0,
    replica_id: int = -1,
    context: RequestContext = INTERNAL_CONTEXT,
    **more: Any,
) -> list[FetchResponse]:
    """Fetch several partitions; return a list that gets the response."""
    answers: list[FetchResponse] = []
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more}
    cluster[broker].manager.fetch.fetch_messages(
        FetchRequest(replica_id=replica_id, partitions=tuple(specs), **values),
        context,
        answers.append,
    )
    return answers
