"""The leader selectors of Kafka 0.10 (docs/kafka/election.md#selectors)."""

from __future__ import annotations

import pytest
from fakekafka.election.errors import LeaderElectionNotNeeded, NoReplicaOnline, StateChangeFailed
from fakekafka.election.selectors import (
    ControlledShutdownLeaderSelector,
    NoOpLeaderSelector,
    OfflinePartitionLeaderSelector,
    PreferredReplicaPartitionLeaderSelector,
    ReassignedPartitionLeaderSelector,
)
from fakekafka.protocol.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, TopicPartition

TP = TopicPartition("t", 0)


class Cluster:
    """One partition and the brokers around it."""

    def __init__(
        self,
        replicas: tuple[int, ...],
        registered: tuple[int, ...],
        shutting_down: tuple[int, ...] = (),
        cached_leader: int | None = None,
    ) -> None:
        self.replicas = replicas
        self.live_or_shutting_down_broker_ids = registered
        self.shutting_down_broker_ids = shutting_down
        self.live_broker_ids = tuple(b for b in registered if b not in shutting_down)
        self.cached_leader = cached_leader

    @property
    def brokers(self) -> Cluster:
        return self

    @property
    def topics(self) -> Cluster:
        return self

    def partition_replica_assignment(self, _tp: TopicPartition) -> tuple[int, ...]:
        return self.replicas

    def partition_leadership_info(self, _tp: TopicPartition) -> LeaderIsrAndControllerEpoch | None:
        if self.cached_leader is None:
            return None
        return LeaderIsrAndControllerEpoch(LeaderAndIsr(self.cached_leader, 0, (), 0), 1)


def test_the_offline_selector_prefers_live_isr_members_in_assignment_order() -> None:
    """Epoch and version each rise by one; the ISR loses its dead members."""
    cluster = Cluster((3, 1, 2), registered=(1, 2))
    selector = OfflinePartitionLeaderSelector(cluster, lambda _topic: False)

    selected = selector.select_leader(TP, LeaderAndIsr(3, 4, (3, 2, 1), 6))

    assert (LeaderAndIsr(1, 5, (2, 1), 7), (1, 2)) == selected


def test_the_offline_selector_falls_back_to_any_live_replica_if_permitted() -> None:
    """Unclean election was on by default before 0.11."""
    cluster = Cluster((1, 2, 3), registered=(2, 3))
    selector = OfflinePartitionLeaderSelector(cluster, lambda _topic: True)

    selected = selector.select_leader(TP, LeaderAndIsr(1, 0, (1,), 0))

    assert (LeaderAndIsr(2, 1, (2,), 1), (2, 3)) == selected


@pytest.mark.parametrize(
    ("replicas", "registered", "unclean", "reason"),
    [
        ((), (1,), True, "no replicas are assigned"),
        ((1, 2), (2,), False, "unclean election is off"),
        ((1, 2), (), True, "no replica of t-0 is alive"),
    ],
)
def test_the_offline_selector_says_why_nobody_can_lead(
    replicas: tuple[int, ...], registered: tuple[int, ...], unclean: bool, reason: str
) -> None:
    """Three distinct reasons, one exception."""
    selector = OfflinePartitionLeaderSelector(Cluster(replicas, registered), lambda _t: unclean)
    with pytest.raises(NoReplicaOnline, match=reason):
        selector.select_leader(TP, LeaderAndIsr(1, 0, (1,), 0))


def test_the_reassigned_selector_looks_at_the_new_replicas_only() -> None:
    """The ISR stays, all new replicas are told."""
    selector = ReassignedPartitionLeaderSelector(Cluster((1,), (1, 4)), lambda _tp: (3, 4))

    selected = selector.select_leader(TP, LeaderAndIsr(1, 0, (1, 4), 0))

    assert (LeaderAndIsr(4, 1, (1, 4), 1), (3, 4)) == selected


def test_the_reassigned_selector_passes_over_the_dead_and_those_out_of_sync() -> None:
    """The first one that is neither leads, whatever its place in the list."""
    selector = ReassignedPartitionLeaderSelector(Cluster((1,), (1, 4, 5)), lambda _tp: (3, 4, 5))

    selected, _ = selector.select_leader(TP, LeaderAndIsr(1, 0, (1, 3, 5), 0))

    assert (selected.leader, selected.isr) == (5, (1, 3, 5))


@pytest.mark.parametrize(
    ("reassigned", "reason"), [((), "list of reassigned .* empty"), ((3,), "none of the")]
)
def test_the_reassigned_selector_distinguishes_an_empty_list(
    reassigned: tuple[int, ...], reason: str
) -> None:
    """Nothing to choose from reads differently from nobody suitable."""
    selector = ReassignedPartitionLeaderSelector(Cluster((1,), (1, 3)), lambda _tp: reassigned)
    with pytest.raises(NoReplicaOnline, match=reason):
        selector.select_leader(TP, LeaderAndIsr(1, 0, (1,), 0))


def test_the_preferred_selector_elects_the_first_replica() -> None:
    """It must be alive and in the ISR."""
    selector = PreferredReplicaPartitionLeaderSelector(Cluster((1, 2), (1, 2), cached_leader=2))

    selected = selector.select_leader(TP, LeaderAndIsr(2, 3, (2, 1), 4))

    assert (LeaderAndIsr(1, 4, (2, 1), 5), (1, 2)) == selected


def test_the_preferred_selector_judges_by_the_cache_whether_it_is_needed() -> None:
    """Even if ZooKeeper says otherwise."""
    selector = PreferredReplicaPartitionLeaderSelector(Cluster((1, 2), (1, 2), cached_leader=1))
    with pytest.raises(LeaderElectionNotNeeded):
        selector.select_leader(TP, LeaderAndIsr(2, 3, (2, 1), 4))


@pytest.mark.parametrize(("registered", "isr"), [((2,), (1, 2)), ((1, 2), (2,))])
def test_the_preferred_selector_takes_nobody_else(
    registered: tuple[int, ...], isr: tuple[int, ...]
) -> None:
    """Dead, or not in sync: no election."""
    cluster = Cluster((1, 2), registered, cached_leader=2)
    with pytest.raises(StateChangeFailed):
        PreferredReplicaPartitionLeaderSelector(cluster).select_leader(
            TP, LeaderAndIsr(2, 0, isr, 0)
        )


def test_the_controlled_shutdown_selector_tells_the_leaving_broker_too() -> None:
    """Recipients are live or shutting down; the ISR loses who leaves."""
    cluster = Cluster((1, 2, 3), registered=(1, 2), shutting_down=(1,))

    selected = ControlledShutdownLeaderSelector(cluster).select_leader(
        TP, LeaderAndIsr(1, 0, (1, 2), 0)
    )

    assert (LeaderAndIsr(2, 1, (2,), 1), (1, 2)) == selected


def test_the_controlled_shutdown_selector_fails_when_all_of_the_isr_leaves() -> None:
    """StateChangeFailed, not NoReplicaOnline."""
    cluster = Cluster((1, 2), registered=(1, 2), shutting_down=(1,))
    with pytest.raises(StateChangeFailed, match="shutting down"):
        ControlledShutdownLeaderSelector(cluster).select_leader(TP, LeaderAndIsr(1, 0, (1,), 0))


def test_the_no_op_selector_changes_nothing_and_warns() -> None:
    """Not even the epoch."""
    warnings: list[str] = []
    current = LeaderAndIsr(1, 5, (1,), 6)

    selected = NoOpLeaderSelector(Cluster((1, 2), (1,)), warnings.append).select_leader(TP, current)

    assert (current, (1, 2)) == selected
    assert len(warnings) == 1
