"""The leader selectors of Kafka 0.10 (docs/kafka/election.md#selectors), one partition at a time.

A selector returns (new leadership, recipients of LeaderAndIsr) or raises. Log directories play no
role, as before 1.0 a broker did not survive the failure of one. Kafka's classes are
``OfflinePartitionLeaderSelector`` and so on; ``NoOpLeaderSelector``, which keeps the current
leadership, has no function here.
"""

from __future__ import annotations

from collections.abc import Collection

from ..protocol.values import LeaderAndIsr, TopicPartition
from .errors import LeaderElectionNotNeeded, NoReplicaOnline, StateChangeFailed

Selection = tuple[LeaderAndIsr, tuple[int, ...]]


def select_for_offline(
    topic_partition: TopicPartition,
    current: LeaderAndIsr,
    assignment: tuple[int, ...],
    live_ids: Collection[int],
    unclean_enabled: bool,
) -> Selection:
    """Select the first assigned replica that is live and in the ISR.

    If there is none and unclean election is enabled, selects the first live one. Raises
    ``NoReplicaOnline`` if no replicas are assigned, if the ISR is dead and unclean election is
    disabled, or if all replicas are dead.
    """
    if not assignment:
        raise NoReplicaOnline(f"no replicas are assigned to partition {topic_partition}")
    live_assigned = tuple(r for r in assignment if r in live_ids)
    live_isr = tuple(r for r in current.isr if r in live_ids)
    for replica in live_assigned:
        if replica in live_isr:
            return _selected(current, replica, live_isr), live_assigned
    if not unclean_enabled:
        raise NoReplicaOnline(
            f"no in-sync replica of {topic_partition} is alive: live brokers "
            f"{sorted(live_ids)}, ISR {list(current.isr)}, unclean election is off"
        )
    if not live_assigned:
        raise NoReplicaOnline(
            f"no replica of {topic_partition} is alive: live brokers {sorted(live_ids)}, "
            f"assigned {list(assignment)}"
        )
    leader = live_assigned[0]
    return _selected(current, leader, (leader,)), live_assigned


def select_for_reassignment(
    topic_partition: TopicPartition,
    current: LeaderAndIsr,
    reassigned: tuple[int, ...],
    live_ids: Collection[int],
) -> Selection:
    """Select the first reassigned replica that is live and in the ISR; raises ``NoReplicaOnline``
    if there is none."""
    for replica in reassigned:
        if replica in live_ids and replica in current.isr:
            return _selected(current, replica, current.isr), reassigned
    if not reassigned:
        raise NoReplicaOnline(
            f"the list of reassigned replicas of {topic_partition} is empty; current "
            f"leader {current.leader}, ISR {list(current.isr)}"
        )
    raise NoReplicaOnline(
        f"none of the reassigned replicas {list(reassigned)} of {topic_partition} is "
        f"alive and in the ISR {list(current.isr)}"
    )


def select_preferred(
    topic_partition: TopicPartition,
    current: LeaderAndIsr,
    assignment: tuple[int, ...],
    live_ids: Collection[int],
    cached_leader: int | None,
) -> Selection:
    """Select the preferred replica, which is the first one assigned.

    Raises ``LeaderElectionNotNeeded`` if that replica is the controller's cached leader, or
    ``StateChangeFailed`` if it is dead or not in the ISR.
    """
    if not assignment:
        raise StateChangeFailed(f"no replicas are assigned to partition {topic_partition}")
    preferred = assignment[0]
    if cached_leader == preferred:
        raise LeaderElectionNotNeeded(
            f"preferred replica {preferred} leads {topic_partition} already"
        )
    if preferred in live_ids and preferred in current.isr:
        return _selected(current, preferred, current.isr), assignment
    raise StateChangeFailed(
        f"preferred replica {preferred} of {topic_partition} is not alive or not in the "
        f"ISR {list(current.isr)}"
    )


def select_for_controlled_shutdown(
    topic_partition: TopicPartition,
    current: LeaderAndIsr,
    assignment: tuple[int, ...],
    live_or_shutting_down: Collection[int],
    shutting_down: Collection[int],
) -> Selection:
    """Select the first assigned ISR member whose broker is not shutting down; raises
    ``StateChangeFailed`` if there is none."""
    live_assigned = tuple(r for r in assignment if r in live_or_shutting_down)
    new_isr = tuple(r for r in current.isr if r not in shutting_down)
    for replica in live_assigned:
        if replica in new_isr:
            return _selected(current, replica, new_isr), live_assigned
    raise StateChangeFailed(
        f"no replica of {topic_partition} in the ISR {list(current.isr)} stays: brokers "
        f"{sorted(shutting_down)} are shutting down"
    )


def _selected(current: LeaderAndIsr, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return LeaderAndIsr(leader, current.leader_epoch + 1, isr, current.zk_version + 1)
