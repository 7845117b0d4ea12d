"""A led partition with records, and fetches of several partitions."""

from __future__ import annotations

from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    FetchRequest,
)
from fakekafka.protocol.records.batch import whole_batches
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led


def filled(values: str = "abcdef", committed: int = 4, **more) -> ReplicaCluster:
    """Broker 0 leads; each value is a batch; the high watermark is ``committed``."""
    cluster = led(**more)
    cluster.produce(0, *values)
    if len(cluster.replicas[TP]) > 1:
        cluster.fetch(0, committed, replica_id=1, log_start_offset=0)
    return cluster


def offsets(answer) -> list[int]:
    return [batch.base_offset for batch in whole_batches(answer.records)]


def multi(cluster, specs, broker=0, replica_id=-1, context=INTERNAL_CONTEXT, **more):
    """A fetch of several partitions; the response, or None while it waits."""
    answers = []
    values = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **more}
    cluster[broker].manager.fetch_messages(
        FetchRequest(replica_id=replica_id, partitions=tuple(specs), **values),
        context,
        answers.append,
    )
    return answers
