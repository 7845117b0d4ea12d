"""Reassignments in whole clusters, whose brokers copy the replicas."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka import Simulation
from fakekafka.protocol.admin import AlterPartitionReassignmentsRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import (
    CURRENT,
    ask,
    has_znode,
    in_zookeeper,
    running,
    stored,
    topic_znode,
)

TP = TopicPartition("t", 0)
ZNODE = "/admin/reassign_partitions"


def reassign(cluster: Simulation, *moves: tuple[TopicPartition, Any]) -> list[ErrorCode]:
    request = AlterPartitionReassignmentsRequest(moves)
    response = ask(cluster, cluster.controller.id or 0, request)
    assert response.error is ErrorCode.NONE
    return [error for _, error, _ in response.partitions]


def reassign_by_znode(cluster: Simulation, *target: int) -> None:
    in_zookeeper(cluster, lambda zk: zk.admin.create_partition_reassignment({TP: target}))


def moved(cluster: Simulation, *replicas: int) -> bool:
    """Return whether the topic's znode has these replicas and no pending reassignment."""
    znode = topic_znode(cluster)
    return znode["partitions"] == {"0": list(replicas)} and not (
        znode.get("adding_replicas") or znode.get("removing_replicas")
    )


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_partition_moves_by_znode_from_one_broker_to_another(version: str) -> None:
    """CP-138: the epoch is 3, the records are copied, and the old replica and the request znode are
    deleted.
    """
    with running(2, version, topics={"t": {"assignment": {0: [1]}}}) as cluster:
        cluster.produce("t", ["a", "b", "c"])
        reassign_by_znode(cluster, 2)
        cluster.run_until(lambda: not has_znode(cluster, ZNODE))
        assert stored(cluster) == (2, 3, [2])
        assert moved(cluster, 2)
        cluster.run_for(1000)
        assert [r.value for r in cluster.consume("t")] == [b"a", b"b", b"c"]
        assert cluster.processes[1].spec.disk.directory_of(TP) is None


@pytest.mark.parametrize("version", CURRENT)
def test_a_move_to_a_dead_broker_waits_for_it(version: str) -> None:
    """CP-140, CP-141: the request stays at epoch 1; after the start of the target the
    epoch is 4.
    """
    with running(2, version, topics={"t": {"assignment": {0: [1]}}}) as cluster:
        cluster.produce("t", "kept")
        cluster.broker(2).shutdown()
        cluster.run_for(1000)
        reassign_by_znode(cluster, 2)
        cluster.run_until(lambda: stored(cluster)[1] == 1)
        cluster.run_for(60_000)
        assert stored(cluster) == (1, 1, [1])
        assert topic_znode(cluster)["adding_replicas"] == {"0": [2]}
        assert has_znode(cluster, ZNODE)
        cluster.broker(2).start()
        cluster.run_until(lambda: not has_znode(cluster, ZNODE))
        assert stored(cluster) == (2, 4, [2])
        assert moved(cluster, 2)
        assert [r.value for r in cluster.consume("t")] == [b"kept"]


@pytest.mark.parametrize("version", CURRENT)
def test_a_new_leader_keeps_the_high_watermark(version: str) -> None:
    """CP-143: 123 records are visible before the added replica becomes leader, and after."""
    with running(4, version, topics={"t": {"assignment": {0: [1, 2, 3]}}}) as cluster:
        cluster.produce("t", [str(number) for number in range(123)])
        assert reassign(cluster, (TP, (4, 2, 3))) == [ErrorCode.NONE]
        cluster.run_until(lambda: moved(cluster, 4, 2, 3))
        view = cluster.partition("t", 0)
        assert (view.leader, view.high_watermark, view.log_end_offset) == (4, 123, 123)
        cluster.run_for(1000)
        assert len(cluster.consume("t")) == 123


@pytest.mark.parametrize("version", CURRENT)
@pytest.mark.parametrize("move", [(2,), None])
def test_an_unknown_partition_cannot_move(version: str, move: tuple[int, ...] | None) -> None:
    """CP-145: an unknown topic or partition is refused; a valid one beside it moves nevertheless.

    Cancelling has another error, as no reassignment is in progress there
    (docs/kafka/reassignment.md).
    """
    expected = (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if move else ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    )
    with running(2, version, topics={"t": {"assignment": {0: [1]}}}) as cluster:
        unknown = [TopicPartition("unknown", 0), TopicPartition("t", 1)]
        answers = reassign(cluster, (unknown[0], move), (TP, (2,)), (unknown[1], move))
        assert answers == [expected, ErrorCode.NONE, expected]
        cluster.run_until(lambda: moved(cluster, 2))


@pytest.mark.parametrize("version", CURRENT)
@pytest.mark.parametrize("target", [(1, 3), (1, -1), (2, 2), (), (1, 9)])
def test_an_impossible_target_is_refused(version: str, target: tuple[int, ...]) -> None:
    """CP-146: an added replica that is dead or unknown, a negative id, a duplicate, or an empty
    list.
    """
    with running(3, version, topics={"t": {"assignment": {0: [1]}}}) as cluster:
        cluster.broker(3).shutdown()
        cluster.run_for(1000)
        before = cluster.zookeeper.stat("/brokers/topics/t").mzxid
        assert reassign(cluster, (TP, target)) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert cluster.zookeeper.stat("/brokers/topics/t").mzxid == before
        assert stored(cluster) == (1, 0, [1])
        assert cluster.reassignments() == ()


@pytest.mark.parametrize("version", CURRENT)
def test_a_reassignment_may_keep_a_dead_replica(version: str) -> None:
    """CP-146: only added replicas have to be live."""
    with running(3, version, topics={"t": {"assignment": {0: [1, 3]}}}) as cluster:
        cluster.broker(3).shutdown()
        cluster.run_until(lambda: stored(cluster)[2] == [1])
        assert reassign(cluster, (TP, (3, 1))) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", CURRENT)
def test_reassigning_the_current_replicas_completes_at_once(version: str) -> None:
    """CP-149: the leader epoch rises by one, and the topic id stays."""
    with running(2, version, topics={"t": {"assignment": {0: [2]}}}) as cluster:
        topic_id = topic_znode(cluster)["topic_id"]
        assert reassign(cluster, (TP, (2,))) == [ErrorCode.NONE]
        cluster.run_until(lambda: stored(cluster) == (2, 1, [2]))
        assert moved(cluster, 2)
        assert topic_znode(cluster)["topic_id"] == topic_id
        assert cluster.reassignments() == ()
