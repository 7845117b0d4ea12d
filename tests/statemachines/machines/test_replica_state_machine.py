"""The replica state machine (docs/kafka/replica-states.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, PartitionReplica, TopicPartition
from fakekafka.statemachines.machines.transitions import REPLICA_PREDECESSORS, ReplicaState
from fakekafka.statemachines.zookeeper.errors import ControllerMoved
from fakekafka.tests.support.controller_core import Core, MakeCore
from fakekafka.tests.support.present import present
from fakekafka.zkfake.messages import GetDataRequest, MultiRequest, ZkCode

TP = TopicPartition("t", 0)
NEW, ONLINE, OFFLINE = ReplicaState.NEW, ReplicaState.ONLINE, ReplicaState.OFFLINE
STARTED, SUCCESSFUL = ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL
INELIGIBLE, NON_EXISTENT = ReplicaState.DELETION_INELIGIBLE, ReplicaState.NON_EXISTENT


def leads(core: Core, *replicas: int, isr: tuple[int, ...] = (), leader: int | None = None) -> None:
    """Create partition t-0 with replicas that are all in sync and Online, led by the first one."""
    core.assign(TP, *replicas)
    core.lead(TP, replicas[0] if leader is None else leader, isr or replicas)
    for broker_id in replicas:
        core.put_replica(TP, broker_id, ONLINE)


def test_startup_finds_a_live_replica_online(core: Core) -> None:
    """CP-23."""
    core.assign(TP, 5)
    core.run(core.replicas.startup())
    assert core.replica_state(TP, 5) is ONLINE


def test_startup_takes_dead_replicas_out_of_the_isr(core: Core) -> None:
    """CP-24: they become OfflineReplica, not Ineligible; leader -1 if they led, and the leader
    epoch rises."""
    leads(core, 6, 5)
    core.run(core.replicas.startup())
    assert (core.replica_state(TP, 6), core.replica_state(TP, 5)) == (OFFLINE, ONLINE)
    assert core.stored(TP) == (-1, 1, (5,), 1, 1)
    assert [state.leader for state in core.channels.leader_and_isr()[5]] == [-1]


def test_startup_moves_dead_replicas_without_leadership_offline(core: Core) -> None:
    """CP-25."""
    core.assign(TP, 6)
    core.run(core.replicas.startup())
    assert core.replica_state(TP, 6) is OFFLINE


def test_startup_before_2_3_leaves_dead_replicas_ineligible(make_core: MakeCore) -> None:
    """They also stay in the ISR and remain leaders."""
    core = make_core(5, version="1.1")
    leads(core, 6, 5)
    core.run(core.replicas.startup())
    assert core.replica_state(TP, 6) is INELIGIBLE
    assert core.stored(TP) == (6, 0, (6, 5), 0, 1)


@pytest.mark.parametrize("target", list(ReplicaState))
@pytest.mark.parametrize("current", list(ReplicaState))
def test_only_the_fourteen_legal_pairs_change_state(
    core: Core, current: ReplicaState, target: ReplicaState
) -> None:
    """CP-26, CP-34, CP-35: others are logged, and no exception is raised."""
    core.assign(TP, 5)
    core.put_replica(TP, 5, current)
    core.move_replicas(TP, target, 5)
    legal = current in REPLICA_PREDECESSORS[target]
    assert core.replica_state(TP, 5) is (target if legal else current)
    assert (core.errors() == "") == legal


def test_an_illegal_transition_is_logged_with_its_legal_predecessors(core: Core) -> None:
    """The log names the replica, both states, and the legal previous states."""
    core.move_replicas(TP, INELIGIBLE, 5)
    assert core.errors() == (
        "replica 5 of t-0 cannot move from NonExistentReplica to ReplicaDeletionIneligible: it "
        "would have to be in one of the states OfflineReplica, ReplicaDeletionStarted"
    )


def test_before_2_3_only_a_started_deletion_could_become_ineligible(make_core: MakeCore) -> None:
    """Those releases have another table."""
    core = make_core(5, version="1.1")
    core.put_replica(TP, 5, OFFLINE)
    core.move_replicas(TP, INELIGIBLE, 5)
    assert core.replica_state(TP, 5) is OFFLINE


def test_a_new_replica_without_leadership_goes_offline_with_metadata_for_all(
    make_core: MakeCore,
) -> None:
    """CP-27: its broker gets StopReplica without deletion, every broker UpdateMetadata."""
    core = make_core(5, 6)
    core.assign(TP, 5)
    core.put_replica(TP, 5, NEW)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.replica_state(TP, 5) is OFFLINE
    assert core.channels.stop_replica() == [(5, "t-0", -1, False)]
    assert sorted(core.channels.update_metadata()) == [5, 6]
    assert core.channels.update_metadata()[6].partition_states == ()


def test_a_new_assigned_replica_comes_online_silently(core: Core) -> None:
    """CP-28."""
    leads(core, 5)
    core.put_replica(TP, 5, NEW)
    core.move_replicas(TP, ONLINE, 5)
    assert core.replica_state(TP, 5) is ONLINE
    assert core.channels.sent == []


def test_a_new_unassigned_replica_is_added_to_the_assignment(core: Core) -> None:
    """This should not happen: it is logged, and the assignment changes in memory only."""
    leads(core, 5)
    core.put_replica(TP, 7, NEW)
    core.move_replicas(TP, ONLINE, 7)
    assert core.context.topics.partition_replica_assignment(TP) == (5, 7)
    assert "without being assigned" in core.errors()


@pytest.mark.parametrize("current", [ONLINE, OFFLINE, INELIGIBLE])
def test_coming_online_resends_the_replica_its_role(core: Core, current: ReplicaState) -> None:
    """CP-29, CP-31, CP-32: LeaderAndIsr has the same epoch and is not marked as new."""
    leads(core, 5)
    core.put_replica(TP, 5, current)
    core.move_replicas(TP, ONLINE, 5)
    [state] = core.channels.leader_and_isr()[5]
    assert (state.leader, state.leader_epoch, state.is_new) == (5, 0, False)
    assert core.stored(TP) == (5, 0, (5,), 0, 1)


def test_a_leader_going_offline_leaves_isr_and_leadership(make_core: MakeCore) -> None:
    """CP-30: the cache has the new version, the other replicas get LeaderAndIsr, and StopReplica
    has the old epoch."""
    core = make_core(5, 6)
    leads(core, 5, 6)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.stored(TP) == (-1, 1, (6,), 1, 1)
    assert core.channels.stop_replica() == [(5, "t-0", 0, False)]
    assert list(core.channels.leader_and_isr()) == [6]
    cached = present(core.context.topics.partition_leadership_info(TP))
    assert cached.leader_and_isr == LeaderAndIsr(-1, 1, (6,), 1)


def test_a_follower_going_offline_leaves_the_leader_alone(make_core: MakeCore) -> None:
    """The ISR shrinks but keeps its order, and the leader epoch rises by one."""
    core = make_core(5, 6, 7)
    leads(core, 5, 6, 7, isr=(7, 6, 5))
    core.move_replicas(TP, OFFLINE, 6)
    assert core.stored(TP) == (5, 1, (7, 5), 1, 1)


def test_a_replica_outside_the_isr_costs_no_write_but_is_announced(make_core: MakeCore) -> None:
    """The cache is read from ZooKeeper, and LeaderAndIsr repeats the leader epoch."""
    core = make_core(5, 6)
    leads(core, 5, 6, isr=(5,))
    core.move_replicas(TP, OFFLINE, 6)
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    assert [s.leader_epoch for s in core.channels.leader_and_isr()[5]] == [0]


def test_the_last_isr_member_stays_in_the_isr(make_core: MakeCore) -> None:
    """CP-111, CP-112: the ISR stays [x] with x dead and leader -1, whether unclean election is
    allowed or not."""
    core = make_core(5, config={"unclean.leader.election.enable": True})
    leads(core, 5)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.stored(TP) == (-1, 1, (5,), 1, 1)


@pytest.mark.parametrize(("unclean", "isr"), [(True, ()), (False, (5,))])
def test_before_1_1_the_isr_emptied_where_unclean_election_was_on(
    make_core: MakeCore, unclean: bool, isr: tuple[int, ...]
) -> None:
    """CP-112, for 0.10: the topic's flag decided."""
    core = make_core(5, version="0.10", config={"unclean.leader.election.enable": not unclean})
    config = {"unclean.leader.election.enable": str(unclean).lower()}
    core.run(core.zk.admin.set_or_create_entity_configs("topics", "t", config))
    leads(core, 5)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.stored(TP) == (-1, 1, isr, 1, 1)


