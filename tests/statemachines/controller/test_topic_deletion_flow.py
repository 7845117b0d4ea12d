"""Deletion of topics during expansions, failures and failovers."""

from __future__ import annotations

from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.statemachines.controller.events import TopicDeletionStopReplicaResponseReceived
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now


def test_a_grown_topic_is_deleted_although_a_follower_is_down() -> None:
    """CP-159: partitions are added, then the topic is deleted; the deletion ends when the broker
    returns."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 3))
    cluster.kill(3)
    cluster.add_partitions("t", (1, 3), (1, 2))
    cluster.delete_topic("t")
    assert cluster.topics() == ["t"]
    assert TopicPartition("t", 1) not in cluster.brokers[1].metadata
    cluster.start(3)
    assert cluster.topics() == []
    assert cluster.zookeeper.children("/admin/delete_topics") == []


def test_a_missing_state_does_not_keep_a_topic_from_deletion() -> None:
    """CP-165: the state znode of one partition is missing when the controller starts."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (3, 2))
    cluster.kill(3)
    cluster.delete_topic("t")
    assert cluster.topics() == ["t"]
    run_now(cluster.zk.requests.delete_path("/brokers/topics/t/partitions/0/state"))
    cluster.kill(1)
    assert cluster.active.broker_id == 2
    cluster.start(3)
    assert cluster.topics() == []
    assert not any(map(cluster.active.context.states.replica_states_on_broker, (1, 2, 3)))


def test_a_broker_that_refuses_a_whole_request_has_deleted_nothing() -> None:
    """The error of the whole response applies to each replica, whatever its own error
    (``KafkaController.processTopicDeletionStopReplicaResponseReceived``)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.held.add(2)
    cluster.delete_topic("t")
    told = ((TopicPartition("t", 0), ErrorCode.NONE),)
    refused = TopicDeletionStopReplicaResponseReceived(2, ErrorCode.STALE_CONTROLLER_EPOCH, told)
    cluster.active.event_manager.put(refused)
    cluster.settle()
    assert cluster.topics() == ["t"]
    assert list(cluster.active.context.topics.topics_ineligible_for_deletion) == ["t"]


def test_an_answer_that_comes_after_the_tenure_is_ignored() -> None:
    """Responses are processed only by the controller that sent the request, and only during its
    tenure (docs/kafka/topics.md#deletion)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.held.add(2)
    cluster.delete_topic("t")
    controller = cluster.active
    run_now(controller.trigger_controller_move())
    cluster.held.clear()
    cluster.settle()
    assert controller.context.topics.topics_to_be_deleted == {} or controller.is_active
    cluster.active.parts.channels.release(2)  # type: ignore[attr-defined]
    cluster.settle()
    assert cluster.topics() == []
