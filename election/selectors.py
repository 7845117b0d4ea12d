"""The five leader selectors of Kafka 0.10 (docs/kafka/election.md#selectors), one partition at a
time.

A selector gives (new leadership, recipients of LeaderAndIsr) or raises. Log directories play no
role: they could not fail singly before 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from ..protocol.values import LeaderAndIsr, LeaderIsrAndControllerEpoch, TopicPartition
from .errors import LeaderElectionNotNeeded, NoReplicaOnline, StateChangeFailed

Selection = tuple[LeaderAndIsr, tuple[int, ...]]


class BrokersInSelection(Protocol):
    """Registered brokers as selectors see them."""

    @property
    def live_broker_ids(self) -> Collection[int]: ...

    @property
    def live_or_shutting_down_broker_ids(self) -> Collection[int]: ...

    @property
    def shutting_down_broker_ids(self) -> Collection[int]: ...


class TopicsInSelection(Protocol):
    """Known topics as selectors see them."""

    def partition_replica_assignment(self, topic_partition: TopicPartition) -> tuple[int, ...]: ...

    def partition_leadership_info(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None: ...


class SelectorContext(Protocol):
    """Controller's memory as selectors see it."""

    @property
    def brokers(self) -> BrokersInSelection: ...

    @property
    def topics(self) -> TopicsInSelection: ...


class PartitionLeaderSelector(Protocol):
    """Chooses the leader of one partition."""

    def select_leader(
        self, topic_partition: TopicPartition, current: LeaderAndIsr
    ) -> Selection: ...


class OfflinePartitionLeaderSelector:
    """First live assigned replica of the ISR; else, if the topic permits, the first live one."""

    def __init__(self, context: SelectorContext, unclean_enabled: Callable[[str], bool]) -> None:
        self._context = context
        self._unclean_enabled = unclean_enabled

    def select_leader(self, topic_partition: TopicPartition, current: LeaderAndIsr) -> Selection:
        """Raises ``NoReplicaOnline``: nothing assigned, ISR dead and unclean off, or all dead."""
        assignment = self._context.topics.partition_replica_assignment(topic_partition)
        if not assignment:
            raise NoReplicaOnline(f"no replicas are assigned to partition {topic_partition}")
        live_ids = self._context.brokers.live_broker_ids
        live_assigned = tuple(r for r in assignment if r in live_ids)
        live_isr = tuple(r for r in current.isr if r in live_ids)
        for replica in live_assigned:
            if replica in live_isr:
                return _selected(current, replica, live_isr), live_assigned
        if not self._unclean_enabled(topic_partition.topic):
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


class ReassignedPartitionLeaderSelector:
    """First of the reassigned replicas that is live and in the ISR."""

    def __init__(
        self,
        context: SelectorContext,
        reassigned_replicas: Callable[[TopicPartition], Sequence[int]],
    ) -> None:
        self._context = context
        self._reassigned_replicas = reassigned_replicas

    def select_leader(self, topic_partition: TopicPartition, current: LeaderAndIsr) -> Selection:
        """Raises ``NoReplicaOnline``."""
        reassigned = tuple(self._reassigned_replicas(topic_partition))
        live_ids = self._context.brokers.live_broker_ids
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


class PreferredReplicaPartitionLeaderSelector:
    """The first assigned replica."""

    def __init__(self, context: SelectorContext) -> None:
        self._context = context

    def select_leader(self, topic_partition: TopicPartition, current: LeaderAndIsr) -> Selection:
        """Raises ``LeaderElectionNotNeeded`` (judged by the cache) or ``StateChangeFailed``."""
        assignment = self._context.topics.partition_replica_assignment(topic_partition)
        if not assignment:
            raise StateChangeFailed(f"no replicas are assigned to partition {topic_partition}")
        preferred = assignment[0]
        cached = self._context.topics.partition_leadership_info(topic_partition)
        if cached is not None and cached.leader_and_isr.leader == preferred:
            raise LeaderElectionNotNeeded(
                f"preferred replica {preferred} leads {topic_partition} already"
            )
        if preferred in self._context.brokers.live_broker_ids and preferred in current.isr:
            return _selected(current, preferred, current.isr), assignment
        raise StateChangeFailed(
            f"preferred replica {preferred} of {topic_partition} is not alive or not in the "
            f"ISR {list(current.isr)}"
        )


class ControlledShutdownLeaderSelector:
    """First assigned replica of the ISR on a broker that stays."""

    def __init__(self, context: SelectorContext) -> None:
        self._context = context

    def select_leader(self, topic_partition: TopicPartition, current: LeaderAndIsr) -> Selection:
        """Raises ``StateChangeFailed``."""
        shutting_down = self._context.brokers.shutting_down_broker_ids
        known_ids = self._context.brokers.live_or_shutting_down_broker_ids
        live_assigned = tuple(
            r
            for r in self._context.topics.partition_replica_assignment(topic_partition)
            if r in known_ids
        )
        new_isr = tuple(r for r in current.isr if r not in shutting_down)
        for replica in live_assigned:
            if replica in new_isr:
                return _selected(current, replica, new_isr), live_assigned
        raise StateChangeFailed(
            f"no replica of {topic_partition} in the ISR {list(current.isr)} stays: brokers "
            f"{sorted(shutting_down)} are shutting down"
        )


class NoOpLeaderSelector:
    """Keeps leadership as it is: the default of 0.10 when no selector was asked for."""

    def __init__(
        self, context: SelectorContext, warn: Callable[[str], object] = lambda _text: None
    ) -> None:
        self._context = context
        self._warn = warn

    def select_leader(self, topic_partition: TopicPartition, current: LeaderAndIsr) -> Selection:
        self._warn(f"an election that changes nothing was asked for {topic_partition}")
        return current, self._context.topics.partition_replica_assignment(topic_partition)


def _selected(current: LeaderAndIsr, leader: int, isr: tuple[int, ...]) -> LeaderAndIsr:
    return LeaderAndIsr(leader, current.leader_epoch + 1, isr, current.zk_version + 1)
