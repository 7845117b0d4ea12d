"""The four election strategies (docs/kafka/election.md#strategies)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.election.strategies import (
    ControlledShutdown,
    OfflinePartition,
    PreferredReplica,
    Reassign,
    controlled_shutdown_partition_leader_election,
    leader_for_controlled_shutdown,
    leader_for_offline,
    leader_for_preferred_replica,
    leader_for_reassign,
    offline_partition_leader_election,
    preferred_replica_partition_leader_election,
    reassign_partition_leader_election,
)
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition

TP = TopicPartition("t", 0)


def online(*live: int) -> Callable[[int, TopicPartition], bool]:
    return lambda broker_id, _tp: broker_id in live


def replicas(*assignment: int) -> Callable[[TopicPartition], tuple[int, ...]]:
    return lambda _tp: assignment


@pytest.mark.parametrize(
    ("assignment", "isr", "live", "unclean", "expected"),
    [
        pytest.param([2, 4], [2, 4], {4}, False, (4, False), id="CP-37"),
        pytest.param([2, 4], [2], {4}, False, (None, False), id="CP-38"),
        pytest.param([2, 4], [2], {4}, True, (4, True), id="CP-39"),
        pytest.param([3, 1, 2], [1, 2, 3], {1, 2}, False, (1, False), id="order-of-assignment"),
        pytest.param([2, 4], [4], {2, 4}, True, (4, False), id="in-sync-before-first"),
        pytest.param([2, 4], [2], set(), True, (None, False), id="nobody-alive"),
    ],
)
def test_offline_election_takes_the_first_live_in_sync_replica(
    assignment: list[int],
    isr: list[int],
    live: set[int],
    unclean: bool,
    expected: tuple[int | None, bool],
) -> None:
    """The first live ISR member in assignment order leads; without one, if permitted, any live
    replica. CP-37, CP-38, CP-39."""
    assert expected == offline_partition_leader_election(assignment, isr, live, unclean)


@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        pytest.param([2, 4], {4}, 4, id="CP-40"),
        pytest.param([2], set(), None, id="CP-41"),
        pytest.param([], {2}, None, id="CP-42"),
        pytest.param([4, 2], {2, 4}, 2, id="target-order"),
    ],
)
def test_reassign_election_takes_the_first_live_in_sync_target(
    isr: list[int], live: set[int], expected: int | None
) -> None:
    """CP-40, CP-41, CP-42."""
    assert expected == reassign_partition_leader_election([2, 4], isr, live)


@pytest.mark.parametrize(
    ("isr", "live", "expected"),
    [
        pytest.param([2, 4], {2, 4}, 2, id="CP-43"),
        pytest.param([2], set(), None, id="CP-44"),
        pytest.param([4], {2, 4}, None, id="CP-45"),
        pytest.param([], set(), None, id="CP-46"),
    ],
)
def test_preferred_election_takes_the_first_replica_or_none(
    isr: list[int], live: set[int], expected: int | None
) -> None:
    """It never falls through to a later replica: CP-43, CP-44, CP-45, CP-46."""
    assert expected == preferred_replica_partition_leader_election([2, 4], isr, live)


def test_preferred_election_of_an_unassigned_partition_finds_no_leader() -> None:
    """Without replicas there is no preferred replica."""
    assert preferred_replica_partition_leader_election([], [1], {1}) is None


@pytest.mark.parametrize(
    ("isr", "leaving", "expected"),
    [
        pytest.param([2, 4], {2}, 4, id="CP-47"),
        pytest.param([2], {2}, None, id="CP-48"),
        pytest.param([2, 4], {2, 4}, None, id="CP-49"),
    ],
)
def test_controlled_shutdown_election_takes_a_replica_that_stays(
    isr: list[int], leaving: set[int], expected: int | None
) -> None:
    """CP-47, CP-48, CP-49."""
    chosen = controlled_shutdown_partition_leader_election([2, 4], isr, {2, 4}, leaving)
    assert expected == chosen


def test_controlled_shutdown_election_skips_dead_brokers() -> None:
    """An ISR member on a dead broker is passed over."""
    chosen = controlled_shutdown_partition_leader_election([2, 3, 4], [2, 3, 4], {2, 4}, {2})
    assert chosen == 4


def test_candidates_are_tried_in_the_order_of_the_assignment() -> None:
    """The order of the ISR, in which its members joined, does not matter."""
    assigned, isr, live = [1, 2, 3], [3, 2], {2, 3}
    assert controlled_shutdown_partition_leader_election(assigned, isr, live, {1}) == 2
    assert reassign_partition_leader_election(assigned, isr, live) == 2
    assert offline_partition_leader_election(assigned, isr, live, False) == (2, False)


def test_a_clean_offline_election_drops_all_dead_isr_members_in_isr_order() -> None:
    """The new ISR keeps the order of the old one, without its dead members."""
    stored = LeaderAndIsr(1, 7, (4, 3, 2, 1), zk_version=9)

    [result] = leader_for_offline([(TP, stored, False)], replicas(1, 2, 3, 4), online(2, 4))

    assert LeaderAndIsr(2, 8, (4, 2), 9) == result.leader_and_isr
    assert result.live_replicas == (2, 4)
    assert not result.unclean


def test_an_unclean_offline_election_leaves_the_leader_alone_in_the_isr() -> None:
    """CP-15: a leader from outside the ISR becomes its only member."""
    stored = LeaderAndIsr(6, 0, (6,), 0)

    [result] = leader_for_offline([(TP, stored, True)], replicas(6, 5), online(5))

    assert LeaderAndIsr(5, 1, (5,), 0) == result.leader_and_isr
    assert result.live_replicas == (5,)
    assert result.unclean


def test_an_offline_election_without_a_candidate_still_names_live_replicas() -> None:
    """There is no leader and nothing to write, but the live replicas are returned."""
    stored = LeaderAndIsr(1, 0, (1,), 0)

    [result] = leader_for_offline([(TP, stored, False)], replicas(1, 2), online(2))

    assert result.leader_and_isr is None
    assert result.live_replicas == (2,)


def test_a_reassign_election_includes_dead_target_replicas_in_the_recipients() -> None:
    """Dead target replicas are recipients, too, and the ISR stays."""
    stored = LeaderAndIsr(1, 2, (1, 4), 5)

    [result] = leader_for_reassign([(TP, stored)], replicas(3, 4), online(1, 4))

    assert LeaderAndIsr(4, 3, (1, 4), 5) == result.leader_and_isr
    assert result.live_replicas == (3, 4)


def test_a_preferred_election_keeps_the_isr_and_informs_all_replicas() -> None:
    """The leader epoch rises even if the leader stays the same."""
    stored = LeaderAndIsr(1, 4, (2, 1), 5)

    [result] = leader_for_preferred_replica([(TP, stored)], replicas(1, 2, 3), online(1, 2))

    assert LeaderAndIsr(1, 5, (2, 1), 5) == result.leader_and_isr
    assert result.live_replicas == (1, 2, 3)


def test_a_controlled_shutdown_election_drops_every_leaving_broker() -> None:
    """All brokers that are shutting down leave the ISR, and they get LeaderAndIsr, too."""
    stored = LeaderAndIsr(1, 0, (1, 2, 3), 0)

    [result] = leader_for_controlled_shutdown(
        [(TP, stored)], replicas(1, 2, 3), online(1, 2, 3), (1, 2)
    )

    assert LeaderAndIsr(3, 1, (3,), 0) == result.leader_and_isr
    assert result.live_replicas == (1, 2, 3)


def test_a_controlled_shutdown_election_leaves_dead_members_in_the_isr() -> None:
    """Only brokers that shut down leave the ISR; dead ones leave when their failure is handled."""
    stored = LeaderAndIsr(1, 0, (1, 2, 3), 0)

    [result] = leader_for_controlled_shutdown([(TP, stored)], replicas(1, 2, 3), online(1, 2), (1,))

    assert LeaderAndIsr(2, 1, (2, 3), 0) == result.leader_and_isr


def test_a_leaving_broker_that_does_not_count_as_online_is_no_recipient() -> None:
    """As in Kafka 1.1 (docs/kafka/election.md#selectors)."""
    stored = LeaderAndIsr(1, 0, (1, 2), 0)

    [result] = leader_for_controlled_shutdown([(TP, stored)], replicas(1, 2), online(2), (1,))

    assert LeaderAndIsr(2, 1, (2,), 0) == result.leader_and_isr
    assert result.live_replicas == (2,)


def test_strategies_are_named_as_in_kafkas_messages() -> None:
    """Error messages that clients see contain these names."""
    assert [str(OfflinePartition(True)), str(Reassign()), str(PreferredReplica()),
          str(ControlledShutdown())] == [
        "OfflinePartitionLeaderElectionStrategy(true)",
        "ReassignPartitionLeaderElectionStrategy",
        "PreferredReplicaPartitionLeaderElectionStrategy",
        "ControlledShutdownPartitionLeaderElectionStrategy",
    ]  # fmt: skip
