"""Flows of the active controller that need more than a transcript can say."""

from __future__ import annotations

from typing import Any

import pytest
from controller_cluster import ControllerCluster
from fakekafka.protocol.admin import PREFERRED, UNCLEAN
from fakekafka.protocol.awaiting import run_now
from fakekafka.protocol.control import AlterIsrPartition, LeaderAndIsrRequest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.values import (
    LeaderAndIsr,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from fakekafka.protocol.znodes import FeatureZnode
from fakekafka.statemachines.errors import ControllerMoved
from fakekafka.statemachines.transitions import PartitionState, ReplicaState

TP = TopicPartition("t", 0)


def sent_to(cluster: ControllerCluster, broker_id: int) -> list[Any]:
    return [request for destination, request in cluster.sent if destination == broker_id]


# --- controlled shutdown


def test_a_stale_broker_epoch_is_refused() -> None:
    """CP-133; a newer epoch is accepted, an unknown broker is a lookup failure."""
    cluster = ControllerCluster([1, 2])
    epoch = cluster.processes[2].controller.broker_epoch
    refused = cluster.controlled_shutdown(2, epoch - 1)
    assert isinstance(refused, KafkaError)
    assert refused.code is ErrorCode.STALE_BROKER_EPOCH
    assert cluster.controlled_shutdown(2, epoch + 1) == []
    assert isinstance(cluster.controlled_shutdown(9, 5), LookupError)
    unknown = cluster.controlled_shutdown(9, -1)
    assert isinstance(unknown, KafkaError)
    assert unknown.code is ErrorCode.BROKER_NOT_AVAILABLE


def test_a_leaving_broker_counts_as_leaving_until_it_is_gone() -> None:
    """Section 9 step 4: the mark goes with the broker's failure."""
    cluster = ControllerCluster([1, 2])
    cluster.controlled_shutdown(2)
    assert list(cluster.active.context.shutting_down_broker_ids) == [2]
    cluster.kill(2)
    assert list(cluster.active.context.shutting_down_broker_ids) == []


def test_remaining_partitions_are_those_without_another_in_sync_replica() -> None:
    """CP-132: RF 1 partitions are not reported, failed elections are."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (2,))
    cluster.set_isr("t", 0, (2,))
    assert cluster.controlled_shutdown(2) == [TP]
    assert cluster.state("t").leader == 2


def test_shutting_down_brokers_are_told_of_their_lost_leadership_not_in_1_1() -> None:
    """Section 6.3: 1.1 elected among live brokers only."""
    for version, is_told in (("1.1", False), ("2.8", True)):
        cluster = ControllerCluster([1, 2, 3], version)
        cluster.create_topic("t", (2, 3))
        cluster.sent.clear()
        cluster.controlled_shutdown(2)
        kinds = [type(request) for request in sent_to(cluster, 2)]
        assert (LeaderAndIsrRequest in kinds) == is_told


# --- AlterIsr


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
    """CP-186, section 12.2; the stricter checks came in 3.x."""
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
    """CP-186: older and newer epochs are both stale, an unknown broker too."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    epoch = cluster.processes[1].controller.broker_epoch
    change = AlterIsrPartition(TP, 0, (1,), 0)
    (answer,) = cluster.alter_isr(1, change, epoch=epoch + step)
    assert (answer.error, answer.partitions) == (ErrorCode.STALE_BROKER_EPOCH, ())
    (answer,) = cluster.alter_isr(9, change, epoch=1)
    assert answer.error is ErrorCode.STALE_BROKER_EPOCH


def test_an_isr_change_is_announced_and_keeps_the_leader_epoch() -> None:
    """Section 12.2: new version, same epoch, UpdateMetadata to everybody, no LeaderAndIsr."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2, 3))
    cluster.sent.clear()
    cluster.set_isr("t", 0, (1, 2))
    assert cluster.state("t") == LeaderAndIsr(1, 0, (1, 2), 1)
    assert [broker_id for broker_id, _ in cluster.sent] == [1, 2, 3]
    assert {type(request).__name__ for _, request in cluster.sent} == {"UpdateMetadataRequest"}


def test_an_isr_change_of_a_deposed_controller_is_answered_and_ends_its_tenure() -> None:
    """Section 12.2: an unexpected exception is a top-level UNKNOWN_SERVER_ERROR."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    controller = cluster.active
    run_now(cluster.zk.set_controller_epoch(50, -1))
    answers: list[Any] = []
    from fakekafka.protocol.control import AlterIsrRequest

    request = AlterIsrRequest(1, controller.broker_epoch, (AlterIsrPartition(TP, 0, (1,), 0),))
    controller.alter_isr(request, answers.append)
    cluster.settle()
    assert [answer.error for answer in answers] == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert cluster.state("t").isr == (1, 2)


def test_a_preempted_isr_change_is_never_answered() -> None:
    """Section 2: AlterIsrReceived is dropped in silence."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    answers: list[Any] = []
    from fakekafka.protocol.control import AlterIsrRequest
    from fakekafka.statemachines.events import TopicChange

    cluster.active.alter_isr(AlterIsrRequest(1, 1, ()), answers.append)
    cluster.active.event_manager.clear_and_put(TopicChange())
    cluster.settle()
    assert answers == []


def test_isr_notifications_refresh_the_cache_and_are_removed() -> None:
    """Section 12.1 and CP-189: duplicates are fine, the nodes go."""
    cluster = ControllerCluster([1, 2], "1.1")
    cluster.create_topic("t", (1, 2))
    cluster.set_isr("t", 0, (1,))
    known = cluster.active.context.partition_leadership_info(TP)
    assert known is not None
    assert known.leader_and_isr.isr == (1, 2)
    for _ in range(2):
        run_now(cluster.zk.propagate_isr_changes([TP, TP]))
    cluster.settle()
    known = cluster.active.context.partition_leadership_info(TP)
    assert known is not None
    assert known.leader_and_isr == cluster.state("t")
    assert cluster.zookeeper.children("/isr_change_notification") == []


# --- log directories


def test_notifications_of_failed_directories_are_consumed() -> None:
    """CP-190, CP-191: the replica is Offline at the controller, the broker stays live."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3), (2, 3))
    cluster.brokers[2].failed.add(TP)
    run_now(cluster.zk.propagate_log_dir_event(2))
    cluster.settle()
    context = cluster.active.context
    assert cluster.zookeeper.children("/log_dir_event_notification") == []
    assert context.replica_state(PartitionReplica("t", 0, 2)) is ReplicaState.OFFLINE
    assert context.replica_state(PartitionReplica("t", 1, 2)) is ReplicaState.ONLINE
    assert 2 in context.live_broker_ids
    assert not context.is_replica_online(2, TP)
    assert cluster.state("t").leader == 3
    cluster.bounce(2)
    assert context.replicas_on_offline_dirs == {}


def test_a_replica_found_online_again_leaves_the_offline_set() -> None:
    """Section 8.5: NONE takes a replica off the list, which triggers nothing by itself."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.brokers[2].failed.add(TP)
    run_now(cluster.zk.propagate_log_dir_event(2))
    cluster.settle()
    assert list(cluster.active.context.replicas_on_offline_dirs) == [2]
    cluster.brokers[2].failed.clear()
    cluster.kill(3)  # the news of the lost leader reach broker 2, which answers NONE
    assert cluster.active.context.replicas_on_offline_dirs == {}
    assert cluster.active.context.is_replica_online(2, TP)
    assert cluster.state("t").leader == -1


# --- elections


def test_a_known_partition_without_leadership_silences_the_whole_request() -> None:
    """Section 6.6 QUIRK: nobody is answered."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    run_now(cluster.zk.create_topic_assignment("u", {0: ReplicaAssignment((2,))}))
    cluster.settle()
    answers: list[Any] = []
    cluster.active.elect_leaders([TP, TopicPartition("u", 0)], PREFERRED, answers.append)
    cluster.settle()
    assert answers == []
    assert any("has no leadership" in text for _, level, text in cluster.log if level == "error")


def test_partitions_of_dying_topics_are_not_elected() -> None:
    """Section 6.6: INVALID_TOPIC_EXCEPTION; CP-147: reassignments answer 'unknown'."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.kill(3)
    cluster.delete_topic("t")
    outcome = cluster.elect(PREFERRED, TP)
    assert outcome == {TP: (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")}
    outcome = cluster.reassign({TP: (1,)})
    assert outcome[TP][0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_broker_default_turned_on_elects_everywhere() -> None:
    """Section 2: UncleanLeaderElectionEnable retries every leaderless partition (CP-119)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    assert cluster.state("t").leader == -1
    cluster.processes[1].config.set_dynamic({"unclean.leader.election.enable": "true"})
    cluster.active.enable_default_unclean_leader_election()
    cluster.settle()
    assert cluster.state("t").leader == 3
    assert cluster.active.metrics.unclean_leader_elections == 1


def test_a_topic_turned_unclean_is_elected_alone() -> None:
    """CP-119: no change of controller is needed; other topics stay as they are."""
    cluster = ControllerCluster([1, 2, 3])
    for topic in ("t", "u"):
        cluster.create_topic(topic, (2, 3))
        cluster.set_isr(topic, 0, (2,))
    cluster.kill(2)
    for topic in ("t", "u"):
        config = {"unclean.leader.election.enable": "true"}
        run_now(cluster.zk.set_or_create_entity_configs("topics", topic, config))
    cluster.active.enable_topic_unclean_leader_election("t")
    cluster.settle()
    assert (cluster.state("t").leader, cluster.state("u").leader) == (3, -1)
    assert cluster.active.epoch == 1


def test_unclean_election_of_a_healthy_partition_is_not_needed() -> None:
    """CP-129."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    assert cluster.elect(UNCLEAN, TP)[TP][0] is ErrorCode.ELECTION_NOT_NEEDED


def test_pending_preferred_elections_are_taken_up_at_failover() -> None:
    """Section 3.4 step 12: done, unknown and dying ones are dropped, the znode goes."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (3, 2))
    cluster.kill(3)
    cluster.start(3)
    cluster.catch_up("t")
    cluster.freeze(1)
    asked = [TP, TopicPartition("gone", 0)]
    run_now(cluster.processes[2].zk.create_preferred_replica_election(asked))
    process = cluster.processes.pop(1)
    cluster.zookeeper.close_session(process.client.session_id)
    cluster.settle()
    assert cluster.active.broker_id == 2
    assert cluster.state("t").leader == 3
    assert "/admin/preferred_replica_election" not in cluster.zookeeper.tree.nodes


# --- rebalance


def test_a_tenth_is_not_enough_and_a_ninth_is() -> None:
    """Section 13: strictly more than ten percent."""
    for partitions, is_moved in ((10, False), (9, True)):
        cluster = ControllerCluster([1, 2])
        cluster.create_topic("t", *[(2, 1)] * partitions)
        context = cluster.active.context
        known = context.partition_leadership_info(TP)
        assert known is not None
        moved = LeaderAndIsr(1, 1, (2, 1), 0)
        run_now(cluster.zk.update_partition_isr(TP, moved, 1))
        context.put_partition_leadership_info(TP, type(known)(cluster.state("t"), 1))
        cluster.host.advance(5000)
        assert (cluster.state("t").leader == 2) == is_moved


def test_the_timer_comes_back_as_the_version_says() -> None:
    """Section 13: after the handler by default, at a fixed rate in 0.10, never if disabled."""
    for version, enabled, expected in (("2.8", True, 3), ("0.10", True, 3), ("2.8", False, 0)):
        cluster = ControllerCluster([1], version, auto_leader_rebalance_enable=enabled)
        seen: list[str] = []
        cluster.active.event_manager.on_event = lambda event, phase, seen=seen: (
            seen.append(event.name) if phase == "started" else None
        )
        cluster.host.advance(4_999)
        assert seen == []
        cluster.host.advance(600_001)
        assert seen.count("AutoPreferredReplicaLeaderElection") == expected


def test_a_resigned_controller_does_not_rebalance() -> None:
    """Section 13: the scheduler stops with the tenure."""
    cluster = ControllerCluster([1, 2])
    first = cluster.active
    run_now(first.trigger_controller_move())
    cluster.settle()
    assert cluster.active.epoch == 2
    seen: list[str] = []
    loser = next(p.controller for p in cluster.processes.values() if not p.controller.is_active)
    loser.event_manager.on_event = lambda event, phase: seen.append(event.name)
    cluster.host.advance(1_000_000)
    assert seen == []


# --- reassignment


def test_reassignments_found_at_failover_go_on() -> None:
    """Section 3.4 step 10: the topic znode remembers; the leader epoch rises once more."""
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
    """Section 11: the API removes the partition from the request znode first."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1,), (1,))
    other = TopicPartition("t", 1)
    run_now(cluster.zk.create_partition_reassignment({TP: (2,), other: (2,)}))
    cluster.settle()
    cluster.reassign({TP: (3,)})
    assert run_now(cluster.zk.get_partition_reassignment()) == {other: (2,)}
    assert cluster.assignment("t") == ReplicaAssignment((3, 1), (3,), (1,))


def test_a_reassignment_asked_for_by_znode_may_name_anyone() -> None:
    """Section 11: no validation; unknown partitions are dropped from the znode."""
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    unknown = TopicPartition("nothing", 0)
    run_now(cluster.zk.create_partition_reassignment({TP: (9,), unknown: (1,)}))
    cluster.settle()
    assert run_now(cluster.zk.get_partition_reassignment()) == {TP: (9,)}
    assert cluster.assignment("t").adding == (9,)


def test_a_dead_leader_in_the_target_is_replaced_by_election() -> None:
    """Section 11 B3: leader dead at completion; a failed election is only logged (QUIRK)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    cluster.reassign({TP: (2,)})
    assert cluster.state("t").leader == -1
    assert cluster.reassigning() == ()


def test_reassignment_completes_by_state_znode_where_there_is_no_alter_isr() -> None:
    """Section 2: PartitionReassignmentIsrChange (1.1 watches the state node)."""
    cluster = ControllerCluster([1, 2], "1.1")
    cluster.create_topic("t", (1,))
    run_now(cluster.zk.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    cluster.set_isr("t", 0, (1, 2))
    assert cluster.assignment("t") == ReplicaAssignment((2,))
    assert cluster.state("t") == LeaderAndIsr(2, 3, (2,), cluster.state("t").zk_version)


def test_a_second_request_for_a_running_reassignment_is_ignored_before_2_4() -> None:
    """Section 11 [0.10..2.3]."""
    cluster = ControllerCluster([1, 2, 3], "1.1")
    cluster.create_topic("t", (1,))
    run_now(cluster.zk.create_partition_reassignment({TP: (2,)}))
    cluster.settle()
    run_now(cluster.zk.delete_partition_reassignment())
    run_now(cluster.zk.create_partition_reassignment({TP: (3,)}))
    cluster.settle()
    assert cluster.assignment("t").replicas == (2, 1)


def test_legacy_reassignments_survive_a_failover() -> None:
    """CP-150: the request znode is read again; one that is done already is cleaned up."""
    cluster = ControllerCluster([1, 2, 3], "0.10")
    cluster.create_topic("t", (3,), (3,))
    done = TopicPartition("t", 1)
    cluster.freeze(1)
    run_now(cluster.processes[2].zk.create_partition_reassignment({TP: (2,), done: (3,)}))
    process = cluster.processes.pop(1)
    cluster.zookeeper.close_session(process.client.session_id)
    cluster.settle()
    assert run_now(cluster.zk.get_partition_reassignment()) == {TP: (2,)}
    assert set(cluster.assignment("t").replicas) == {2, 3}
    cluster.set_isr("t", 0, (3, 2))
    assert cluster.assignment("t").replicas == (2,)
    assert "/admin/reassign_partitions" not in cluster.zookeeper.tree.nodes


def test_deleting_during_a_reassignment_deletes_at_once() -> None:
    """Section 10.3 QUIRK: the mark comes too early to matter."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2,))
    cluster.reassign({TP: (3,)})
    cluster.delete_topic("t")
    assert cluster.topics() == []
    assert list(cluster.active.context.partitions_being_reassigned) == [TP]


# --- topics


def test_topic_ids_are_kept_for_the_life_of_a_topic() -> None:
    """CP-203: generated once; kept over expansion, reassignment and failover; gone with it."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    topic_id = cluster.active.context.topic_ids["t"]
    assert run_now(cluster.zk.get_topic_ids_for_topics(["t"])) == {"t": topic_id}
    cluster.add_partitions("t", (3, 2))
    cluster.reassign({TP: (3, 2)})
    cluster.kill(1)
    assert cluster.active.context.topic_ids == {"t": topic_id}
    assert run_now(cluster.zk.get_topic_ids_for_topics(["t"])) == {"t": topic_id}
    cluster.delete_topic("t")
    assert cluster.active.context.topic_ids == {}
    assert cluster.active.context.topic_names == {}


def test_topics_have_no_ids_before_2_8() -> None:
    cluster = ControllerCluster([1], "1.1")
    cluster.create_topic("t", (1,))
    assert cluster.active.context.topic_ids == {}
    assert b"topic_id" not in (cluster.zookeeper.get("/brokers/topics/t") or b"")


def test_a_changed_replica_list_of_an_existing_partition_is_not_noticed() -> None:
    """Section 10.2; CP-125: the preferred leader changes for those who read the znode anew."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    topic_id = cluster.active.context.topic_ids["t"]
    run_now(cluster.zk.set_topic_assignment("t", topic_id, {TP: ReplicaAssignment((2, 1))}))
    cluster.settle()
    assert cluster.active.context.partition_replica_assignment(TP) == (1, 2)


def test_dead_replicas_of_a_new_topic_end_online() -> None:
    """Section 10.1: all assigned replicas, dead ones included, become OnlineReplica (CP-83)."""
    cluster = ControllerCluster([1, 2])
    cluster.kill(2)
    cluster.create_topic("t", (2, 1))
    context = cluster.active.context
    assert context.replica_state(PartitionReplica("t", 0, 2)) is ReplicaState.ONLINE
    assert context.partition_state(TP) is PartitionState.ONLINE
    assert cluster.state("t") == LeaderAndIsr(1, 0, (1,), 0)


def test_metrics_follow_the_cluster_and_are_zero_elsewhere() -> None:
    """Section 0: gauges of the active controller; zeros at the others."""
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


def test_queue_sizes_are_those_of_the_channels() -> None:
    """Section 0: requests wait for a broker that does not answer."""
    cluster = ControllerCluster([1, 2])
    cluster.held.add(2)
    cluster.create_topic("t", (2,))
    assert cluster.active.metrics.broker_queue_sizes()[2] > 0
    cluster.held.clear()
    cluster.active.channels.release(2)  # type: ignore[attr-defined]
    cluster.settle()
    assert cluster.active.metrics.broker_queue_sizes() == {1: 0, 2: 0}


# --- features


def test_feature_versioning_is_enabled_by_the_first_controller() -> None:
    """Section 3.4 step 0."""
    cluster = ControllerCluster([1])
    node, _ = run_now(cluster.zk.get_feature_znode())
    assert node == FeatureZnode(True)
    old = ControllerCluster([1], "1.1")
    assert "/feature" not in old.zookeeper.tree.nodes


def test_disabled_features_are_enabled_empty_and_enabled_ones_kept() -> None:
    """Section 3.4 step 0; a broker that lacks a finalised feature is not taken in."""
    cluster = ControllerCluster([1])
    run_now(cluster.zk.update_feature_znode(FeatureZnode(False, (("f", 1, 2),))))
    run_now(cluster.zk.delete_path("/controller"))
    cluster.settle()
    assert run_now(cluster.zk.get_feature_znode())[0] == FeatureZnode(True)
    run_now(cluster.zk.update_feature_znode(FeatureZnode(True, (("f", 1, 2),))))
    run_now(cluster.zk.delete_path("/controller"))
    cluster.settle()
    assert cluster.active.features.finalized == {"f": (1, 2)}
    assert list(cluster.active.context.live_broker_ids) == []


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (("", (1, False)), ErrorCode.INVALID_REQUEST),
        (("f", (2, False)), ErrorCode.NONE),
        (("f", (9, False)), ErrorCode.INVALID_REQUEST),
        (("g", (1, False)), ErrorCode.INVALID_REQUEST),
        (("f", (0, False)), ErrorCode.INVALID_REQUEST),
        (("f", (0, True)), ErrorCode.INVALID_REQUEST),
    ],
)
def test_feature_updates_are_validated(update: Any, expected: ErrorCode) -> None:
    """KIP-584: empty names, unsupported features and levels, deletions of nothing."""
    cluster = ControllerCluster()
    from controller_cluster import Process
    from fakekafka.protocol.values import BrokerInfo

    process = Process(cluster, 1, None)
    process.info = BrokerInfo(1, process.info.endpoints, None, (("f", 1, 3),))
    cluster.processes[1] = process
    run_now(process.zk.create_top_level_paths())
    run_now(process.controller.registration.register())
    run_now(process.controller.startup())
    cluster.settle()
    answers: list[Any] = []
    name, change = update
    process.controller.update_features({name: change}, answers.append)
    cluster.settle()
    assert answers[0][name][0] is expected
    if expected is ErrorCode.NONE:
        assert run_now(cluster.zk.get_feature_znode())[0] == FeatureZnode(True, (("f", 1, 2),))
        for level, allow, error in (
            (2, False, ErrorCode.INVALID_REQUEST),
            (1, False, ErrorCode.INVALID_REQUEST),
            (3, True, ErrorCode.INVALID_REQUEST),
            (1, True, ErrorCode.NONE),
            (0, True, ErrorCode.NONE),
        ):
            process.controller.update_features({"f": (level, allow)}, answers.append)
            cluster.settle()
            assert answers[-1]["f"][0] is error
        assert run_now(cluster.zk.get_feature_znode())[0] == FeatureZnode(True)


def test_the_event_of_a_moved_controller_is_an_exception_for_those_who_asked() -> None:
    """Section 9 step 1: not active means ControllerMoved."""
    cluster = ControllerCluster([1, 2])
    answers: list[Any] = []
    cluster.processes[2].controller.controlled_shutdown(1, -1, answers.append)
    cluster.settle()
    assert isinstance(answers[0], ControllerMoved)
