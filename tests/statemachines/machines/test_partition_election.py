"""Leader election by the partition state machine
(docs/kafka/partition-states.md, docs/kafka/election.md#strategies)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.election.errors import StateChangeFailed
from fakekafka.election.strategies import (
    ControlledShutdown,
    OfflinePartition,
    PreferredReplica,
    Reassign,
)
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.machines.ordered_set import OrderedSet
from fakekafka.statemachines.machines.transitions import PartitionState
from fakekafka.statemachines.zookeeper.errors import ControllerMoved
from fakekafka.tests.support.controller_core import Core, MakeCore
from fakekafka.tests.support.present import present
from fakekafka.zkfake.messages import (
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)

TP = TopicPartition("t", 0)
NEW, ONLINE = PartitionState.NEW, PartitionState.ONLINE
OFFLINE, NON_EXISTENT = PartitionState.OFFLINE, PartitionState.NON_EXISTENT


def reads_state(request: Any) -> bool:
    return isinstance(request, GetDataRequest) and request.path.endswith("/state")


def sets_state(request: Any) -> bool:
    return isinstance(request, MultiRequest) and isinstance(request.operations[1], SetDataRequest)


def test_electing_the_current_leader_still_raises_the_epoch(core: Core) -> None:
    """CP-9: LeaderAndIsr without is_new; the outcome is the value as written."""
    core.have(TP, ONLINE, (5,), 5, (5,))
    outcomes = core.move([TP], ONLINE, PreferredReplica())
    assert outcomes == {TP: LeaderAndIsr(5, 1, (5,), 1)}
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    [state] = core.channels.leader_and_isr()[5]
    assert (state.leader_epoch, state.zk_version, state.is_new) == (1, 1, False)


def test_a_reassignment_elects_among_its_targets(make_core: MakeCore) -> None:
    """Replicas that it removes do not lead, even if they are live and in sync."""
    core = make_core(5, 6)
    assignment = ReplicaAssignment((6, 5, 7), (5, 7), (6,))
    core.assign(TP, 6, 5, 7)
    core.context.topics.update_partition_full_replica_assignment(TP, assignment)
    core.lead(TP, -1, (6, 5))
    core.put(TP, OFFLINE)
    assert core.move([TP], ONLINE, Reassign()) == {TP: LeaderAndIsr(5, 1, (6, 5), 1)}


@pytest.mark.parametrize(("version", "told"), [("1.1", [6]), ("2.8", [5, 6])])
def test_a_leaving_broker_learns_of_its_successor_since_2_1(
    make_core: MakeCore, version: str, told: list[int]
) -> None:
    """KAFKA-7482: in 1.1 and 2.0 the leaving broker did not count as online."""
    core = make_core(5, 6, version=version)
    core.context.brokers.shutting_down_broker_ids.add(5)
    core.have(TP, ONLINE, (5, 6), 5, (5, 6))
    core.move([TP], ONLINE, ControlledShutdown())
    assert sorted(core.channels.leader_and_isr()) == told


def test_controlled_shutdown_moves_the_leader_and_informs_both_replicas(
    make_core: MakeCore,
) -> None:
    """CP-10."""
    core = make_core(5, 6)
    core.context.brokers.shutting_down_broker_ids.add(5)
    core.have(TP, ONLINE, (5, 6), 5, (5, 6))
    core.move([TP], ONLINE, ControlledShutdown())
    assert core.stored(TP) == (6, 1, (6,), 1, 1)
    assert sorted(core.channels.leader_and_isr()) == [5, 6]


def test_kafka_1_1_informs_only_the_remaining_replicas(make_core: MakeCore) -> None:
    """Since 2.1 the leaving broker gets LeaderAndIsr again (KAFKA-7482)
    (docs/kafka/election.md#selectors)."""
    core = make_core(5, 6, version="1.1")
    core.context.brokers.shutting_down_broker_ids.add(5)
    core.have(TP, ONLINE, (5, 6), 5, (5, 6))
    core.move([TP], ONLINE, ControlledShutdown())
    assert sorted(core.channels.leader_and_isr()) == [6]


def test_a_leaderless_partition_gets_its_live_isr_member_back(core: Core) -> None:
    """CP-14."""
    core.have(TP, OFFLINE, (5,), -1, (5,))
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert core.context.states.partition_state(TP) is ONLINE


def test_an_allowed_unclean_election_does_not_read_the_topics_config(core: Core) -> None:
    """CP-15: the live replica becomes leader and ISR, and is the only recipient."""
    core.have(TP, OFFLINE, (6, 5), 6, (6,))
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
    make_core: MakeCore, broker_default: bool, override: str | None, leader: int
) -> None:
    """CP-115, CP-116, CP-117, for the election's part (docs/kafka/election.md#unclean-election)."""
    core = make_core(5, config={"unclean.leader.election.enable": broker_default})
    if override is not None:
        config = {"unclean.leader.election.enable": override}
        core.run(core.zk.admin.set_or_create_entity_configs("topics", "t", config))
    core.have(TP, OFFLINE, (6, 5), 6, (6,))
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert present(core.stored(TP))[0] == leader
    assert isinstance(outcomes[TP], LeaderAndIsr if leader == 5 else StateChangeFailed)
    assert core.context.unclean_leader_elections == (leader == 5)


