"""The partition state machine (control_plane sections 4, 6 and 7)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.election.strategies import (
    ControlledShutdown,
    OfflinePartition,
    PreferredReplica,
    Reassign,
)
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.errors import ControllerMoved, StateChangeFailed
from fakekafka.statemachines.transitions import PARTITION_PREDECESSORS, PartitionState
from fakekafka.zkfake.messages import (
    CreateRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)

TP = TopicPartition("t", 0)
NEW, ONLINE = PartitionState.NEW, PartitionState.ONLINE
OFFLINE, NON_EXISTENT = PartitionState.OFFLINE, PartitionState.NON_EXISTENT


def creates_state(request: Any) -> bool:
    return (
        isinstance(request, MultiRequest)
        and isinstance(request.operations[1], CreateRequest)
        and request.operations[1].path.endswith("/state")
    )


def reads_state(request: Any) -> bool:
    return isinstance(request, GetDataRequest) and request.path.endswith("/state")


def sets_state(request: Any) -> bool:
    return isinstance(request, MultiRequest) and isinstance(request.operations[1], SetDataRequest)


def test_an_unknown_partition_becomes_new(core: Any) -> None:
    """CP-1."""
    core.move([TP], NEW)
    assert core.context.partition_state(TP) is NEW


def test_an_unknown_partition_cannot_come_online(core: Any) -> None:
    """CP-2: no traffic at all."""
    core.client.requests.clear()
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.partition_state(TP) is NON_EXISTENT
    assert (core.client.requests, core.channels.sent) == ([], [])


def test_an_unknown_partition_cannot_go_offline(core: Any) -> None:
    """CP-3."""
    core.move([TP], OFFLINE)
    assert core.context.partition_state(TP) is NON_EXISTENT


def test_a_new_partition_is_initialised_with_its_online_replicas(core: Any) -> None:
    """CP-4: created under the guard, LeaderAndIsr with is_new to the ISR, no outcome."""
    core.assign(TP, 5)
    core.put(TP, NEW)
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.partition_state(TP) is ONLINE
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    [state] = core.channels.leader_and_isr()[5]
    assert (state.leader, state.leader_epoch, state.isr, state.is_new) == (5, 0, (5,), True)
    assert all(isinstance(r, MultiRequest) for r in core.client.requests[-4:-1])


def test_initialisation_ignores_the_strategy_and_leaves_dead_replicas_out(make_core: Any) -> None:
    """CP-83: the first *online* replica leads, online replicas are the ISR (section 7)."""
    core = make_core(5, 6)
    core.assign(TP, 4, 6, 5)
    core.put(TP, NEW)
    core.move([TP], ONLINE, None)
    assert core.stored(TP) == (6, 0, (6, 5), 0, 1)
    assert sorted(core.channels.leader_and_isr()) == [5, 6]


def test_initialisation_needs_a_live_replica(core: Any) -> None:
    """Logged with the reason; the partition stays New and is tried again at every trigger."""
    core.assign(TP, 9)
    core.put(TP, NEW)
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.partition_state(TP) is NEW
    assert "No assigned replica is alive" in core.errors()
    core.register(9)
    core.run(core.partitions.trigger_online_partition_state_change())
    assert core.context.partition_state(TP) is ONLINE


def test_a_failing_creation_leaves_the_partition_new(core: Any) -> None:
    """CP-5: an exception of the client; the batch is sent empty."""
    core.assign(TP, 5)
    core.put(TP, NEW)
    core.client.fail_next(creates_state, RuntimeError("lost"))
    assert core.move([TP], ONLINE, OfflinePartition()) == {}
    assert core.context.partition_state(TP) is NEW
    assert core.channels.sent == []


def test_an_existing_state_node_leaves_the_partition_new(core: Any) -> None:
    """CP-6: NODEEXISTS."""
    core.assign(TP, 5)
    core.lead(TP, 4, (4,), cached=False)
    core.put(TP, NEW)
    core.move([TP], ONLINE, OfflinePartition())
    assert core.context.partition_state(TP) is NEW
    assert core.context.partition_leadership_info(TP) is None
    assert core.stored(TP)[0] == 4


@pytest.mark.parametrize("target", list(PartitionState))
@pytest.mark.parametrize("current", list(PartitionState))
def test_only_the_eight_legal_pairs_change_state(
    core: Any, current: PartitionState, target: PartitionState
) -> None:
    """CP-7, CP-8, CP-11, CP-12, CP-13, CP-18, CP-19 and every other pair."""
    core.assign(TP, 5)
    core.put(TP, current)
    if current in (ONLINE, OFFLINE):
        core.lead(TP, 5, (5,))
    core.move([TP], target, OfflinePartition())
    legal = current in PARTITION_PREDECESSORS[target]
    assert core.context.partition_state(TP) is (target if legal else current)
    assert (core.errors() == "") == legal


def test_an_illegal_transition_is_logged_with_its_legal_predecessors(core: Any) -> None:
    """The log names partition, both states, and where one may come from."""
    core.put(TP, ONLINE)
    core.move([TP], NON_EXISTENT)
    assert core.logged == [
        (
            "error",
            "partition t-0 cannot move from OnlinePartition to NonExistentPartition: it would "
            "have to be in one of the states OfflinePartition",
        )
    ]


def test_electing_the_current_leader_still_raises_the_epoch(core: Any) -> None:
    """CP-9: LeaderAndIsr without is_new; the outcome is the value as written."""
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.put(TP, ONLINE)
    outcomes = core.move([TP], ONLINE, PreferredReplica())
    assert outcomes == {TP: LeaderAndIsr(5, 1, (5,), 1)}
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    [state] = core.channels.leader_and_isr()[5]
    assert (state.leader_epoch, state.zk_version, state.is_new) == (1, 1, False)


def test_controlled_shutdown_moves_the_leader_and_tells_both(make_core: Any) -> None:
    """CP-10."""
    core = make_core(5, 6)
    core.context.shutting_down_broker_ids.add(5)
    core.assign(TP, 5, 6)
    core.lead(TP, 5, (5, 6))
    core.put(TP, ONLINE)
    core.move([TP], ONLINE, ControlledShutdown())
    assert core.stored(TP) == (6, 1, (6,), 1, 1)
    assert sorted(core.channels.leader_and_isr()) == [5, 6]


def test_kafka_1_1_tells_only_who_stays(make_core: Any) -> None:
    """Section 6.3: restored to both in 2.3."""
    core = make_core(5, 6, version="1.1")
    core.context.shutting_down_broker_ids.add(5)
    core.assign(TP, 5, 6)
    core.lead(TP, 5, (5, 6))
    core.put(TP, ONLINE)
    core.move([TP], ONLINE, ControlledShutdown())
    assert sorted(core.channels.leader_and_isr()) == [6]


def test_a_leaderless_partition_gets_its_live_isr_member_back(core: Any) -> None:
    """CP-14."""
    core.assign(TP, 5)
    core.lead(TP, -1, (5,))
    core.put(TP, OFFLINE)
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert core.context.partition_state(TP) is ONLINE


def test_an_allowed_unclean_election_does_not_read_the_topics_config(core: Any) -> None:
    """CP-15: leader and ISR are the live replica, which alone is told."""
    core.assign(TP, 6, 5)
    core.lead(TP, 6, (6,))
    core.put(TP, OFFLINE)
    core.client.requests.clear()
    core.move([TP], ONLINE, OfflinePartition(allow_unclean=True))
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert list(core.channels.leader_and_isr()) == [5]
    assert not any("/config/" in getattr(r, "path", "") for r in core.client.requests)
    assert core.context.unclean_leader_elections == 1


@pytest.mark.parametrize(
    ("broker_default", "override", "leader"),
    [(False, None, 6), (True, None, 5), (False, "true", 5), (True, "false", 6)],
)
def test_unclean_permission_is_the_topics_override_over_the_brokers_default(
    make_core: Any, broker_default: bool, override: str | None, leader: int
) -> None:
    """CP-115, CP-116, CP-117 as far as the election decides them (section 6.1)."""
    core = make_core(5, config={"unclean.leader.election.enable": broker_default})
    if override is not None:
        config = {"unclean.leader.election.enable": override}
        core.run(core.zk.set_or_create_entity_configs("topics", "t", config))
    core.assign(TP, 6, 5)
    core.lead(TP, 6, (6,))
    core.put(TP, OFFLINE)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP)[0] == leader
    assert isinstance(outcomes[TP], LeaderAndIsr if leader == 5 else StateChangeFailed)
    assert core.context.unclean_leader_elections == (leader == 5)


def test_a_topic_config_that_cannot_be_read_fails_the_election(core: Any) -> None:
    """Only of that topic's partitions whose whole ISR is dead."""
    other = TopicPartition("u", 0)
    for tp in (TP, other):
        core.assign(tp, 6, 5)
        core.lead(tp, 6, (6,) if tp is TP else (6, 5))
        core.put(tp, OFFLINE)
    core.run(core.zk.create_recursive("/config/topics/t", b"not json"))
    outcomes = core.move([TP, other], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], ValueError)
    assert outcomes[other] == LeaderAndIsr(5, 1, (5,), 1)


