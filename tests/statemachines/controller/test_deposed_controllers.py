"""A deposed controller that has not noticed: none of its writes succeeds. Since 2.1 each write is
sent with a check of ``/controller_epoch`` (KAFKA-6082, docs/kafka/zookeeper.md)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.protocol import znode_payloads
from fakekafka.protocol.control import AlterIsrPartition, AlterIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.controller.events import (
    AlterIsrReceived,
    ApiPartitionReassignment,
    ControlledShutdown,
)
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import GetChildrenRequest, ZkCode

TP, MOVING = TopicPartition("t", 0), TopicPartition("moving", 0)


def reassign(cluster: ControllerCluster) -> None:
    cluster.active.put(ApiPartitionReassignment(((TP, (1, 3)),), lambda _: None))


def cancel_a_reassignment(cluster: ControllerCluster) -> None:
    cluster.active.put(ApiPartitionReassignment(((MOVING, None),), lambda _: None))


def reassign_by_znode(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (1, 3)}))


def reassign_unknown_partition_by_znode(cluster: ControllerCluster) -> None:
    unknown = TopicPartition("nothing", 0)
    run_now(cluster.zk.admin.create_partition_reassignment({unknown: (1,), MOVING: (3,)}))


def alter_an_isr(cluster: ControllerCluster) -> None:
    state = cluster.state("moving")
    if not cluster.behaviour.alter_isr:
        new = LeaderAndIsr(1, state.leader_epoch, (1, 3), state.zk_version)
        run_now(cluster.zk.topics.update_partition_isr(MOVING, new, 1))
        return
    change = AlterIsrPartition(MOVING, state.leader_epoch, (1, 3), state.zk_version)
    epoch = cluster.processes[1].controller.broker_epoch
    request = AlterIsrRequest(1, epoch, (change,))
    cluster.active.put(AlterIsrReceived(request, lambda _: None))


def announce_an_isr(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.propagate_isr_changes([TP]))


def announce_a_failed_disk(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.propagate_log_dir_event(2))


def delete_a_topic(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.create_delete_topic_path("t"))


def delete_unknown_topic(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.create_delete_topic_path("nothing"))


def elect_by_znode(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.admin.create_preferred_replica_election([TP]))


def create_a_topic(cluster: ControllerCluster) -> None:
    run_now(cluster.zk.topics.create_topic_assignment("new", {0: ReplicaAssignment((2, 3))}))


def add_a_partition(cluster: ControllerCluster) -> None:
    both = {TopicPartition("t", at): ReplicaAssignment((1, 2)) for at in range(2)}
    run_now(cluster.zk.topics.set_topic_assignment("t", None, both))


def lose_a_broker(cluster: ControllerCluster) -> None:
    session = cluster.processes[2].client.session_id
    cluster.freeze(2)
    cluster.zookeeper.close_session(session)


def let_a_broker_leave(cluster: ControllerCluster) -> None:
    epoch = cluster.processes[2].controller.broker_epoch
    cluster.active.put(ControlledShutdown(2, epoch, lambda _: None))


ACTIONS: tuple[Callable[[ControllerCluster], None], ...] = (
    reassign,
    cancel_a_reassignment,
    reassign_by_znode,
    reassign_unknown_partition_by_znode,
    alter_an_isr,
    announce_an_isr,
    announce_a_failed_disk,
    delete_a_topic,
    delete_unknown_topic,
    elect_by_znode,
    create_a_topic,
    add_a_partition,
    lose_a_broker,
    let_a_broker_leave,
)


BY_ZNODE = (reassign_by_znode, reassign_unknown_partition_by_znode)


def stored(cluster: ControllerCluster) -> dict[str, tuple[bytes | None, int]]:
    """Return the data and version of every node."""
    return {path: (node.data, node.version) for path, node in cluster.zookeeper.tree.items()}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.__name__)
@pytest.mark.parametrize("version", ["2.1", "2.4", "2.8", "3.9"])
def test_a_controller_that_was_deposed_changes_nothing(
    version: str, action: Callable[[ControllerCluster], None]
) -> None:
    """Its write is refused as a whole, and it reads which broker is the controller."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1, 2))
    cluster.create_topic("moving", (1,))
    if version != "2.1":
        cluster.reassign({MOVING: (1, 3)})
    elif action not in BY_ZNODE:
        run_now(cluster.zk.admin.create_partition_reassignment({MOVING: (1, 3)}))
        cluster.settle()
    run_now(cluster.zk.brokers.set_controller_epoch(99, -1))
    cluster.zookeeper.tree.nodes["/controller"].data = znode_payloads.encode_controller(9, 0)
    action(cluster)
    asked = stored(cluster)
    cluster.settle()
    assert stored(cluster) == asked


def test_a_controller_deposed_while_it_deletes_a_topic_leaves_its_nodes() -> None:
    """The new controller completes the deletion."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2))
    raced: list[object] = []

    def depose(request: object) -> bool:
        if request == GetChildrenRequest("/brokers/topics/t") and not raced:
            raced.append(request)
            run_now(cluster.processes[2].zk.brokers.set_controller_epoch(99, -1))
        return False

    cluster.processes[cluster.active.broker_id].client.fail_next(depose, ZkCode.OK)
    cluster.delete_topic("t")
    assert len(raced) == 1
    assert cluster.topics() == ["t"]
    assert cluster.state("t").isr
    assert "/admin/delete_topics/t" in cluster.zookeeper.tree.nodes
