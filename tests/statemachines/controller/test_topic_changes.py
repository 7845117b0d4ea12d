"""Topics appear and change; metrics and features of the controller."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.admin import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import (
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.znode_payloads import FeatureZnode
from fakekafka.statemachines.controller.events import ControlledShutdown, UpdateFeatures
from fakekafka.statemachines.machines.transitions import PartitionState, ReplicaState
from fakekafka.statemachines.zookeeper.errors import ControllerMoved
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


def stored_topic_id(cluster: ControllerCluster) -> str | None:
    [topic] = run_now(cluster.zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t"]))
    return topic.topic_id


def test_topic_ids_are_kept_for_the_life_of_a_topic() -> None:
    """CP-203: an id is generated once, kept over expansion, reassignment and failover, and deleted
    with the topic."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    topic_id = cluster.active.context.topics.topic_ids["t"]
    assert stored_topic_id(cluster) == topic_id
    cluster.add_partitions("t", (3, 2))
    cluster.reassign({TP: (3, 2)})
    cluster.kill(1)
    assert cluster.active.context.topics.topic_ids == {"t": topic_id}
    assert stored_topic_id(cluster) == topic_id
    cluster.delete_topic("t")
    assert cluster.active.context.topics.topic_ids == {}


def test_topics_have_no_ids_before_2_8() -> None:
    cluster = ControllerCluster([1], "1.1")
    cluster.create_topic("t", (1,))
    assert cluster.active.context.topics.topic_ids == {}
    assert b"topic_id" not in (cluster.zookeeper.get("/brokers/topics/t") or b"")


def test_a_changed_replica_list_of_an_existing_partition_is_not_noticed() -> None:
    """CP-125: the preferred leader only changes for readers of the znode."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    topic_id = cluster.active.context.topics.topic_ids["t"]
    run_now(cluster.zk.topics.set_topic_assignment("t", topic_id, {TP: ReplicaAssignment((2, 1))}))
    cluster.settle()
    assert cluster.active.context.topics.partition_replica_assignment(TP) == (1, 2)


def test_dead_replicas_of_a_new_topic_end_online() -> None:
    """All assigned replicas become OnlineReplica, including dead ones (CP-83)
    (docs/kafka/topics.md#creation)."""
    cluster = ControllerCluster([1, 2])
    cluster.kill(2)
    cluster.create_topic("t", (2, 1))
    context = cluster.active.context
    assert context.states.replica_state(PartitionReplica("t", 0, 2)) is ReplicaState.ONLINE
    assert context.states.partition_state(TP) is PartitionState.ONLINE
    assert cluster.state("t") == LeaderAndIsr(1, 0, (1,), 0)


def test_metrics_follow_the_cluster_and_are_zero_elsewhere() -> None:
    """The active controller has gauges, other brokers have zeros
    (docs/kafka/controller-state.md)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (2,))
    cluster.kill(2)
    metrics = cluster.active.metrics.snapshot()
    assert metrics["ActiveControllerCount"] == 1
    assert metrics["OfflinePartitionsCount"] == 1
    assert metrics["PreferredReplicaImbalanceCount"] == 2
    assert metrics["GlobalTopicCount"] == 1
    assert metrics["GlobalPartitionCount"] == 2
    assert metrics["EventQueueSize"] == 0
    assert "QueueSize,broker-id=1" in metrics
    other = cluster.processes[3].controller.metrics.snapshot()
    names = ("OfflinePartitionsCount", "GlobalTopicCount", "GlobalPartitionCount", "TotalQueueSize")
    assert [other[name] for name in names] == [0, 0, 0, 0]


def test_queue_sizes_count_the_requests_of_each_channel() -> None:
    """Requests queue up for a broker that does not answer (docs/kafka/controller-state.md)."""
    cluster = ControllerCluster([1, 2])
    cluster.held.add(2)
    cluster.create_topic("t", (2,))
    assert cluster.active.metrics.broker_queue_sizes()[2] > 0
    cluster.held.clear()
    cluster.active.parts.channels.release(2)  # type: ignore[attr-defined]
    cluster.settle()
    assert cluster.active.metrics.broker_queue_sizes() == {1: 0, 2: 0}


def test_feature_versioning_is_enabled_by_the_first_controller() -> None:
    """A new controller sets up the ``/feature`` node
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1])
    node, _ = run_now(cluster.zk.brokers.get_feature_znode())
    assert node == FeatureZnode(True)
    old = ControllerCluster([1], "1.1")
    assert "/feature" not in old.zookeeper.tree.nodes