@pytest.mark.parametrize("failure", [RuntimeError("lost"), ZkCode.SESSIONEXPIRED])
def test_a_failing_read_leaves_the_partition_offline(core: Any, failure: Any) -> None:
    """CP-16."""
    core.assign(TP, 5)
    core.lead(TP, -1, (5,))
    core.put(TP, OFFLINE)
    core.client.fail_next(reads_state, failure)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], Exception)
    assert core.context.partition_state(TP) is OFFLINE


@pytest.mark.parametrize("node", ["missing", "empty"])
def test_a_missing_state_leaves_the_partition_offline(core: Any, node: str) -> None:
    """CP-17: no node, or nothing in it."""
    core.assign(TP, 5)
    core.put(TP, OFFLINE)
    if node == "empty":
        core.run(core.zk.create_recursive("/brokers/topics/t/partitions/0/state"))
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], StateChangeFailed)
    assert core.context.partition_state(TP) is OFFLINE


def test_an_election_without_candidate_writes_nothing(core: Any) -> None:
    """The failure names partition and strategy; ZooKeeper keeps what it had."""
    core.assign(TP, 6, 5)
    core.lead(TP, 6, (6,))
    core.put(TP, OFFLINE)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert str(outcomes[TP]) == (
        "Failed to elect leader for partition t-0 under strategy "
        "OfflinePartitionLeaderElectionStrategy(false)"
    )
    assert core.stored(TP) == (6, 0, (6,), 0, 1)


