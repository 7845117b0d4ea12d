"""Brokers fail and return in whole clusters, seen from the other brokers."""

from __future__ import annotations

import pytest
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.control import (
    AlterIsrPartition,
    AlterIsrRequest,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.data import MetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.tests.support.whole_clusters import (
    CURRENT,
    ask,
    cached_partition_state,
    in_sync,
    in_zookeeper,
    running,
    stored,
    topic_znode,
)
from fakekafka.wire.kafka.registry import CODEC_RANGES

CONTROL_REQUESTS = (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)


@pytest.mark.parametrize(("version", "rise"), [("1.1", 1), ("2.8", 2), ("3.9", 2)])
def test_a_leader_that_was_also_the_controller_raises_the_epoch_twice(
    version: str, rise: int
) -> None:
    """CP-80: since 2.3 the new controller first removes the leader, then elects one."""
    config = {"unclean.leader.election.enable": True}
    with running(2, version, config=config, topics={"t": {"assignment": {0: [1, 2]}}}) as cluster:
        assert stored(cluster) == (1, 0, [1, 2])
        cluster.broker(1).shutdown()
        cluster.run_until(lambda: stored(cluster)[0] == 2)
        assert stored(cluster) == (2, rise, [2])
        cluster.broker(1).start()
        in_sync(cluster, 1, 2)
        assert cluster.controller.id == 2
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[0] == 1)
        assert stored(cluster) == (1, 2 * rise, [1])


@pytest.mark.parametrize("version", CURRENT)
def test_a_new_partition_starts_without_its_dead_replica(version: str) -> None:
    """CP-84: if the topic's znode grows while the first replica is down, the next one leads."""
    with running(2, version, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        cluster.broker(2).shutdown()
        cluster.run_until(lambda: stored(cluster)[0] == 1)
        replicas = {TopicPartition("t", p): ReplicaAssignment((2, 1)) for p in (0, 1)}
        topic_id = topic_znode(cluster)["topic_id"]
        in_zookeeper(cluster, lambda zk: zk.topics.set_topic_assignment("t", topic_id, replicas))
        cluster.run_until(lambda: cached_partition_state(cluster, 1, partition=1) is not None)
        assert stored(cluster, "t", 1) == (1, 0, [1])


@pytest.mark.parametrize("version", CURRENT)
def test_a_stopped_follower_is_offline_for_everyone_until_it_returns(version: str) -> None:
    """CP-109: the replicas stay, the ISR shrinks, and other partitions are untouched."""
    topics = {"t": {"assignment": {0: [2, 3], 1: [2, 1]}}}
    with running(3, version, topics=topics) as cluster:
        cluster.broker(3).shutdown()
        in_sync(cluster, 2)
        for at in (1, 2):
            moved, untouched = (
                cached_partition_state(cluster, at),
                cached_partition_state(cluster, at, partition=1),
            )
            assert (moved.replicas, moved.isr, moved.offline_replicas) == ((2, 3), (2,), (3,))
            assert (untouched.isr, untouched.leader_epoch) == ((2, 1), 0)
            assert untouched.offline_replicas == ()
        cluster.broker(3).start()
        in_sync(cluster, 2, 3)
        for at in (1, 2, 3):
            moved = cached_partition_state(cluster, at)
            assert (moved.isr, moved.offline_replicas) == ((2, 3), ())


@pytest.mark.parametrize("version", CURRENT)
def test_a_partition_of_a_broker_that_stays_down_is_shown_without_leader(version: str) -> None:
    """CP-110: after all brokers stopped and the controller returned first, a client still sees
    replicas and ISR.
    """
    with running(3, version, topics={"t": {"assignment": {0: [3]}}}) as cluster:
        for broker_id in (2, 3, 1):
            cluster.broker(broker_id).shutdown()
        for broker_id in (1, 2):
            cluster.broker(broker_id).start()
            cluster.run_until(lambda: cached_partition_state(cluster, 1) is not None)
            cluster.run_for(1000)
        for at in (1, 2):
            (topic,) = ask(cluster, at, MetadataRequest(("t",), False)).topics
            (partition,) = topic.partitions
            assert partition.error is ErrorCode.LEADER_NOT_AVAILABLE
            assert partition.leader == -1
            assert (partition.replicas, partition.isr) == ((3,), (3,))
            assert partition.offline_replicas == (3,)


@pytest.mark.parametrize(
    ("version", "is_noticed"), [("0.10", False), ("1.1", False), ("2.8", True), ("3.9", True)]
)
def test_a_broker_that_bounces_unnoticed_gets_its_state_again(
    version: str, is_noticed: bool
) -> None:
    """CP-113: the broker epoch reveals the restart; before 2.2 it went unnoticed (KIP-380)."""
    with running(3, version, topics={"t": {"assignment": {0: [1, 2]}}}) as cluster:
        cluster.broker(1).pause()  # the controller, less long than its session lasts
        cluster.broker(2).shutdown()
        cluster.broker(2).start()
        cluster.run_for(500)
        assert cached_partition_state(cluster, 2) is None, "nobody told it anything yet"
        cluster.broker(1).resume()
        cluster.run_for(500)
        broker = cluster.processes[2].broker
        assert broker is not None
        hosted = broker.replica_manager.hosted.partition(TopicPartition("t", 0))
        if is_noticed:
            in_sync(cluster, 1, 2)
            assert hosted is not None
            assert not hosted.is_leader
            assert cached_partition_state(cluster, 2).leader == 1
            assert [b.id for b in broker.metadata_cache.alive_brokers()] == [1, 2, 3]
        else:
            assert hosted is None
            assert cached_partition_state(cluster, 2) is None


def test_control_requests_come_by_no_listener_of_clients() -> None:
    """CP-114: control requests use a separate plane, which no listener of clients offers.

    Listeners of clients offer the requests of brokers to the controller, as in Kafka, but refuse
    them to clients.
    """
    with running(2, topics={"t": {"assignment": {0: [2, 1]}}}) as cluster:
        seen: list[Delivery] = []
        cluster.observe(lambda d: seen.append(d) if not d.is_reply else None)
        cluster.broker(2).shutdown()
        cluster.broker(2).start()
        in_sync(cluster, 1, 2)
        control = [d for d in seen if isinstance(d.message, CONTROL_REQUESTS)]
        assert {type(d.message) for d in control} >= {LeaderAndIsrRequest, UpdateMetadataRequest}
        assert {(d.sender.name, d.context) for d in control} == {("controller-1", None)}
        before = stored(cluster)
        for broker_id, epoch in ((9, 0), (2, -1)):
            shrink = AlterIsrPartition(TopicPartition("t", 0), before[1], (2,), 0)
            refused = ask(cluster, 1, AlterIsrRequest(broker_id, epoch, (shrink,)))
            assert refused.error is ErrorCode.STALE_BROKER_EPOCH
        assert stored(cluster) == before
    assert set(CODEC_RANGES).isdisjoint({4, 5, 6, 7})