def test_a_clean_election_is_not_counted_as_unclean(core: Core) -> None:
    """A leader from the ISR loses no records, even if an unclean leader was allowed."""
    core.have(TP, OFFLINE, (6, 5), 6, (6, 5))
    core.move([TP], ONLINE, OfflinePartition(allow_unclean=True))
    assert present(core.stored(TP))[0] == 5
    assert core.context.unclean_leader_elections == 0


def test_an_isr_whose_log_directories_failed_is_dead(make_core: MakeCore) -> None:
    """Its brokers live, but none has the log, so that only an unclean election is possible."""
    core = make_core(5, 6, config={"unclean.leader.election.enable": True})
    core.context.brokers.replicas_on_offline_dirs[6] = OrderedSet([TP])
    core.have(TP, OFFLINE, (6, 5), 6, (6,))
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 1, (5,), 1, 1)


def test_a_topic_config_that_cannot_be_read_fails_the_election(core: Core) -> None:
    """Only the topic's partitions whose whole ISR is dead fail."""
    other = TopicPartition("u", 0)
    for tp in (TP, other):
        core.have(tp, OFFLINE, (6, 5), 6, (6,) if tp is TP else (6, 5))
    core.run(core.zk.requests.create_recursive("/config/topics/t", b"not json"))
    outcomes = core.move([TP, other], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], ValueError)
    assert outcomes[other] == LeaderAndIsr(5, 1, (5,), 1)


@pytest.mark.parametrize("failure", [RuntimeError("lost"), ZkCode.SESSIONEXPIRED])
def test_a_failing_read_leaves_the_partition_offline(core: Core, failure: Any) -> None:
    """CP-16."""
    core.have(TP, OFFLINE, (5,), -1, (5,))
    core.client.fail_next(reads_state, failure)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], Exception)
    assert core.context.states.partition_state(TP) is OFFLINE


@pytest.mark.parametrize("node", ["missing", "empty"])
def test_a_missing_state_leaves_the_partition_offline(core: Core, node: str) -> None:
    """CP-17: the node is missing or empty."""
    core.assign(TP, 5)
    core.put(TP, OFFLINE)
    if node == "empty":
        core.run(core.zk.requests.create_recursive("/brokers/topics/t/partitions/0/state"))
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], StateChangeFailed)
    assert core.context.states.partition_state(TP) is OFFLINE


def test_an_election_without_candidate_writes_nothing(core: Core) -> None:
    """The error names partition and strategy, and ZooKeeper is not changed."""
    core.have(TP, OFFLINE, (6, 5), 6, (6,))
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert str(outcomes[TP]) == (
        "Failed to elect leader for partition t-0 under strategy "
        "OfflinePartitionLeaderElectionStrategy(false)"
    )
    assert core.stored(TP) == (6, 0, (6,), 0, 1)


