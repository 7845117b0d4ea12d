"""Elections of the partition state machine as Kafka 0.10 did them
(docs/kafka/election.md#selectors)."""

from __future__ import annotations

from fakekafka.election.errors import StateChangeFailed
from fakekafka.election.strategies import (
    ControlledShutdown,
    OfflinePartition,
    PreferredReplica,
    Reassign,
)
from fakekafka.protocol.control import LeaderAndIsrRequest
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.machines.transitions import PartitionState
from fakekafka.tests.support.controller_core import MakeCore
from fakekafka.zkfake.messages import GetDataRequest, SetDataRequest, ZkCode

TP = TopicPartition("t", 0)
NEW, ONLINE = PartitionState.NEW, PartitionState.ONLINE
OFFLINE, NON_EXISTENT = PartitionState.OFFLINE, PartitionState.NON_EXISTENT


def test_kafka_0_10_goes_partition_by_partition_without_guard(make_core: MakeCore) -> None:
    """Read, write, read, write: nothing is batched, nothing is a transaction."""
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


def test_kafka_0_10_reads_and_decides_again_what_another_wrote_meanwhile(
    make_core: MakeCore,
) -> None:
    """The second round elects from the ISR that it finds then."""
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


def test_kafka_0_10_leaves_what_a_newer_controller_wrote(make_core: MakeCore) -> None:
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


def test_kafka_0_10_without_strategy_rewrites_what_is_there(make_core: MakeCore) -> None:
    """The default selector warns and changes nothing but the version."""
    core = make_core(5, version="0.10")
    core.have(TP, ONLINE, (5,), 5, (5,))
    assert core.move([TP], ONLINE)[TP] == LeaderAndIsr(5, 0, (5,), 1)
    assert [level for level, _ in core.logged] == ["warn"]
    assert len(core.channels.of(LeaderAndIsrRequest)) == 1


def test_kafka_0_10_warns_of_an_election_without_a_selector(make_core: MakeCore) -> None:
    """``NoOpLeaderSelector``: nothing changes, not even the epoch; every replica is told."""
    core = make_core(5, 6, version="0.10")
    core.have(TP, ONLINE, (5, 6), 6, (6,))
    assert core.move([TP], ONLINE, None) == {TP: LeaderAndIsr(6, 0, (6,), 1)}
    assert ("warn", "an election that changes nothing was asked for t-0") in core.logged
    assert list(core.channels.leader_and_isr()) == [5, 6]