def test_disabled_features_are_enabled_empty_and_enabled_ones_kept() -> None:
    """A broker that lacks a finalised feature is ignored."""
    cluster = ControllerCluster([1])
    run_now(cluster.zk.brokers.update_feature_znode(FeatureZnode(False, (("f", 1, 2),))))
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert run_now(cluster.zk.brokers.get_feature_znode())[0] == FeatureZnode(True)
    run_now(cluster.zk.brokers.update_feature_znode(FeatureZnode(True, (("f", 1, 2),))))
    run_now(cluster.zk.requests.delete_path("/controller"))
    cluster.settle()
    assert run_now(cluster.zk.brokers.get_feature_znode())[0] == FeatureZnode(True, (("f", 1, 2),))
    assert list(cluster.active.context.brokers.live_broker_ids) == []


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (FeatureUpdate("", 1), ErrorCode.INVALID_REQUEST),
        (FeatureUpdate("f", 2), ErrorCode.NONE),
        (FeatureUpdate("f", 9), ErrorCode.INVALID_REQUEST),
        (FeatureUpdate("g", 1), ErrorCode.INVALID_REQUEST),
        (FeatureUpdate("f", 0), ErrorCode.INVALID_REQUEST),
        (FeatureUpdate("f", 0, SAFE_DOWNGRADE), ErrorCode.INVALID_REQUEST),
    ],
)
def test_feature_updates_are_validated(update: Any, expected: ErrorCode) -> None:
    """KIP-584: empty names, unsupported features and levels, deletions of missing features."""
    cluster = ControllerCluster()
    from fakekafka.protocol.values import BrokerInfo
    from fakekafka.tests.support.controller_cluster import Process

    process = Process(cluster, 1, None)
    process.info = BrokerInfo(1, process.info.endpoints, None, (("f", 1, 3),))
    cluster.processes[1] = process
    run_now(process.zk.brokers.create_top_level_paths())
    run_now(process.controller.registration.register())
    run_now(process.controller.startup())
    cluster.settle()
    answers: list[Any] = []
    process.controller.put(UpdateFeatures((update,), answers.append))
    cluster.settle()
    assert answers[0][update.name][0] is expected
    if expected is ErrorCode.NONE:
        assert run_now(cluster.zk.brokers.get_feature_znode())[0] == FeatureZnode(
            True, (("f", 1, 2),)
        )
        for level, upgrade_type, error in (
            (2, UPGRADE, ErrorCode.INVALID_REQUEST),
            (1, UPGRADE, ErrorCode.INVALID_REQUEST),
            (3, SAFE_DOWNGRADE, ErrorCode.INVALID_REQUEST),
            (1, SAFE_DOWNGRADE, ErrorCode.NONE),
            (0, SAFE_DOWNGRADE, ErrorCode.NONE),
        ):
            process.controller.put(
                UpdateFeatures((FeatureUpdate("f", level, upgrade_type),), answers.append)
            )
            cluster.settle()
            assert answers[-1]["f"][0] is error
        assert run_now(cluster.zk.brokers.get_feature_znode())[0] == FeatureZnode(True)


def test_controlled_shutdown_at_an_inactive_controller_raises_controller_moved() -> None:
    """An inactive controller answers with ControllerMoved
    (docs/kafka/brokers.md#controlled-shutdown)."""
    cluster = ControllerCluster([1, 2])
    answers: list[Any] = []
    cluster.processes[2].controller.put(ControlledShutdown(1, -1, answers.append))
    cluster.settle()
    assert isinstance(answers[0], ControllerMoved)