def test_state_written_by_a_newer_controller_is_left_alone(core: Core) -> None:
    """This check is in addition to the guard of writes
    (docs/kafka/controller-failover.md#controller-epochs)."""
    core.have(TP, OFFLINE, (5,), -1, (5,), controller_epoch=2)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], StateChangeFailed)
    assert core.stored(TP) == (-1, 0, (5,), 0, 2)


def test_version_conflicts_are_read_and_decided_again(make_core: MakeCore) -> None:
    """The ISR changed between read and write: the second round elects from the new one."""
    core = make_core(5, 6)
    core.have(TP, OFFLINE, (5, 6), -1, (5, 6))
    raced: list[Any] = []

    def race(request: Any) -> bool:
        if sets_state(request) and not raced:
            raced.append(request)
            core.run(core.zk.topics.update_partition_isr(TP, LeaderAndIsr(-1, 0, (6,), 0), 1))
        return False

    core.client.fail_next(race, ZkCode.OK)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert outcomes == {TP: LeaderAndIsr(6, 1, (6,), 2)}
    assert len(raced) == 1


def test_other_write_errors_are_outcomes(core: Core) -> None:
    """They are not retried, and the state does not change."""
    core.have(TP, OFFLINE, (5,), -1, (5,))
    core.client.fail_next(sets_state, ZkCode.SESSIONEXPIRED)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert isinstance(outcomes[TP], ZooKeeperError)
    assert core.context.states.partition_state(TP) is OFFLINE


@pytest.mark.parametrize("state", [NEW, OFFLINE])
def test_a_moved_controller_changes_nothing(core: Core, state: PartitionState) -> None:
    """CP-73: another broker raised the epoch, and the exception reaches the caller."""
    core.assign(TP, 5)
    if state is OFFLINE:
        core.lead(TP, -1, (5,))
    core.put(TP, state)
    before = core.stored(TP)
    core.run(core.zk.brokers.set_controller_epoch(9, core.context.epoch_zk_version))
    with pytest.raises(ControllerMoved):
        core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == before
    assert core.context.states.partition_state(TP) is state
    assert core.channels.sent == []


def test_an_election_needs_a_strategy(core: Core) -> None:
    """The error is every partition's outcome."""
    core.have(TP, ONLINE, (5,), 5, (5,))
    assert isinstance(core.move([TP], ONLINE)[TP], ValueError)


def test_many_elections_cost_two_batches(make_core: MakeCore) -> None:
    """Round trips do not grow with partitions: one read and one write batch (KAFKA-5642)."""
    core = make_core(5)
    tps = [TopicPartition("t", n) for n in range(20)]
    for tp in tps:
        core.have(tp, OFFLINE, (5,), -1, (5,))
    batches = core.count_batches()
    core.move(tps, ONLINE, OfflinePartition())
    assert batches == [20, 20]
    assert core.context.states.partitions_in_states([ONLINE]) == tps


# -- as Kafka 0.10 did them (docs/kafka/election.md#selectors) -------------------------------------


def test_kafka_0_10_elects_partition_by_partition_without_an_epoch_check(
    make_core: MakeCore,
) -> None:
    """Partitions are read and written one by one, without batches or transactions."""
    core = make_core(5, version="0.10")
    tps = [TopicPartition("t", n) for n in range(2)]
    for tp in tps:
        core.have(tp, OFFLINE, (5,), -1, (5,))
    core.client.requests.clear()
    outcomes = core.move(tps, ONLINE, OfflinePartition())
    assert outcomes == {tp: LeaderAndIsr(5, 1, (5,), 1) for tp in tps}
    kinds = [type(request) for request in core.client.requests]
    assert kinds == [GetDataRequest, SetDataRequest] * 2


def test_kafka_0_10_elects_uncleanly_by_default(make_core: MakeCore) -> None:
    """The default changed in 0.11."""
    core = make_core(5, version="0.10")
    core.have(TP, OFFLINE, (6, 5), 6, (6,))
    core.move([TP], ONLINE, OfflinePartition())
    assert core.stored(TP) == (5, 1, (5,), 1, 1)
    assert core.context.unclean_leader_elections == 1


