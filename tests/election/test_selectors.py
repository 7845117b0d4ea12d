"""The leader selectors of Kafka 0.10 (docs/kafka/election.md#selectors)."""

from __future__ import annotations

import pytest
from fakekafka.election.errors import LeaderElectionNotNeeded, NoReplicaOnline, StateChangeFailed
from fakekafka.election.selectors import (
    select_for_controlled_shutdown,
    select_for_offline,
    select_for_reassignment,
    select_preferred,
)
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition

TP = TopicPartition("t", 0)


def test_the_offline_selector_prefers_live_isr_members_in_assignment_order() -> None:
    """Leader epoch and version each rise by one, and dead members leave the ISR."""
    selected = select_for_offline(TP, LeaderAndIsr(3, 4, (3, 2, 1), 6), (3, 1, 2), (1, 2), False)

    assert (LeaderAndIsr(1, 5, (2, 1), 7), (1, 2)) == selected


def test_the_offline_selector_falls_back_to_any_live_replica_if_permitted() -> None:
    """Unclean election was on by default before 0.11."""
    selected = select_for_offline(TP, LeaderAndIsr(1, 0, (1,), 0), (1, 2, 3), (2, 3), True)

    assert (LeaderAndIsr(2, 1, (2,), 1), (2, 3)) == selected


@pytest.mark.parametrize(
    ("replicas", "live", "unclean", "reason"),
    [
        ((), (1,), True, "no replicas are assigned"),
        ((1, 2), (2,), False, "unclean election is off"),
        ((1, 2), (), True, "no replica of t-0 is alive"),
    ],
)
def test_the_offline_selector_reports_why_no_replica_can_lead(
    replicas: tuple[int, ...], live: tuple[int, ...], unclean: bool, reason: str
) -> None:
    """There are three reasons, all reported by the same exception type."""
    with pytest.raises(NoReplicaOnline, match=reason):
        select_for_offline(TP, LeaderAndIsr(1, 0, (1,), 0), replicas, live, unclean)


def test_the_reassigned_selector_looks_at_the_new_replicas_only() -> None:
    """The ISR stays, and all new replicas get LeaderAndIsr."""
    selected = select_for_reassignment(TP, LeaderAndIsr(1, 0, (1, 4), 0), (3, 4), (1, 4))

    assert (LeaderAndIsr(4, 1, (1, 4), 1), (3, 4)) == selected


def test_the_reassigned_selector_skips_dead_and_out_of_sync_replicas() -> None:
    """The first replica that is live and in sync leads, whatever its position in the list."""
    current = LeaderAndIsr(1, 0, (1, 3, 5), 0)

    selected, _ = select_for_reassignment(TP, current, (3, 4, 5), (1, 4, 5))

    assert (selected.leader, selected.isr) == (5, (1, 3, 5))


@pytest.mark.parametrize(
    ("reassigned", "reason"), [((), "list of reassigned .* empty"), ((3,), "none of the")]
)
def test_the_reassigned_selector_distinguishes_an_empty_list(
    reassigned: tuple[int, ...], reason: str
) -> None:
    """The message for an empty list differs from that for a list without an eligible replica."""
    with pytest.raises(NoReplicaOnline, match=reason):
        select_for_reassignment(TP, LeaderAndIsr(1, 0, (1,), 0), reassigned, (1, 3))


def test_the_preferred_selector_elects_the_first_replica() -> None:
    """It must be alive and in the ISR."""
    selected = select_preferred(TP, LeaderAndIsr(2, 3, (2, 1), 4), (1, 2), (1, 2), 2)

    assert (LeaderAndIsr(1, 4, (2, 1), 5), (1, 2)) == selected


def test_the_preferred_selector_decides_by_the_cached_leader_whether_it_is_needed() -> None:
    """Even if the leader in ZooKeeper differs."""
    with pytest.raises(LeaderElectionNotNeeded):
        select_preferred(TP, LeaderAndIsr(2, 3, (2, 1), 4), (1, 2), (1, 2), 1)


@pytest.mark.parametrize(("live", "isr"), [((2,), (1, 2)), ((1, 2), (2,))])
def test_the_preferred_selector_elects_no_other_replica(
    live: tuple[int, ...], isr: tuple[int, ...]
) -> None:
    """If the preferred replica is dead or not in sync, there is no election."""
    with pytest.raises(StateChangeFailed):
        select_preferred(TP, LeaderAndIsr(2, 0, isr, 0), (1, 2), live, 2)


def test_the_controlled_shutdown_selector_includes_the_leaving_broker_in_the_recipients() -> None:
    """LeaderAndIsr goes to live brokers and those shutting down; the latter leave the ISR."""
    current = LeaderAndIsr(1, 0, (1, 2), 0)

    selected = select_for_controlled_shutdown(TP, current, (1, 2, 3), (1, 2), (1,))

    assert (LeaderAndIsr(2, 1, (2,), 1), (1, 2)) == selected


def test_the_controlled_shutdown_selector_fails_when_all_of_the_isr_leaves() -> None:
    """The error is StateChangeFailed, not NoReplicaOnline."""
    with pytest.raises(StateChangeFailed, match="shutting down"):
        select_for_controlled_shutdown(TP, LeaderAndIsr(1, 0, (1,), 0), (1, 2), (1, 2), (1,))
