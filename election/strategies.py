"""The four election strategies of Kafka >= 1.1 (docs/kafka/election.md#strategies).

Two levels, as in Kafka's ``Election`` and ``PartitionLeaderElectionAlgorithms``:

* ``*_leader_election`` functions choose a leader from plain values;
* ``leader_for_*`` functions run one of these for many partitions, look up assignments and online
  replicas through callables, and also return the new ISR and the recipients of LeaderAndIsr.

Candidates are tried in the order of the assignment, never in the order of the ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from ..protocol.values import LeaderAndIsr, TopicPartition, frozen, message


@frozen
class OfflinePartition:
    """Elects a leader for a partition without a live one (KIP-460 added ``allow_unclean``)."""

    allow_unclean: bool = False
    """True to permit a leader outside the ISR whatever the topic's configuration says."""

    def __str__(self) -> str:
        return f"OfflinePartitionLeaderElectionStrategy({str(self.allow_unclean).lower()})"


@frozen
class Reassign:
    """Elects among the target replicas of a reassignment."""

    def __str__(self) -> str:
        return "ReassignPartitionLeaderElectionStrategy"


@frozen
class PreferredReplica:
    """Elects the first assigned replica and no other."""

    def __str__(self) -> str:
        return "PreferredReplicaPartitionLeaderElectionStrategy"


@frozen
class ControlledShutdown:
    """Moves leadership off brokers that are shutting down."""

    def __str__(self) -> str:
        return "ControlledShutdownPartitionLeaderElectionStrategy"


Strategy: TypeAlias = OfflinePartition | Reassign | PreferredReplica | ControlledShutdown


ReplicasOf: TypeAlias = Callable[[TopicPartition], tuple[int, ...]]
IsOnline: TypeAlias = Callable[[int, TopicPartition], bool]
"""Return whether the given broker, and the log directory of its replica, are online."""
PreferredOrReassigned: TypeAlias = Callable[
    [Sequence[int], Collection[int], Collection[int]], "int | None"
]


@message
class ElectionResult:
    """Outcome of one partition's election."""

    topic_partition: TopicPartition
    leader_and_isr: LeaderAndIsr | None
    """Leadership to write, with the leader epoch raised by 1 and the ``zk_version`` that was read;
    None if no leader could be elected."""
    live_replicas: tuple[int, ...]
    """Recipients of LeaderAndIsr."""
    unclean: bool = False
    """True if the leader is not from the ISR, so that committed records may be lost."""


def offline_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    unclean_enabled: bool,
) -> tuple[int | None, bool]:
    """Elect the first assigned replica that is live and in sync; else, if permitted, the first live
    one.

    Returns (leader or None, whether the election is unclean).
    """
    for replica in assignment:
        if replica in live_replicas and replica in isr:
            return replica, False
    if unclean_enabled:
        for replica in assignment:
            if replica in live_replicas:
                return replica, True
    return None, False


def reassign_partition_leader_election(
    target: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    """Elect the first target replica that is live and in sync."""
    for replica in target:
        if replica in live_replicas and replica in isr:
            return replica
    return None


def preferred_replica_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    """Elect the first assigned replica if it is live and in sync, and never another one."""
    if assignment and assignment[0] in live_replicas and assignment[0] in isr:
        return assignment[0]
    return None


def controlled_shutdown_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    shutting_down: Collection[int],
) -> int | None:
    """Elect the first assigned replica that is live, in sync and not shutting down.

    ``live_replicas`` includes replicas on brokers that are shutting down.
    """
    for replica in assignment:
        if replica in live_replicas and replica in isr and replica not in shutting_down:
            return replica
    return None


def leader_for_offline(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr, bool]],
    assignment_of: ReplicasOf,
    is_online: IsOnline,
    unclean_leaders_recover: bool = False,
) -> list[ElectionResult]:
    """Run offline elections for (partition, stored leadership, unclean permitted) triples.

    A clean election also drops every dead member from the ISR. An unclean one makes the new leader
    the only member, marked as recovering if ``unclean_leaders_recover`` is set.
    """
    results = []
    for topic_partition, current, unclean_enabled in partitions:
        assignment = assignment_of(topic_partition)
        live = tuple(r for r in assignment if is_online(r, topic_partition))
        isr = current.isr
        leader, unclean = offline_partition_leader_election(assignment, isr, live, unclean_enabled)
        new_value = None
        if leader is not None:
            if unclean:
                new_isr: tuple[int, ...] = (leader,)
            else:
                new_isr = tuple(r for r in isr if is_online(r, topic_partition))
                if new_isr == isr:
                    new_isr = isr  # share the tuple to save memory: most elections keep the ISR
            recovers = unclean and unclean_leaders_recover
            new_value = _decided(current, leader, new_isr, recovers)
        results.append(ElectionResult(topic_partition, new_value, live, unclean))
    return results


def leader_for_reassign(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    target_of: ReplicasOf,
    is_online: IsOnline,
) -> list[ElectionResult]:
    """Elect among target replicas. The ISR stays, and every target replica gets LeaderAndIsr."""
    return _leader_in_isr(reassign_partition_leader_election, partitions, target_of, is_online)


def leader_for_preferred_replica(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    assignment_of: ReplicasOf,
    is_online: IsOnline,
) -> list[ElectionResult]:
    """Elect the first assigned replica. The ISR stays; all assigned replicas get LeaderAndIsr."""
    elect = preferred_replica_partition_leader_election
    return _leader_in_isr(elect, partitions, assignment_of, is_online)


def _leader_in_isr(
    elect: PreferredOrReassigned,
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    replicas_of: ReplicasOf,
    is_online: IsOnline,
) -> list[ElectionResult]:
    results = []
    for topic_partition, current in partitions:
        replicas = replicas_of(topic_partition)
        live = [r for r in replicas if is_online(r, topic_partition)]
        leader = elect(replicas, current.isr, live)
        new_value = None if leader is None else _decided(current, leader, current.isr)
        results.append(ElectionResult(topic_partition, new_value, replicas))
    return results


def leader_for_controlled_shutdown(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    assignment_of: ReplicasOf,
    is_online: IsOnline,
    shutting_down: Collection[int],
) -> list[ElectionResult]:
    """Elect leaders on brokers that stay, and drop all that are shutting down from the ISR.

    LeaderAndIsr goes to the replicas for which ``is_online`` is true. In Kafka 1.1 and 2.0 it did
    not go to brokers that were shutting down.
    """
    results = []
    for topic_partition, current in partitions:
        live = tuple(r for r in assignment_of(topic_partition) if is_online(r, topic_partition))
        isr = current.isr
        leader = controlled_shutdown_partition_leader_election(live, isr, live, shutting_down)
        new_value = None
        if leader is not None:
            new_isr = tuple(r for r in isr if r not in shutting_down)
            new_value = _decided(current, leader, new_isr)
        results.append(ElectionResult(topic_partition, new_value, live))
    return results


def _decided(
    current: LeaderAndIsr, leader: int, isr: tuple[int, ...], recovers: bool = False
) -> LeaderAndIsr:
    """Return the next leadership. A recovering leader stays marked until it proposes an ISR."""
    return LeaderAndIsr(
        leader,
        current.leader_epoch + 1,
        isr,
        current.zk_version,
        recovers or current.is_recovering,
    )