def test_kafka_0_10_rereads_and_elects_again_after_a_conflicting_write(
    make_core: MakeCore,
) -> None:
    """The second round elects from the ISR as stored then."""
    core = make_core(5, 6, version="0.10")
    core.assign(TP, 5, 6)
    core.lead(TP, -1, (5, 6))
    core.put(TP, OFFLINE)
    raced: list[object] = []

    def race(request: object) -> bool:
        if isinstance(request, SetDataRequest) and not raced:
            raced.append(request)
            core.run(core.zk.topics.update_partition_isr(TP, LeaderAndIsr(-1, 0, (6,), 0), 1))
        return False

    core.client.fail_next(race, ZkCode.OK)
    outcomes = core.move([TP], ONLINE, OfflinePartition())
    assert outcomes == {TP: LeaderAndIsr(6, 1, (6,), 2)}
    assert len(raced) == 1


def test_kafka_0_10_leaves_the_state_of_a_newer_controller_alone(make_core: MakeCore) -> None:
    core = make_core(5, version="0.10")
    core.have(TP, OFFLINE, (5,), -1, (5,), controller_epoch=core.context.epoch + 1, cached=False)
    outcome = core.move([TP], ONLINE, OfflinePartition())[TP]
    assert isinstance(outcome, StateChangeFailed)
    assert core.stored(TP) == (-1, 0, (5,), 0, core.context.epoch + 1)


def test_kafka_0_10_swallows_elections_not_needed(make_core: MakeCore) -> None:
    """The partition is set Online, nothing is written or sent."""
    core = make_core(5, version="0.10")
    core.have(TP, ONLINE, (5,), 5, (5,))
    assert core.move([TP], ONLINE, PreferredReplica()) == {TP: LeaderAndIsr(5, 0, (5,), 0)}
    assert core.stored(TP) == (5, 0, (5,), 0, 1)
    assert core.channels.sent == []


def test_kafka_0_10_reassign_and_controlled_shutdown(make_core: MakeCore) -> None:
    """Each strategy has its selector."""
    core = make_core(5, 6, version="0.10")
    core.context.topics.update_partition_full_replica_assignment(
        TP, ReplicaAssignment((6, 5), (), (5,))
    )
    core.run(core.zk.requests.create_recursive("/brokers/topics/t"))
    core.lead(TP, 5, (5, 6))
    core.put(TP, ONLINE)
    assert core.move([TP], ONLINE, Reassign())[TP] == LeaderAndIsr(6, 1, (5, 6), 1)
    core.context.brokers.shutting_down_broker_ids.add(6)
    assert core.move([TP], ONLINE, ControlledShutdown())[TP] == LeaderAndIsr(5, 2, (5,), 2)
    core.context.brokers.shutting_down_broker_ids.add(5)
    assert isinstance(core.move([TP], ONLINE, ControlledShutdown())[TP], StateChangeFailed)


def test_kafka_0_10_without_a_strategy_rewrites_the_current_state(make_core: MakeCore) -> None:
    """The default selector logs a warning and changes only the version."""
    core = make_core(5, version="0.10")
    core.have(TP, ONLINE, (5,), 5, (5,))
    assert core.move([TP], ONLINE)[TP] == LeaderAndIsr(5, 0, (5,), 1)
    assert [level for level, _ in core.logged] == ["warn"]
    assert len(core.channels.of(LeaderAndIsrRequest)) == 1


def test_kafka_0_10_warns_of_an_election_without_a_selector(make_core: MakeCore) -> None:
    """``NoOpLeaderSelector``: nothing changes, not even the epoch, but every replica gets
    LeaderAndIsr."""
    core = make_core(5, 6, version="0.10")
    core.have(TP, ONLINE, (5, 6), 6, (6,))
    assert core.move([TP], ONLINE, None) == {TP: LeaderAndIsr(6, 0, (6,), 1)}
    assert ("warn", "an election without a strategy was requested for t-0") in core.logged
    assert list(core.channels.leader_and_isr()) == [5, 6]
