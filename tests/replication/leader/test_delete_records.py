"""Deleting records: the log start moves, and every replica has to follow."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import INTERNAL_CONTEXT, DeleteRecordsRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, led

NOWHERE = TopicPartition("nowhere", 0)


def deleted(
    cluster: ReplicaCluster,
    offset: int,
    tp: TopicPartition = TP,
    broker: int = 0,
    timeout_ms: int = 1000,
) -> Any:
    answers: list[Any] = []
    cluster[broker].manager.offsets.delete_records(
        DeleteRecordsRequest(timeout_ms, ((tp, offset),)),
        INTERNAL_CONTEXT,
        lambda r: answers.extend((error, low) for _, error, low in r.partitions),
    )
    return answers


def ten(brokers: int = 1, committed: int = 10, **more: Any) -> ReplicaCluster:
    cluster = led(brokers=brokers, **more)
    cluster.produce(0, *"abcdefghij")
    for replica_id in range(1, brokers):
        cluster.fetch(0, committed, replica_id=replica_id, log_start_offset=0)
    return cluster


def test_delete_records_single_replica() -> None:
    """DP-136: the low watermark is 5 at once; -1 means the high watermark; a second request changes
    nothing."""
    cluster = ten()
    assert deleted(cluster, 5) == [(ErrorCode.NONE, 5)]
    assert cluster[0].log().log_start_offset == 5
    assert deleted(cluster, 3) == [(ErrorCode.NONE, 5)]
    assert deleted(cluster, -1) == [(ErrorCode.NONE, 10)]
    assert cluster.fetch(0, 9)[0].error is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("offset", [-2, 9, 11])
def test_delete_records_out_of_range(offset: int) -> None:
    """DP-136, DP-28: beyond the high watermark, or below -1, is OFFSET_OUT_OF_RANGE."""
    cluster = ten(brokers=2, committed=8)
    assert deleted(cluster, offset) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert cluster[0].log().log_start_offset == 0


def test_delete_records_waits_for_the_replicas() -> None:
    """The answer waits until every live replica raised its log start."""
    cluster = ten(brokers=3)
    answers = deleted(cluster, 5)
    assert answers == []
    cluster.fetch(0, 10, replica_id=1, log_start_offset=5)
    assert answers == []
    cluster.fetch(0, 10, replica_id=2, log_start_offset=5)
    assert answers == [(ErrorCode.NONE, 5)]


def test_delete_records_ignores_dead_replicas() -> None:
    """A replica on a dead broker is not awaited; it learns the log start when it returns."""
    cluster = ten(brokers=2)
    cluster[1].kill()
    cluster.update_metadata()
    assert deleted(cluster, 5) == [(ErrorCode.NONE, 5)]
    cluster[1].start()
    cluster.announce()
    cluster.leader_and_isr(1)
    cluster.replicate(1)
    assert cluster[1].log().log_start_offset == 5


def test_delete_records_times_out() -> None:
    """Without the replicas' answers the request gets REQUEST_TIMED_OUT with low watermark -1."""
    cluster = ten(brokers=2)
    answers = deleted(cluster, 5, timeout_ms=100)
    cluster.clock.advance(100)
    assert answers == [(ErrorCode.REQUEST_TIMED_OUT, -1)]


def test_delete_records_loses_its_leader() -> None:
    """A waiting delete answers 6 when leadership moves."""
    cluster = ten(brokers=2)
    answers = deleted(cluster, 5)
    cluster.elect(1)
    assert answers == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_delete_records_refusals() -> None:
    """Refusals: internal topics 17, compacted topics 44, unknown topics 3, partitions led elsewhere
    6."""
    cluster = ten(brokers=2)
    internal = TopicPartition("__consumer_offsets", 0)
    cluster.create((0,), internal)
    assert deleted(cluster, 0, internal) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert deleted(cluster, 0, NOWHERE) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert deleted(cluster, 0, broker=1) == [(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    compacted = led(brokers=1, topic={"cleanup.policy": "compact"})
    assert deleted(compacted, 0) == [(ErrorCode.POLICY_VIOLATION, -1)]


def test_followers_learn_the_log_start_from_fetches() -> None:
    """A real follower raises its log start from the fetch answer, which completes the request."""
    cluster = led(brokers=2)
    cluster.produce(0, *"abcdef")
    cluster.replicate(1)
    answers = deleted(cluster, 4, timeout_ms=100000)
    cluster.replicate(1)
    assert cluster[1].log().log_start_offset == 4
    assert answers == [(ErrorCode.NONE, 4)]
