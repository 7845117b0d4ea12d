"""New controllers: what they watch and resume, and what former controllers leave behind."""

from __future__ import annotations

import pytest
from fakekafka.protocol import znode_paths
from fakekafka.protocol import znode_payloads as payloads
from fakekafka.protocol.control import (
    LeaderAndIsrResponse,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.controller.events import LeaderAndIsrResponseReceived
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import SetDataRequest

TP = TopicPartition("t", 0)


def write(cluster: ControllerCluster, path: str, data: bytes) -> None:
    """Set the data of an existing node."""
    assert run_now(cluster.zk.requests.send_one(SetDataRequest(path, data))).is_ok
    cluster.settle()


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_a_new_controller_is_notified_of_added_partitions(version: str) -> None:
    """It watches the topics that existed before its election (``initializeControllerContext``)."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2,))
    cluster.kill(1)
    cluster.add_partitions("t", (3,))
    assert cluster.state("t", 1).leader == 3


def test_a_new_controller_is_notified_of_changed_endpoints() -> None:
    """It watches the registrations that existed before its election
    (``initializeControllerContext``)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.kill(1)
    other = next(b for b in cluster.processes if b != cluster.active.broker_id)
    cluster.sent.clear()
    changed = payloads.encode_broker(BrokerInfo(other, (EndPoint("new", 1),)), 0)
    write(cluster, znode_paths.broker_id_path(other), changed)
    assert [type(request) for _, request in cluster.sent] == 2 * [UpdateMetadataRequest]


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.4", "3.9"])
def test_a_former_controller_watches_the_node_of_the_controller_alone(version: str) -> None:
    """All other watches end: brokers, topics, states, requests, notifications
    (docs/kafka/controller-failover.md#resignation)."""
    cluster = ControllerCluster([1, 2], version, delete_topic_enable=True)
    cluster.create_topic("t", (1,))
    cluster.create_topic("gone", (1,))
    cluster.delete_topic("gone")
    run_now(cluster.zk.admin.create_partition_reassignment({TopicPartition("t", 0): (2,)}))
    cluster.settle()
    former = cluster.active
    client = cluster.processes[former.broker_id].client
    assert {"/brokers/ids/2", "/brokers/topics/t"} <= set(client._change)
    assert "/brokers/topics/gone" not in client._change
    run_now(former.trigger_controller_move())
    assert set(client._change) == {"/controller"}
    assert client._child_change == {}


def test_answers_to_a_former_controller_are_ignored() -> None:
    """They are ignored, also in its next tenure."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2, 1))
    run_now(cluster.active.trigger_controller_move())
    cluster.settle()
    former = next(p.controller for p in cluster.processes.values() if not p.controller.is_active)
    answer = LeaderAndIsrResponse(
        ErrorCode.NONE, ((TopicPartition("t", 0), ErrorCode.KAFKA_STORAGE_ERROR),)
    )
    former.event_manager.put(LeaderAndIsrResponseReceived(answer, 2))
    cluster.settle()
    assert former.context.brokers.replicas_on_offline_dirs == {}


def test_a_former_controller_has_no_channels() -> None:
    """After it resigned, it sends no requests (``ControllerChannelManager.shutdown``)."""
    cluster = ControllerCluster([1, 2])
    former = cluster.active
    cluster.expire(former.broker_id)
    assert cluster.active is not former
    cluster.sent.clear()
    former.parts.channels.send_request(2, UpdateMetadataRequest(1, 1, 1, (), ()), None)
    assert cluster.sent == []


def test_a_deletion_that_waits_for_a_reassignment_follows_its_completion() -> None:
    """A new controller finds both requests, and reassigns first
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.reassign({TP: (3,)})
    cluster.freeze(1)
    cluster.zookeeper.close_session(cluster.processes.pop(1).client.session_id)
    run_now(cluster.zk.admin.create_delete_topic_path("t"))
    cluster.settle()
    assert cluster.topics() == ["t"]
    cluster.catch_up("t")
    assert cluster.topics() == []


def test_a_newer_request_in_the_znode_outlives_the_end_of_an_older_one() -> None:
    """Only completed reassignments are removed from the znode
    (``maybeRemoveFromZkReassignment``)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1,), (1,))
    other = TopicPartition("t", 1)
    run_now(cluster.zk.admin.create_partition_reassignment({other: (2,)}))
    cluster.settle()
    cluster.reassign({TP: (3,)})
    asked = {other: (2,), TP: (2,)}
    written = payloads.encode_reassign_partitions(asked)
    write(cluster, znode_paths.REASSIGN_PARTITIONS, written)
    cluster.catch_up("t")
    assert cluster.assignment("t") == ReplicaAssignment((3,))
    assert run_now(cluster.zk.admin.get_partition_reassignment()) == asked


def test_a_reassignment_to_no_replica_is_refused() -> None:
    """An empty list is INVALID_REPLICA_ASSIGNMENT; null would cancel a reassignment (KIP-455)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,))
    ((_, (error, text)),) = cluster.reassign({TP: ()}).items()
    assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert text == "Empty replica list specified in partition reassignment."


def test_a_replica_already_known_as_offline_is_not_taken_offline_again() -> None:
    """A response takes only replicas offline that were not known as offline
    (``processLeaderAndIsrResponseReceived``)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.brokers[2].failed.add(TP)
    run_now(cluster.zk.admin.propagate_log_dir_event(2))
    cluster.settle()
    cluster.sent.clear()
    run_now(cluster.zk.admin.propagate_log_dir_event(2))
    cluster.settle()
    assert not any(isinstance(request, StopReplicaRequest) for _, request in cluster.sent)


def test_a_topic_that_someone_removed_by_hand_is_forgotten() -> None:
    """Brokers that start later do not get it (``processTopicChange``)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    run_now(cluster.zk.topics.delete_topic_znode("t", cluster.active.context.epoch_zk_version))
    cluster.settle()
    cluster.start(3)
    assert cluster.brokers[3].metadata == {}


def test_a_controlled_shutdown_skips_partitions_with_one_replica() -> None:
    """Partitions with one replica are skipped (``doControlledShutdown``)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.log.clear()
    cluster.controlled_shutdown(2)
    assert [line for line in cluster.log if line[1] == "error"] == []
