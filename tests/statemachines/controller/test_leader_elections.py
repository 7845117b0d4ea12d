"""Leader elections on request and by the timer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakekafka.protocol.admin import PREFERRED, UNCLEAN
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.controller.events import (
    ElectionTrigger,
    ReplicaLeaderElection,
    TopicUncleanLeaderElectionEnable,
    UncleanLeaderElectionEnable,
)
from fakekafka.statemachines.controller.flows import rebalance
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.present import present
from fakekafka.tests.support.run_now import run_now

TP = TopicPartition("t", 0)


def test_a_known_partition_without_leadership_silences_the_whole_request() -> None:
    """The caller gets no answer (docs/kafka/election.md#elections-on-request)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.kill(2)
    run_now(cluster.zk.topics.create_topic_assignment("u", {0: ReplicaAssignment((2,))}))
    cluster.settle()
    answers: list[Any] = []
    both, from_api = (TP, TopicPartition("u", 0)), ElectionTrigger.ADMIN_CLIENT_TRIGGERED
    cluster.active.put(ReplicaLeaderElection(both, PREFERRED, from_api, answers.append))
    cluster.settle()
    assert answers == []
    assert any("has no leadership" in text for _, level, text in cluster.log if level == "error")


def test_partitions_of_dying_topics_are_not_elected() -> None:
    """They get INVALID_TOPIC_EXCEPTION; CP-147: for reassignments they are unknown
    (docs/kafka/election.md#elections-on-request)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.kill(3)
    cluster.delete_topic("t")
    outcome = cluster.elect(PREFERRED, TP)
    assert outcome == {TP: (ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")}
    outcome = cluster.reassign({TP: (1,)})
    assert outcome[TP][0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_broker_default_turned_on_elects_everywhere() -> None:
    """UncleanLeaderElectionEnable tries every leaderless partition again (CP-119)
    (docs/kafka/controller-state.md#events)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (2, 3))
    cluster.set_isr("t", 0, (2,))
    cluster.kill(2)
    assert cluster.state("t").leader == -1
    cluster.processes[1].config.set_dynamic({"unclean.leader.election.enable": "true"})
    cluster.active.put(UncleanLeaderElectionEnable())
    cluster.settle()
    assert cluster.state("t").leader == 3
    assert cluster.active.context.unclean_leader_elections == 1


def test_a_topic_turned_unclean_is_elected_alone() -> None:
    """CP-119: this needs no failover, and other topics stay as they are."""
    cluster = ControllerCluster([1, 2, 3])
    for topic in ("t", "u"):
        cluster.create_topic(topic, (2, 3))
        cluster.set_isr(topic, 0, (2,))
    cluster.kill(2)
    for topic in ("t", "u"):
        config = {"unclean.leader.election.enable": "true"}
        run_now(cluster.zk.admin.set_or_create_entity_configs("topics", topic, config))
    cluster.active.put(TopicUncleanLeaderElectionEnable("t"))
    cluster.settle()
    assert (cluster.state("t").leader, cluster.state("u").leader) == (3, -1)
    assert cluster.active.epoch == 1


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_an_unclean_leader_is_marked_until_it_changes_the_isr_since_3_2(version: str) -> None:
    """KIP-704: the mark stays during other elections, until the leader proposes an ISR."""

    def stored() -> dict[str, Any]:
        found = json.loads(present(cluster.zookeeper.get("/brokers/topics/t/partitions/0/state")))
        return {name: found.get(name) for name in ("leader", "isr", "leader_recovery_state")}

    mark = 1 if version == "3.9" else None
    cluster = ControllerCluster([1, 2, 3], version)
    cluster.create_topic("t", (3, 2), config={"unclean.leader.election.enable": "true"})
    cluster.set_isr("t", 0, (3,))
    assert stored() == {"leader": 3, "isr": [3], "leader_recovery_state": None}
    cluster.kill(3)
    assert stored() == {"leader": 2, "isr": [2], "leader_recovery_state": mark}
    cluster.kill(2)
    cluster.start(2)
    assert stored() == {"leader": 2, "isr": [2], "leader_recovery_state": mark}
    cluster.start(3)
    cluster.catch_up("t")
    assert stored() == {"leader": 2, "isr": [2, 3], "leader_recovery_state": None}


def test_an_unclean_leader_that_proposes_its_current_isr_has_recovered() -> None:
    """The ISR is unchanged, but the proposal clears the mark (KIP-704)."""
    cluster = ControllerCluster([1, 2, 3], "3.9")
    cluster.create_topic("t", (3, 2), config={"unclean.leader.election.enable": "true"})
    cluster.set_isr("t", 0, (3,))
    cluster.kill(3)
    state = cluster.state("t")
    assert (state.isr, state.is_recovering) == ((2,), True)
    cluster.set_isr("t", 0, state.isr)
    recovered = cluster.state("t")
    assert (recovered.isr, recovered.is_recovering) == ((2,), False)
    assert recovered.zk_version == state.zk_version + 1


@pytest.mark.parametrize(
    ("version", "controller", "feature"), [("1.1", 1, None), ("2.8", 1, 1), ("3.9", 2, 2)]
)
def test_znodes_of_the_cluster_are_written_in_the_version_of_the_release(
    version: str, controller: int, feature: int | None
) -> None:
    """3.3 and 3.4 wrote newer payloads (KAFKA-13833, KIP-866)."""
    nodes = ControllerCluster([1], version).zookeeper.tree.nodes
    written = json.loads(present(nodes["/controller"].data))
    assert (written["version"], written.get("kraftControllerEpoch")) == (
        controller,
        -1 if controller == 2 else None,
    )
    assert ("/feature" in nodes) == (feature is not None)
    if feature is not None:
        assert json.loads(present(nodes["/feature"].data))["version"] == feature


def test_unclean_election_of_a_healthy_partition_is_not_needed() -> None:
    """CP-129."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1, 2))
    assert cluster.elect(UNCLEAN, TP)[TP][0] is ErrorCode.ELECTION_NOT_NEEDED


def test_unclean_election_is_needed_where_the_leader_is_leaving() -> None:
    """A broker that shuts down does not count as live, and has the only replica in sync."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (2,))
    cluster.controlled_shutdown(2)
    assert cluster.state("t").leader == 2
    assert cluster.elect(UNCLEAN, TP)[TP][0] is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_pending_preferred_elections_are_taken_up_at_failover() -> None:
    """Completed and unknown ones, and those of topics being deleted, are dropped with the znode
    (docs/kafka/controller-failover.md#failover)."""
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (3, 2))
    cluster.kill(3)
    cluster.start(3)
    cluster.catch_up("t")
    cluster.freeze(1)
    asked = [TP, TopicPartition("gone", 0)]
    run_now(cluster.processes[2].zk.admin.create_preferred_replica_election(asked))
    process = cluster.processes.pop(1)
    cluster.zookeeper.close_session(process.client.session_id)
    cluster.settle()
    assert cluster.active.broker_id == 2
    assert cluster.state("t").leader == 3
    assert "/admin/preferred_replica_election" not in cluster.zookeeper.tree.nodes


def test_a_topic_being_deleted_with_a_pending_election_stays_unchanged_in_0_10() -> None:
    """It gets no leader at failover, and its deletion is not resumed
    (``KafkaController.initializeTopicDeletion``, KAFKA-5107)."""
    cluster = ControllerCluster([3, 1, 2], "0.10", delete_topic_enable=True)
    cluster.create_topic("t", (1, 2))
    cluster.kill(1)
    cluster.start(1)
    cluster.catch_up("t")
    before = cluster.state("t")
    assert before.leader == 2
    cluster.freeze(3)
    admin = cluster.processes[2].zk.admin
    run_now(admin.create_delete_topic_path("t"))
    run_now(admin.create_preferred_replica_election([TP]))
    cluster.zookeeper.close_session(cluster.processes.pop(3).client.session_id)
    cluster.settle()
    assert cluster.topics() == ["t"]
    assert cluster.state("t") == before
    assert "/admin/preferred_replica_election" not in cluster.zookeeper.tree.nodes


def test_a_tenth_is_not_enough_and_a_ninth_is() -> None:
    """The imbalance must be more than ten percent (docs/kafka/election.md#rebalancing)."""
    for partitions, is_moved in ((10, False), (9, True)):
        cluster = ControllerCluster([1, 2])
        cluster.create_topic("t", *[(2, 1)] * partitions)
        context = cluster.active.context
        known = context.topics.partition_leadership_info(TP)
        assert known is not None
        moved = LeaderAndIsr(1, 1, (2, 1), 0)
        run_now(cluster.zk.topics.update_partition_isr(TP, moved, 1))
        context.topics.put_partition_leadership_info(TP, type(known)(cluster.state("t"), 1))
        cluster.host.advance(5000)
        assert (cluster.state("t").leader == 2) == is_moved


def test_the_rebalance_timer_is_rescheduled_as_in_each_version() -> None:
    """By default after the handler has ended, in 0.10 at a fixed rate, and never if disabled
    (docs/kafka/election.md#rebalancing)."""
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


def test_a_check_that_fails_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timer is set again whether the check succeeded or not (``KafkaController``)."""
    cluster = ControllerCluster([1])
    checks: list[object] = []

    def fail(*arguments: object) -> object:
        checks.append(arguments)
        raise RuntimeError("broken")

    monkeypatch.setattr(rebalance, "leader_imbalances", fail)
    cluster.host.advance(5_000 + 2 * 300_000)
    assert len(checks) == 3


def test_a_controller_that_is_elected_again_has_one_timer() -> None:
    """The timer of its previous tenure is cancelled."""
    cluster = ControllerCluster([1])
    for _ in range(3):
        cluster.expire(1)
    assert cluster.active.epoch == 4
    assert len(cluster.host.clock.timers) == 1


def test_a_resigned_controller_does_not_rebalance() -> None:
    """The timer stops with the tenure (docs/kafka/election.md#rebalancing)."""
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
