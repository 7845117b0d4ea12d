"""Elections requested by znode, by API or by timer, on whole clusters."""

from __future__ import annotations

import pytest
from fakekafka import Simulation
from fakekafka.protocol.admin import PREFERRED, UNCLEAN, ElectLeadersRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import (
    CURRENT,
    ask,
    cached_partition_state,
    has_znode,
    in_sync,
    in_zookeeper,
    running,
    stored,
)

TP = TopicPartition("t", 0)
ZNODE = "/admin/preferred_replica_election"
TWO_ONE = {"t": {"assignment": {0: [2, 1]}}}

Answers = dict[TopicPartition, tuple[ErrorCode, str | None]]


def elect(cluster: Simulation, kind: int, *partitions: TopicPartition) -> Answers:
    """Send ElectLeaders to the controller; no partitions means all."""
    request = ElectLeadersRequest(kind, partitions or None)
    response = ask(cluster, cluster.controller.id or 0, request)
    assert response.error is ErrorCode.NONE
    return {tp: (error, text) for tp, error, text in response.partitions}


def bounce(cluster: Simulation, broker_id: int = 2) -> None:
    """Stop the preferred leader until it is replaced, and start it again until it is in sync."""
    leader_epoch = stored(cluster)[1]
    cluster.broker(broker_id).shutdown()
    cluster.run_until(lambda: stored(cluster)[1] == leader_epoch + 1)
    cluster.broker(broker_id).start()
    in_sync(cluster, 1, 2)


def elect_by_znode(cluster: Simulation) -> None:
    in_zookeeper(cluster, lambda zk: zk.admin.create_preferred_replica_election([TP]))
    cluster.run_until(lambda: not has_znode(cluster, ZNODE))


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_election_znode_can_be_used_repeatedly(version: str) -> None:
    """CP-120, CP-121: the watch is set again; two failures and two elections lead to epoch 4."""
    with running(2, version, topics=TWO_ONE) as cluster:
        for turn in (1, 2):
            bounce(cluster)
            assert stored(cluster)[:2] == (1, 2 * turn - 1)
            elect_by_znode(cluster)
            assert stored(cluster)[:2] == (2, 2 * turn)
        cluster.run_for(100)
        assert cached_partition_state(cluster, 1).leader == 2


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_the_election_znode_is_deleted_although_the_preferred_replica_is_down(version: str) -> None:
    """CP-122: the request is dropped, and leadership stays with epoch 1."""
    with running(2, version, topics=TWO_ONE) as cluster:
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[:2] == (1, 1))
        elect_by_znode(cluster)
        assert stored(cluster) == (1, 1, [1])


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_leadership_returns_by_itself_with_the_rebalance_timer(version: str) -> None:
    """CP-123: with a check every second the preferred replica leads again with epoch 2."""
    config = {"auto.leader.rebalance.enable": True, "leader.imbalance.check.interval.seconds": 1}
    with running(2, version, config=config, topics=TWO_ONE) as cluster:
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[:2] == (1, 1))
        cluster.run_for(10_000)
        assert stored(cluster)[:2] == (1, 1)
        cluster.broker(2).start()
        cluster.run_until(lambda: stored(cluster)[:2] == (2, 2))
        cluster.run_for(10_000)
        assert stored(cluster)[:2] == (2, 2)


@pytest.mark.parametrize("version", CURRENT)
def test_a_partition_that_does_not_exist_does_not_hinder_the_others(version: str) -> None:
    """CP-126: each partition has its own answer."""
    with running(2, version, topics=TWO_ONE) as cluster:
        bounce(cluster)
        topic, number = TopicPartition("unknown", 0), TopicPartition("t", 7)
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        assert elect(cluster, PREFERRED, topic, TP, number) == {
            topic: unknown,
            TP: (ErrorCode.NONE, None),
            number: unknown,
        }
        assert stored(cluster)[:2] == (2, 2)


@pytest.mark.parametrize("version", CURRENT)
def test_a_preferred_replica_that_is_down_cannot_be_elected(version: str) -> None:
    """CP-127: the error names the strategy, and the leader stays."""
    with running(2, version, topics=TWO_ONE) as cluster:
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[:2] == (1, 1))
        error, text = elect(cluster, PREFERRED, TP)[TP]
        assert error is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert text is not None
        assert "t-0" in text
        assert "PreferredReplicaPartitionLeaderElectionStrategy" in text
        assert stored(cluster) == (1, 1, [1])


@pytest.mark.parametrize("version", CURRENT)
def test_an_unclean_election_needs_a_live_replica(version: str) -> None:
    """CP-130: without a live replica nothing changes."""
    topics = {"t": {"assignment": {0: [2, 3]}}, "healthy": {"assignment": {0: [1]}}}
    with running(3, version, topics=topics) as cluster:
        for broker_id in (2, 3):
            cluster.broker(broker_id).shutdown()
        cluster.run_until(lambda: stored(cluster) == (-1, 2, [3]))
        error, text = elect(cluster, UNCLEAN, TP)[TP]
        assert error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert text is not None
        assert "t-0" in text
        assert stored(cluster) == (-1, 2, [3])
        assert elect(cluster, UNCLEAN) == {TP: (error, text)}, "of all, only those that failed"


@pytest.mark.parametrize("version", CURRENT)
def test_unclean_elections_of_unknown_partitions_are_refused(version: str) -> None:
    """CP-131: this holds for an unknown topic and for an unknown partition of a known one."""
    with running(2, version, topics=TWO_ONE) as cluster:
        unknown = [TopicPartition("unknown", 0), TopicPartition("t", 1)]
        answers = elect(cluster, UNCLEAN, *unknown)
        assert list(answers) == unknown
        for error, text in answers.values():
            assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert text == "The partition does not exist."
        assert stored(cluster) == (2, 0, [2, 1])
