"""Reassignment: failover, redirected requests, old releases."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import PREFERRED, UNCLEAN
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import SetDataRequest, ZkCode

TP = TopicPartition("t", 0)


def test_reassignments_found_at_failover_are_resumed() -> None:
    """They are stored in the topics' znodes; the leader epoch rises once more
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.reassign({TP: (3,)})
    assert cluster.state("t").leader_epoch == 1
    cluster.kill(1)
    assert cluster.active.broker_id != 1
    assert [o.topic_partition for o in cluster.reassigning()] == [TP]
    assert cluster.state("t").leader_epoch == 2
    cluster.catch_up("t")
    assert cluster.assignment("t") == ReplicaAssignment((3,))
    assert cluster.state("t").leader == 3


def test_the_latest_request_wins_over_the_znode() -> None:
    """The API removes the partition from the request znode first (docs/kafka/reassignment.md)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1,), (1,))
    other = TopicPartition("t", 1)
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,), other: (2,)}))
    cluster.settle()
    cluster.reassign({TP: (3,)})
    assert run_now(cluster.zk.admin.get_partition_reassignment()) == {other: (2,)}
    assert cluster.assignment("t") == ReplicaAssignment((3, 1), (3,), (1,))


def test_a_reassignment_to_an_unknown_broker_is_refused() -> None:
    """Also if other new brokers are live; existing replicas may be on dead brokers."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    for target in ((1, 3, 4), (4,)):
        ((_, (error, text)),) = cluster.reassign({TP: target}).items()
        assert error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert "brokers that are not alive" in text
    assert not cluster.assignment("t").is_being_reassigned
    ((_, (error, _)),) = cluster.reassign({TP: (1, 2, 3)}).items()
    assert error is ErrorCode.NONE


def test_a_reassignment_requested_by_znode_is_not_validated() -> None:
    """Replicas are not validated, and unknown partitions are removed from the znode
    (docs/kafka/reassignment.md)."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    unknown = TopicPartition("nothing", 0)
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (9,), unknown: (1,)}))
    cluster.settle()
    assert run_now(cluster.zk.admin.get_partition_reassignment()) == {TP: (9,)}
    assert cluster.assignment("t").adding == (9,)


def test_a_topic_queued_for_deletion_does_not_exist_for_a_reassignment() -> None:
    """The error is the same as for an unknown partition (docs/kafka/reassignment.md)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,))
    cluster.active.context.topics.queue_topic_deletion(["t"])
    refused = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    missing = TopicPartition("nowhere", 0)
    assert cluster.reassign({TP: (2,), missing: (2,)}) == {TP: refused, missing: refused}


def test_a_dead_leader_in_the_target_is_replaced_by_election() -> None:
    """The leader is dead when the reassignment completes; a failed election is only logged
    (docs/kafka/reassignment.md)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    cluster.reassign({TP: (2,)})
    assert cluster.state("t").leader == -1
    assert cluster.reassigning() == ()


def test_a_leader_in_the_target_that_is_leaving_is_replaced_by_election() -> None:
    """A leader that shuts down counts as offline
    (``KafkaController.moveReassignedPartitionLeaderIfRequired``)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    assert cluster.controlled_shutdown(2) == []
    cluster.reassign({TP: (2, 3)})
    assert cluster.state("t").leader == 2
    cluster.set_isr("t", 0, (2, 3))
    assert cluster.assignment("t") == ReplicaAssignment((2, 3))
    assert cluster.state("t").leader == 3


def test_a_state_of_a_newer_controller_is_left_alone() -> None:
    """The leader epoch is not raised, and the caller gets an unexpected error."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,))
    newer = LeaderAndIsr(1, 7, (1,), 0)
    assert run_now(cluster.zk.topics.update_partition_isr(TP, newer, 99)) == 1
    ((_, (error, _)),) = cluster.reassign({TP: (2,)}).items()
    assert error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.state("t") == LeaderAndIsr(1, 7, (1,), 1)


def test_a_partition_at_rest_is_not_listed() -> None:
    """Even if the request names it (KIP-455)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,), (1,))
    other = TopicPartition("t", 1)
    cluster.reassign({other: (2,)})
    assert cluster.reassigning(TP) == ()
    assert [found.topic_partition for found in cluster.reassigning(TP, other)] == [other]


