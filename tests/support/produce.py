"""Appending records to a replica manager as a produce request does."""

from __future__ import annotations

from fakekafka.protocol.data import INTERNAL_CONTEXT, ProducePartition, ProduceRequest
from fakekafka.tests.support.replica_cluster import TP


def send(cluster, records, acks=1, broker=0, tp=TP, context=INTERNAL_CONTEXT, **more):
    answers = []
    cluster[broker].manager.append_records(
        ProduceRequest(acks, 1000, (ProducePartition(tp, records),)),
        context,
        lambda r: answers.extend(r.partitions),
        **more,
    )
    return answers[0] if answers else None
