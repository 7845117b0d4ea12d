"""ISR changes by AlterIsr and notifications, and failed log directories."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import AlterIsrPartition
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, PartitionReplica, TopicPartition
from fakekafka.statemachines.controller.events import AlterIsrReceived
from fakekafka.statemachines.machines.transitions import ReplicaState
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


def test_resending_the_current_isr_changes_nothing() -> None:
    """CP-185."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    state = cluster.state("t")
    change = AlterIsrPartition(TP, state.leader_epoch, state.isr, state.zk_version)
    (answer,) = cluster.alter_isr(1, change)
    assert answer.error is ErrorCode.NONE
    assert answer.partitions[0].leader_and_isr == state
    assert cluster.state("t") == state


@pytest.mark.parametrize(
    ("version", "partition", "epoch_step", "zk_version", "expected"),
    [
        ("2.8", TP, 0, 99, ErrorCode.INVALID_UPDATE_VERSION),
        ("2.8", TopicPartition("t", 9), 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("2.8", TP, -1, 1, ErrorCode.FENCED_LEADER_EPOCH),
        ("2.8", TP, 1, 99, ErrorCode.INVALID_UPDATE_VERSION),
        ("3.9", TP, 0, 99, ErrorCode.NOT_CONTROLLER),
        ("3.9", TP, 1, 1, ErrorCode.NOT_CONTROLLER),
        ("3.9", TP, 0, 0, ErrorCode.INVALID_UPDATE_VERSION),
        ("3.9", TP, 0, 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_isr_changes_are_checked(
    version: str, partition: TopicPartition, epoch_step: int, zk_version: int, expected: ErrorCode
) -> None:
    """CP-186, docs/kafka/isr.md#changes-through-the-controller; the stricter checks came with
    3.3."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (2, 3))
    cluster.kill(3)
    state = cluster.state("t")
    assert state == LeaderAndIsr(2, 1, (2,), 1)
    change = AlterIsrPartition(partition, 1 + epoch_step, (2, 3), zk_version)
    (answer,) = cluster.alter_isr(2, change)
    assert answer.error is ErrorCode.NONE
    assert [p.error for p in answer.partitions] == [expected]
    assert cluster.state("t") == state


@pytest.mark.parametrize("step", [-1, 1])
def test_isr_changes_need_the_exact_broker_epoch(step: int) -> None:
    """CP-186: older and newer epochs are both stale, as is that of an unknown broker."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    epoch = cluster.processes[1].controller.broker_epoch
    change = AlterIsrPartition(TP, 0, (1,), 0)
    (answer,) = cluster.alter_isr(1, change, epoch=epoch + step)
    assert (answer.error, answer.partitions) == (ErrorCode.STALE_BROKER_EPOCH, ())
    (answer,) = cluster.alter_isr(9, change, epoch=1)
    assert answer.error is ErrorCode.STALE_BROKER_EPOCH


def test_an_isr_change_is_announced_and_keeps_the_leader_epoch() -> None:
    """The version changes, the leader epoch does not; all brokers get UpdateMetadata, and none
    LeaderAndIsr (docs/kafka/isr.md#changes-through-the-controller)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2, 3))
    cluster.sent.clear()
    cluster.set_isr("t", 0, (1, 2))
    assert cluster.state("t") == LeaderAndIsr(1, 0, (1, 2), 1)
    assert [broker_id for broker_id, _ in cluster.sent] == [1, 2, 3]
    assert {type(request).__name__ for _, request in cluster.sent} == {"UpdateMetadataRequest"}


def test_a_refused_isr_change_announces_the_stored_state() -> None:
    """All brokers, including the leader that was too late, get the stored state
    (``KafkaController.processAlterPartition``)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2, 3))
    cluster.set_isr("t", 0, (1, 2))
    cluster.sent.clear()
    (answer,) = cluster.alter_isr(1, AlterIsrPartition(TP, 0, (1, 3), 0))
    assert answer.partitions[0].error is ErrorCode.INVALID_UPDATE_VERSION
    assert [broker_id for broker_id, _ in cluster.sent] == [1, 2, 3]
    told = {request.partition_states[0].isr for _, request in cluster.sent}
    assert told == {(1, 2)}


def test_an_isr_change_of_a_deposed_controller_is_answered_and_ends_its_tenure() -> None:
    """An unexpected exception is answered with a top-level UNKNOWN_SERVER_ERROR
    (docs/kafka/isr.md#changes-through-the-controller)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    controller = cluster.active
    run_now(cluster.zk.brokers.set_controller_epoch(50, -1))
    answers: list[Any] = []
    from fakekafka.protocol.control import AlterIsrRequest

    request = AlterIsrRequest(1, controller.broker_epoch, (AlterIsrPartition(TP, 0, (1,), 0),))
    controller.put(AlterIsrReceived(request, answers.append))
    cluster.settle()
    assert [answer.error for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert cluster.state("t").isr == (1, 2)


def test_a_preempted_isr_change_is_never_answered() -> None:
    """A preempted AlterIsrReceived has no response (docs/kafka/controller-state.md#events)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    answers: list[Any] = []
    from fakekafka.protocol.control import AlterIsrRequest
    from fakekafka.statemachines.controller.events import TopicChange

    cluster.active.put(AlterIsrReceived(AlterIsrRequest(1, 1, ()), answers.append))
    cluster.active.event_manager.clear_and_put(TopicChange())
    cluster.settle()
    assert answers == []


def test_isr_notifications_refresh_the_cache_and_are_removed() -> None:
    """CP-189: duplicates are allowed, and the nodes are deleted."""
    cluster = ControllerCluster([1, 2], "1.1")
    cluster.create_topic("t", (1, 2))
    cluster.set_isr("t", 0, (1,))
    known = cluster.active.context.topics.partition_leadership_info(TP)
    assert known is not None
    assert known.leader_and_isr.isr == (1, 2)
    for _ in range(2):
        run_now(cluster.zk.admin.propagate_isr_changes([TP, TP]))
    cluster.settle()
    known = cluster.active.context.topics.partition_leadership_info(TP)
    assert known is not None
    assert known.leader_and_isr == cluster.state("t")
    assert cluster.zookeeper.children("/isr_change_notification") == []


def test_notifications_of_failed_directories_are_consumed() -> None:
    """CP-190, CP-191: the replica is Offline at the controller, the broker stays live."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (2, 3))
    cluster.brokers[2].failed.add(TP)
    run_now(cluster.zk.admin.propagate_log_dir_event(2))
    cluster.settle()
    context = cluster.active.context
    assert cluster.zookeeper.children("/log_dir_event_notification") == []
    assert context.states.replica_state(PartitionReplica("t", 0, 2)) is ReplicaState.OFFLINE
    assert context.states.replica_state(PartitionReplica("t", 1, 2)) is ReplicaState.ONLINE
    assert 2 in context.brokers.live_broker_ids
    assert not context.brokers.is_replica_online(2, TP)
    assert cluster.state("t").leader == 3
    cluster.bounce(2)
    assert context.brokers.replicas_on_offline_dirs == {}


def test_a_replica_found_online_again_leaves_the_offline_set() -> None:
    """The error NONE removes a replica from the offline set, but triggers nothing
    (docs/kafka/brokers.md#failed-disks)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.brokers[2].failed.add(TP)
    run_now(cluster.zk.admin.propagate_log_dir_event(2))
    cluster.settle()
    assert list(cluster.active.context.brokers.replicas_on_offline_dirs) == [2]
    cluster.brokers[2].failed.clear()
    cluster.kill(3)  # the news of the lost leader reach broker 2, which answers NONE
    assert cluster.active.context.brokers.replicas_on_offline_dirs == {}
    assert cluster.active.context.brokers.is_replica_online(2, TP)
    assert cluster.state("t").leader == -1