def cluster_with_only_an_added_replica_in_sync(version: str) -> ControllerCluster:
    """Return a cluster that reassigns [1, 3] to [1, 2, 3]: 1 is dead, 3 died after 2 had joined the
    ISR, and 2 leads."""
    cluster = ControllerCluster([4, 1, 2, 3], version)
    cluster.create_topic("t", (1, 3))
    cluster.kill(1)
    cluster.reassign({TP: (1, 2, 3)})
    cluster.set_isr("t", 0, (3, 2))
    cluster.kill(3)
    assert cluster.state("t") == LeaderAndIsr(2, 3, (2,), 4)
    return cluster


def test_an_isr_that_changes_while_a_reassignment_raises_the_epoch_is_kept() -> None:
    """The epoch is raised again in the state stored by then, and the reassignment continues."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (1, 2))
    raced: list[object] = []

    def race(request: object) -> bool:
        is_write = isinstance(request, SetDataRequest) and request.path.endswith("/state")
        if is_write and not raced:
            raced.append(request)
            new = LeaderAndIsr(1, 0, (1,), 0)
            run_now(cluster.zk.topics.update_partition_isr(TP, new, 1))
        return False

    cluster.processes[cluster.active.broker_id].client.fail_next(race, ZkCode.OK)
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (1, 3)}))
    cluster.settle()
    assert len(raced) == 1
    assert cluster.state("t") == LeaderAndIsr(1, 1, (1,), 2)
    cluster.set_isr("t", 0, (1, 3))
    assert cluster.assignment("t") == ReplicaAssignment((1, 3))


@pytest.mark.parametrize("target", [None, (1, 3)])
@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_cancelled_reassignment_drops_even_the_only_replica_in_sync(
    version: str, target: tuple[int, ...] | None
) -> None:
    """The ISR then contains a broker that is not a replica, and no broker may lead. Neither a
    returning replica nor another controller changes that, nor an unclean election while that broker
    lives (docs/kafka/reassignment.md#dropped-in-sync)."""
    cluster = cluster_with_only_an_added_replica_in_sync(version)
    assert cluster.reassign({TP: target}) == {TP: (ErrorCode.NONE, None)}
    leaderless = LeaderAndIsr(-1, 4, (2,), 5)
    assert cluster.state("t") == leaderless
    assert cluster.assignment("t") == ReplicaAssignment((1, 3))
    cluster.start(1)
    cluster.start(3)
    cluster.bounce(4)
    assert cluster.state("t") == leaderless
    assert cluster.elect(PREFERRED, TP)[TP][0] == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert cluster.elect(UNCLEAN, TP)[TP][0] == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert cluster.state("t") == leaderless
    cluster.kill(2)
    assert cluster.elect(UNCLEAN, TP)[TP] == (ErrorCode.NONE, 1)
    assert (cluster.state("t").leader, cluster.state("t").isr) == (1, (1,))


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_replica_dropped_while_alone_in_sync_leads_again_with_its_remaining_log(
    version: str,
) -> None:
    """A reassignment to the broker in the ISR, and an election, make it the leader, although its
    log was deleted meanwhile (docs/kafka/reassignment.md#dropped-in-sync)."""
    cluster = cluster_with_only_an_added_replica_in_sync(version)
    cluster.reassign({TP: None})
    cluster.reassign({TP: (2, 1, 3)})
    assert cluster.state("t") == LeaderAndIsr(-1, 5, (2,), 6)
    assert cluster.elect(UNCLEAN, TP)[TP] == (ErrorCode.NONE, 2)


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_leader_that_a_later_request_drops_is_replaced_when_the_controller_moves(
    version: str,
) -> None:
    """The partition counts as online without a leader. Therefore neither the next phase A nor the
    start of a broker elects one earlier (docs/kafka/reassignment.md#dropped-in-sync)."""
    cluster = ControllerCluster([4, 1, 2, 3], version)
    cluster.create_topic("t", (1, 2))
    cluster.kill(2)
    cluster.reassign({TP: (3, 2, 1)})
    cluster.set_isr("t", 0, (1, 3))
    assert cluster.elect(PREFERRED, TP)[TP] == (ErrorCode.NONE, 3)
    cluster.reassign({TP: (2, 4)})
    assert cluster.state("t") == LeaderAndIsr(-1, 5, (1,), 6)
    assert cluster.assignment("t") == ReplicaAssignment((2, 4, 1), (4,), (1,))
    cluster.start(2)
    assert cluster.state("t") == LeaderAndIsr(-1, 6, (1,), 7)
    cluster.bounce(4)
    assert (cluster.state("t").leader, cluster.state("t").isr) == (1, (1,))


@pytest.mark.parametrize("version", ["1.1", "2.4", "2.6"])
def test_reassignment_completes_by_state_znode_where_there_is_no_alter_isr(version: str) -> None:
    """Up to 2.6 the state node is watched, for PartitionReassignmentIsrChange
    (docs/kafka/controller-state.md#events)."""
    cluster = ControllerCluster([1, 2], version)
    cluster.create_topic("t", (1,))
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    cluster.set_isr("t", 0, (1, 2))
    assert cluster.assignment("t") == ReplicaAssignment((2,))
    assert cluster.state("t") == LeaderAndIsr(2, 3, (2,), cluster.state("t").zk_version)


def test_a_second_request_for_a_running_reassignment_is_ignored_before_2_4() -> None:
    """Up to 2.3 (docs/kafka/reassignment.md#up-to-23)."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (1,))
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    run_now(cluster.zk.admin.delete_partition_reassignment())
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (3,)}))
    cluster.settle()
    assert cluster.assignment("t").replicas == (2, 1)


@pytest.mark.parametrize("version", ["0.10", "1.0"])
def test_a_request_that_is_written_over_is_ignored_before_1_1(version: str) -> None:
    """Changes of the node were noticed, but a running reassignment keeps its target
    (``KafkaController.PartitionReassignment``)."""
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (1,), (1,))
    other = TopicPartition("t", 1)
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    run_now(cluster.zk.admin.set_or_create_partition_reassignment({TP: (3,), other: (3,)}))
    cluster.settle()
    assert cluster.assignment("t").replicas == (2, 1)
    assert cluster.assignment("t", 1).replicas == (3, 1)


def test_legacy_reassignments_survive_a_failover() -> None:
    """CP-150: the request znode is read again; completed requests are removed."""
    cluster = ControllerCluster([1, 2, 3], "0.10")
    cluster.create_topic("t", (3,), (3,))
    done = TopicPartition("t", 1)
    cluster.freeze(1)
    run_now(cluster.processes[2].zk.admin.create_partition_reassignment({TP: (2,), done: (3,)}))
    process = cluster.processes.pop(1)
    cluster.zookeeper.close_session(process.client.session_id)
    cluster.settle()
    assert run_now(cluster.zk.admin.get_partition_reassignment()) == {TP: (2,)}
    assert set(cluster.assignment("t").replicas) == {2, 3}
    cluster.set_isr("t", 0, (3, 2))
    assert cluster.assignment("t").replicas == (2,)
    assert "/admin/reassign_partitions" not in cluster.zookeeper.tree.nodes


def test_deleting_during_a_reassignment_deletes_at_once() -> None:
    """The topic is marked as ineligible before it is queued, which has no effect
    (docs/kafka/topics.md#deletion)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.reassign({TP: (3,)})
    cluster.delete_topic("t")
    assert cluster.topics() == []
    assert list(cluster.active.context.topics.partitions_being_reassigned) == [TP]


def test_a_target_with_another_failed_directory_still_takes_the_replica() -> None:
    """CP-139: a new replica uses a working directory; the leader epoch is 3, as without the
    failure."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("other", (2, 1))
    cluster.create_topic("t", (1,))
    cluster.brokers[2].failed.add(TopicPartition("other", 0))
    run_now(cluster.zk.admin.propagate_log_dir_event(2))
    run_now(cluster.zk.admin.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    cluster.catch_up("t")
    assert (cluster.state("t").leader, cluster.state("t").leader_epoch) == (2, 3)
    assert cluster.assignment("t") == ReplicaAssignment((2,))
    assert "/admin/reassign_partitions" not in cluster.zookeeper.tree.nodes