def test_each_broker_lost_is_a_write_of_its_own(make_core: MakeCore) -> None:
    """Two followers in one call raise the leader epoch by 2."""
    core = make_core(5, 6, 7)
    leads(core, 5, 6, 7)
    core.move_replicas(TP, OFFLINE, 6, 7)
    assert core.stored(TP) == (5, 2, (5,), 2, 1)


def test_one_broker_with_many_partitions_costs_two_batches(make_core: MakeCore) -> None:
    """One read, one write."""
    core = make_core(5, 6)
    tps = [TopicPartition("t", n) for n in range(20)]
    for tp in tps:
        core.assign(tp, 5, 6)
        core.lead(tp, 5, (5, 6))
        core.put_replica(tp, 6, ONLINE)
    batches = core.count_batches()
    replicas = [PartitionReplica(*tp, 6) for tp in tps]
    core.run(core.replicas.handle_state_changes(replicas, OFFLINE))
    assert batches == [20, 20]
    assert len(core.channels.leader_and_isr()[5]) == 20


def test_a_race_for_the_isr_is_decided_again(make_core: MakeCore) -> None:
    """The leader shrank the ISR between the controller's read and its write."""
    core = make_core(5, 6, 7)
    leads(core, 5, 6, 7)
    raced: list[Any] = []

    def race(request: Any) -> bool:
        if isinstance(request, MultiRequest) and not raced:
            raced.append(request)
            core.run(core.zk.topics.update_partition_isr(TP, LeaderAndIsr(5, 0, (5, 6), 0), 1))
        return False

    core.client.fail_next(race, ZkCode.OK)
    core.move_replicas(TP, OFFLINE, 6)
    assert core.stored(TP) == (5, 1, (5,), 2, 1)