def test_state_written_by_a_newer_controller_is_left_alone(core: Any) -> None:
    """Section 3.8: fenced in addition to the guard."""
    core.assign(TP, 5)
    core.lead(TP, -1, (5,), controller_epoch=2)
    core.put(TP, OFFLINE)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], StateChangeFailed)
    assert core.stored(TP) == (-1, 0, (5,), 0, 2)


def test_version_conflicts_are_read_and_decided_again(make_core: Any) -> None:
    """The ISR changed between read and write: the second round elects from the new one."""
    core = make_core(5, 6)
    core.assign(TP, 5, 6)
    core.lead(TP, -1, (5, 6))
    core.put(TP, OFFLINE)
    raced: list[Any] = []

    def race(request: Any) -> bool:
        if sets_state(request) and not raced:
            raced.append(request)
            core.run(core.zk.update_partition_isr(TP, LeaderAndIsr(-1, 0, (6,), 0), 1))
        return False

    core.client.fail_next(race, ZkCode.OK)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert outcomes == {TP: LeaderAndIsr(6, 1, (6,), 2)}
    assert len(raced) == 1


def test_other_write_errors_are_outcomes(core: Any) -> None:
    """Not retried, and the state stays."""
    core.assign(TP, 5)
    core.lead(TP, -1, (5,))
    core.put(TP, OFFLINE)
    core.client.fail_next(sets_state, ZkCode.SESSIONEXPIRED)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], ZooKeeperError)
    assert core.context.partition_state(TP) is OFFLINE


