"""The four election strategies of Kafka >= 1.1 (docs/kafka/election.md#strategies).

Two levels, as in Kafka's ``Election`` and ``PartitionLeaderElectionAlgorithms``:

* ``*_leader_election`` functions choose a leader from plain values;
* ``leader_for_*`` functions run one of them for many partitions, asking the controller's memory
  for replicas and for what is online, and also give the new ISR and who is to be told.

Candidates are tried in the order of the assignment, never in the order of the ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from ..protocol.values import LeaderAndIsr, TopicPartition, frozen, message


@frozen
class OfflinePartition:
    """Elect for a partition without a live leader (KIP-460 gave it the flag)."""

    allow_unclean: bool = False
    """Permit a leader outside the ISR without asking the topic's configuration."""

    def __str__(self) -> str:
        return f"OfflinePartitionLeaderElectionStrategy({str(self.allow_unclean).lower()})"


@frozen
class Reassign:
    """Elect among the target replicas of a reassignment."""

    def __str__(self) -> str:
        return "ReassignPartitionLeaderElectionStrategy"


@frozen
class PreferredReplica:
    """Elect the first assigned replica, and nobody else."""

    def __str__(self) -> str:
        return "PreferredReplicaPartitionLeaderElectionStrategy"


@frozen
class ControlledShutdown:
    """Move leadership off brokers that asked to leave."""

    def __str__(self) -> str:
        return "ControlledShutdownPartitionLeaderElectionStrategy"


Strategy: TypeAlias = OfflinePartition | Reassign | PreferredReplica | ControlledShutdown


ReplicasOf: TypeAlias = Callable[[TopicPartition], tuple[int, ...]]
IsOnline: TypeAlias = Callable[[int, TopicPartition], bool]
"""Whether a broker lives, and the log directory of its replica."""
PreferredOrReassigned: TypeAlias = Callable[
    [Sequence[int], Collection[int], Collection[int]], "int | None"
]


@message
class ElectionResult:
    """Outcome of one partition's election."""

    topic_partition: TopicPartition
    leader_and_isr: LeaderAndIsr | None
    """The value to be written: leader epoch + 1, ``zk_version`` still as read. None: no leader."""
    live_replicas: tuple[int, ...]
    """Brokers to be told with LeaderAndIsr."""
    unclean: bool = False
    """The leader is not from the ISR: committed records may be lost."""


def offline_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    unclean_enabled: bool,
) -> tuple[int | None, bool]:
    """First assigned replica that is live and in sync; else, if permitted, the first live one.

    Returns (leader or None, whether the choice is unclean).
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
    """First target replica that is live and in sync."""
    for replica in target:
        if replica in live_replicas and replica in isr:
            return replica
    return None


def preferred_replica_partition_leader_election(
    assignment: Sequence[int], isr: Collection[int], live_replicas: Collection[int]
) -> int | None:
    """The first assigned replica if it is live and in sync; never another one."""
    if assignment and assignment[0] in live_replicas and assignment[0] in isr:
        return assignment[0]
    return None


def controlled_shutdown_partition_leader_election(
    assignment: Sequence[int],
    isr: Collection[int],
    live_replicas: Collection[int],
    shutting_down: Collection[int],
) -> int | None:
    """First assigned replica that is live, in sync and stays.

    ``live_replicas`` counts brokers that are shutting down as live.
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
    """Offline elections for (partition, stored state, unclean permitted) triples.

    A clean election drops every dead member from the ISR in the same write; an unclean one
    leaves the new leader alone in it, marked as recovering where ``unclean_leaders_recover``.
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
                    new_isr = isr  # share the tuple: most elections keep the ISR
            recovers = unclean and unclean_leaders_recover
            new_value = _decided(current, leader, new_isr, recovers)
        results.append(ElectionResult(topic_partition, new_value, live, unclean))
    return results


def leader_for_reassign(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    target_of: ReplicasOf,
    is_online: IsOnline,
) -> list[ElectionResult]:
    """Elections among target replicas; the ISR stays, every target replica is told."""
    return _leader_in_isr(reassign_partition_leader_election, partitions, target_of, is_online)


def leader_for_preferred_replica(
    partitions: Iterable[tuple[TopicPartition, LeaderAndIsr]],
    assignment_of: ReplicasOf,
    is_online: IsOnline,
) -> list[ElectionResult]:
    """Elections of the first assigned replica; the ISR stays, every assigned replica is told."""
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
    """Elections that move leadership off leaving brokers and drop them all from the ISR.

    Leaving brokers are told if they count as online. In Kafka 1.1 only the replicas that stay
    were told.
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
    """The next leadership; the mark of a recovering leader stays until an ISR is proposed."""
    return LeaderAndIsr(
        leader,
        current.leader_epoch + 1,
        isr,
        current.zk_version,
        recovers or current.is_recovering,
    )