def test_a_queued_topics_replica_goes_offline_without_leader_and_isr(make_core: MakeCore) -> None:
    """The ISR is written nevertheless; StopReplica has the leader epoch of a deletion."""
    core = make_core(5, 6)
    leads(core, 5, 6)
    core.context.topics.queue_topic_deletion(["t"])
    core.move_replicas(TP, OFFLINE, 6)
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert core.channels.leader_and_isr() == {}
    assert core.channels.stop_replica() == [(6, "t-0", -2, False)]


@pytest.mark.parametrize("is_queued", [False, True])
def test_missing_state_is_an_error_unless_the_topic_is_deleted(core: Core, is_queued: bool) -> None:
    """CP-165: for queued topics it is ignored silently; the replica's state stays in both cases."""
    leads(core, 5)
    core.run(core.zk.requests.delete_path("/brokers/topics/t/partitions/0/state"))
    if is_queued:
        core.context.topics.queue_topic_deletion(["t"])
    core.move_replicas(TP, OFFLINE, 5)
    assert core.replica_state(TP, 5) is ONLINE
    assert (core.errors() == "") == is_queued


def test_state_of_a_newer_controller_is_left_alone(core: Core) -> None:
    """The failure is logged, and the state does not change
    (docs/kafka/controller-failover.md#controller-epochs)."""
    core.assign(TP, 5)
    core.lead(TP, 5, (5,), controller_epoch=9)
    core.put_replica(TP, 5, ONLINE)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.replica_state(TP, 5) is ONLINE
    assert "newer than 1" in core.errors()