@pytest.mark.parametrize("state", [NEW, OFFLINE])
def test_a_moved_controller_changes_nothing(core: Any, state: PartitionState) -> None:
    """CP-73: another broker raised the epoch; the exception reaches the caller."""
    core.assign(TP, 5)
    if state is OFFLINE:
        core.lead(TP, -1, (5,))
    core.put(TP, state)
    before = core.stored(TP)
    core.run(core.zk.set_controller_epoch(9, core.context.epoch_zk_version))
    with pytest.raises(ControllerMoved):
        core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == before
    assert core.context.partition_state(TP) is state
    assert core.channels.sent == []


def test_an_election_needs_a_strategy(core: Any) -> None:
    """The mistake is every partition's outcome."""
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.put(TP, ONLINE)
    assert isinstance(core.move([TP], ONLINE)[TP], ValueError)


def test_an_empty_list_opens_no_batch(core: Any) -> None:
    """Not even if the last batch was left unsent."""
    core.batch.add_stop_replica_request_for_brokers([5], TP, False)
    assert core.move([], ONLINE, OfflinePartition()) == {}
    assert core.errors() == ""


def test_the_offline_count_follows_the_states(core: Any) -> None:
    """CP-20, CP-22: four partitions go offline and online again, or away."""
    tps = [TopicPartition("t", n) for n in range(4)]
    for tp in tps:
        core.assign(tp, 5)
    core.move(tps, NEW)
    core.move(tps, OFFLINE)
    assert core.context.offline_partition_count == 4
    for tp in tps:
        core.lead(tp, -1, (5,))
    core.move(tps, ONLINE, OfflinePartition())
    assert core.context.offline_partition_count == 0
    core.move(tps, OFFLINE)
    core.context.queue_topic_deletion(["t"])
    core.move(tps, NON_EXISTENT)
    assert core.context.offline_partition_count == 0


def test_the_offline_count_leaves_started_deletions_alone(core: Any) -> None:
    """CP-21."""
    tps = [TopicPartition("t", n) for n in range(4)]
    core.move(tps, NEW)
    core.context.queue_topic_deletion(["t"])
    core.context.begin_topic_deletion(["t"])
    core.move(tps, OFFLINE)
    assert core.context.offline_partition_count == 0


def test_startup_derives_states_and_elects(make_core: Any) -> None:
    """No leadership: New; online leader: Online, untouched; else Offline; then the trigger."""
    core = make_core(5)
    fresh, healthy, dead = (TopicPartition(t, 0) for t in ("fresh", "healthy", "dead"))
    for tp in (fresh, healthy, dead):
        core.assign(tp, 6, 5)
    core.lead(healthy, 5, (5,))
    core.lead(dead, 6, (6,))
    core.run(core.partitions.startup())
    states = {tp.topic: core.context.partition_state(tp) for tp in (fresh, healthy, dead)}
    assert states == {"fresh": ONLINE, "healthy": ONLINE, "dead": OFFLINE}
    assert core.stored(fresh) == (5, 0, (5,), 0, 1)
    assert core.stored(healthy) == (5, 0, (5,), 0, 1)


def test_the_trigger_leaves_other_topics_and_queued_ones_alone(core: Any) -> None:
    """With a topic only its partitions are tried; topics queued for deletion never."""
    tps = {t: TopicPartition(t, 0) for t in ("wanted", "other", "queued")}
    for tp in tps.values():
        core.assign(tp, 5)
        core.put(tp, NEW)
    core.context.queue_topic_deletion(["queued"])
    core.run(core.partitions.trigger_online_partition_state_change("wanted"))
    assert core.context.partitions_in_state(ONLINE) == [tps["wanted"]]
    core.run(core.partitions.trigger_online_partition_state_change())
    assert core.context.partitions_in_state(NEW) == [tps["queued"]]