def test_a_failing_read_leaves_the_replica(core: Core) -> None:
    """Every partition of the call fails."""
    leads(core, 5)
    core.client.fail_next(lambda r: isinstance(r, GetDataRequest), RuntimeError("lost"))
    core.move_replicas(TP, OFFLINE, 5)
    assert core.replica_state(TP, 5) is ONLINE
    assert "lost" in core.errors()


def test_a_moved_controller_is_rethrown(core: Core) -> None:
    """CP-73: nothing is sent, and the next batch starts empty."""
    leads(core, 5)
    core.run(core.zk.brokers.set_controller_epoch(9, core.context.epoch_zk_version))
    with pytest.raises(ControllerMoved):
        core.move_replicas(TP, OFFLINE, 5)
    assert core.channels.sent == []
    core.context.brokers.remove_live_brokers([5])
    core.move_replicas(TP, STARTED, 5)
    assert "was not sent yet" not in core.errors()


def test_deletion_starts_with_stop_replica(core: Core) -> None:
    """CP-33."""
    core.assign(TP, 5)
    core.put_replica(TP, 5, OFFLINE)
    core.move_replicas(TP, STARTED, 5)
    assert core.channels.stop_replica() == [(5, "t-0", -1, True)]


def test_a_deleted_replica_leaves_assignment_and_states(core: Core) -> None:
    """CP-36."""
    core.assign(TP, 5)
    core.put_replica(TP, 5, SUCCESSFUL)
    core.move_replicas(TP, NON_EXISTENT, 5)
    assert core.context.topics.partition_replica_assignment(TP) == ()
    assert core.context.states.replica_states_on_broker(5) == {}
    assert core.context.topics.partitions_on_broker(5) == []


def test_a_new_replica_of_a_led_partition_gets_leader_and_isr_marked_new(core: Core) -> None:
    """LeaderAndIsr with is_new goes to this broker only, metadata to all brokers."""
    core.register(6)
    leads(core, 5)
    core.move_replicas(TP, NEW, 6)
    [(broker_id, request)] = core.channels.of(LeaderAndIsrRequest)
    assert (broker_id, request.partition_states[0].is_new) == (6, True)
    assert sorted(core.channels.update_metadata()) == [5, 6]


def test_a_leader_cannot_become_new(core: Core) -> None:
    """The refused change is logged, and the state stays."""
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.move_replicas(TP, NEW, 5)
    assert core.replica_state(TP, 5) is NON_EXISTENT
    assert "a leader cannot be new" in core.errors()


@pytest.mark.parametrize(("version", "is_told"), [("0.10", True), ("2.8", False)])
def test_kafka_0_10_looks_for_a_new_replicas_leader_in_zookeeper(
    make_core: MakeCore, version: str, is_told: bool
) -> None:
    """From 1.1 on it is read from the cache."""
    core = make_core(5, 6, version=version)
    core.assign(TP, 5)
    core.lead(TP, 5, (5,), cached=False)
    core.move_replicas(TP, NEW, 6)
    assert (6 in core.channels.leader_and_isr()) == is_told


def test_kafka_0_10_refuses_to_take_a_replica_offline_without_leadership(
    make_core: MakeCore,
) -> None:
    """In 0.10 this is an error; from 1.1 on it is a legal transition."""
    core = make_core(5, version="0.10")
    core.assign(TP, 5)
    core.put_replica(TP, 5, NEW)
    core.move_replicas(TP, OFFLINE, 5)
    assert core.replica_state(TP, 5) is NEW
    assert "no leadership" in core.errors()


def test_no_replicas_no_batch(core: Core) -> None:
    """No batch is opened without replicas."""
    core.run(core.replicas.handle_state_changes([], ONLINE))
    assert core.channels.sent == []