def test_many_elections_cost_two_batches(make_core: Any) -> None:
    """Round trips do not grow with partitions: one read and one write batch (KAFKA-5642)."""
    core = make_core(5)
    tps = [TopicPartition("t", n) for n in range(20)]
    for tp in tps:
        core.assign(tp, 5)
        core.lead(tp, -1, (5,))
        core.put(tp, OFFLINE)
    batches: list[int] = []
    send = core.client.handle_requests

    class Counting:
        async def handle_requests(self, requests: Any) -> Any:
            batches.append(len(requests))
            return await send(requests)

    core.zk.client = Counting()
    core.move(tps, ONLINE, OfflinePartition())
    assert batches == [20, 20]
    assert core.context.partitions_in_state(ONLINE) == tps


def test_a_failing_channel_is_every_partitions_outcome(core: Any) -> None:
    """The next batch starts clean all the same."""
    core.assign(TP, 5)
    core.lead(TP, -1, (5,))
    core.put(TP, OFFLINE)
    core.channels.failure = RuntimeError("no queue")
    assert isinstance(core.move([TP], ONLINE, OfflinePartition())[TP], Exception)
    core.channels.failure = None
    core.batch.new_batch()


# --- 0.10


def test_kafka_0_10_goes_partition_by_partition_without_guard(make_core: Any) -> None:
    """Read, write, read, write: nothing is batched, nothing is a transaction."""
    core = make_core(5, version="0.10")
    tps = [TopicPartition("t", n) for n in range(2)]
    for tp in tps:
        core.assign(tp, 5)
        core.lead(tp, -1, (5,))
        core.put(tp, OFFLINE)
    core.client.requests.clear()
    outcomes = core.move(tps, ONLINE, OfflinePartition())
    assert outcomes == {tp: LeaderAndIsr(5, 1, (5,), 1) for tp in tps}
    kinds = [type(request) for request in core.client.requests]
    assert kinds == [GetDataRequest, SetDataRequest] * 2


def test_kafka_0_10_elects_uncleanly_by_default(make_core: Any) -> None:
    """The default changed in 0.11."""
    core = make_core(5, version="0.10")
    core.assign(TP, 6, 5)
    core.lead(TP, 6, (6,))
    core.put(TP, OFFLINE)
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert core.context.unclean_leader_elections == 1


def test_kafka_0_10_swallows_elections_not_needed(make_core: Any) -> None:
    """The partition is set Online, nothing is written or sent."""
    core = make_core(5, version="0.10")
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.put(TP, ONLINE)
    assert core.move([TP], ONLINE, PreferredReplica()) == {TP: LeaderAndIsr(5, 0, (5,), 0)}
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    assert core.channels.sent == []


def test_kafka_0_10_reassign_and_controlled_shutdown(make_core: Any) -> None:
    """Each strategy has its selector."""
    core = make_core(5, 6, version="0.10")
    core.context.update_partition_full_replica_assignment(TP, ReplicaAssignment((6, 5), (), (5,)))
    core.run(core.zk.create_recursive("/brokers/topics/t"))
    core.lead(TP, 5, (5, 6))
    core.put(TP, ONLINE)
    assert core.move([TP], ONLINE, Reassign())[TP] == LeaderAndIsr(6, 1, (5, 6), 1)
    core.context.shutting_down_broker_ids.add(6)
    assert core.move([TP], ONLINE, ControlledShutdown())[TP] == LeaderAndIsr(5, 2, (5,), 2)
    core.context.shutting_down_broker_ids.add(5)
    assert isinstance(core.move([TP], ONLINE, ControlledShutdown())[TP], StateChangeFailed)


def test_kafka_0_10_without_strategy_rewrites_what_is_there(make_core: Any) -> None:
    """The default selector warns and changes nothing but the version."""
    core = make_core(5, version="0.10")
    core.assign(TP, 5)
    core.lead(TP, 5, (5,))
    core.put(TP, ONLINE)
    assert core.move([TP], ONLINE)[TP] == LeaderAndIsr(5, 0, (5,), 1)
    assert [level for level, _ in core.logged] == ["warn"]
    assert len(core.channels.of(LeaderAndIsrRequest)) == 1
