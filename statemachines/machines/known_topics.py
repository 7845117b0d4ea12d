"""The topics the controller knows: their assignments, leadership and requested deletions.

They mirror ZooKeeper as of the last reads and of the controller's own writes. Per-broker indexes
of assignments and leadership find the partitions that a broker's failure affects without a scan
of all partitions. All containers iterate in insertion order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...protocol.host import StateListener
from ...protocol.values import (
    LeaderIsrAndControllerEpoch,
    PartitionReplica,
    ReplicaAssignment,
    TopicPartition,
)
from ...protocol.versions import Behaviour
from ..zookeeper.sorted_names import SortedNames
from .ordered_set import OrderedSet
from .registered_brokers import RegisteredBrokers

_UNASSIGNED = ReplicaAssignment(())


class KnownTopics:
    """Topics and partitions as the controller knows them (docs/kafka/controller-state.md)."""

    def __init__(
        self,
        behaviour: Behaviour,
        brokers: RegisteredBrokers,
        state_listener: StateListener | None = None,
    ) -> None:
        self._behaviour = behaviour
        self._brokers = brokers
        self._state_listener = state_listener
        self.forget()

    def forget(self) -> None:
        self.all_topics: SortedNames = SortedNames()
        self.topic_ids: dict[str, str] = {}
        """Base64 id by topic name."""
        self.partitions_being_reassigned: OrderedSet[TopicPartition] = OrderedSet()
        self.topics_to_be_deleted: OrderedSet[str] = OrderedSet()
        """Topics queued for deletion, including started and ineligible ones."""
        self.topics_announced_as_deleted: OrderedSet[str] = OrderedSet()
        """Topics that are announced to brokers as being deleted, though deletion is disabled
        (KAFKA-3175)."""
        self.topics_with_deletion_started: OrderedSet[str] = OrderedSet()
        self.topics_ineligible_for_deletion: OrderedSet[str] = OrderedSet()
        self.preferred_replica_imbalance_count: int = 0
        """Number of partitions not led by their preferred (first) replica, without those of topics
        queued for deletion."""
        self._assignments: dict[TopicPartition, ReplicaAssignment] = {}
        self._partitions: dict[str, TopicPartition | list[TopicPartition]] = {}
        """Assigned partitions by topic: a single one as itself, several as a list in the order in
        which they were added."""
        self._leadership: dict[TopicPartition, LeaderIsrAndControllerEpoch] = {}
        self._hosted: dict[int, dict[TopicPartition, None]] = {}
        """Partitions by the id of each broker in their full replica list."""
        self._led: dict[int, dict[TopicPartition, None]] = {}
        """Partitions by leader id, including -1; an index of ``_leadership``."""

    # --- topics

    def set_all_topics(self, topics: Sequence[str]) -> None:
        """Replace the known topics by a sorted list; states and assignments are not touched."""
        self.all_topics = SortedNames(topics)

    def add_topic_id(self, topic: str, topic_id: str) -> None:
        """Remember a topic's id; raises ``ValueError`` if it has another one already."""
        known = self.topic_ids.get(topic)
        if known is not None and known != topic_id:
            raise ValueError(f"topic {topic} has id {known}, not {topic_id}")
        self.topic_ids[topic] = topic_id

    def remove_topic(self, topic: str) -> None:
        """Forget a topic that was removed from ZooKeeper.

        Partition and replica states stay, as in Kafka: orderly deletion has removed them before.
        """
        if topic not in self.topics_to_be_deleted:
            self._stop_counting_imbalance(topic)
        self.topics_to_be_deleted.discard(topic)
        self.topics_with_deletion_started.discard(topic)
        self.topics_ineligible_for_deletion.discard(topic)
        self.all_topics.discard(topic)
        self.topic_ids.pop(topic, None)
        for topic_partition in self._partitions_of(topic):
            for broker_id in self._assignments.pop(topic_partition).replicas:
                self._hosted[broker_id].pop(topic_partition, None)
            leadership = self._leadership.pop(topic_partition, None)
            if leadership is not None:
                self._led[leadership.leader_and_isr.leader].pop(topic_partition, None)
        self._partitions.pop(topic, None)

    # --- assignments

    def _partitions_of(self, topic: str) -> Sequence[TopicPartition]:
        known = self._partitions.get(topic)
        if isinstance(known, list):
            return known
        return () if known is None else (known,)

    def _add_partition(self, topic_partition: TopicPartition) -> None:
        topic = topic_partition.topic
        known = self._partitions.get(topic)
        if known is None:
            self._partitions[topic] = topic_partition
        elif isinstance(known, list):
            known.append(topic_partition)
        else:
            self._partitions[topic] = [known, topic_partition]

    def update_partition_full_replica_assignment(
        self, topic_partition: TopicPartition, assignment: ReplicaAssignment
    ) -> None:
        """Set a partition's replicas, and update the imbalance count and the index."""
        old = self._assignments.get(topic_partition)
        if old is None:
            self._add_partition(topic_partition)
        self._assignments[topic_partition] = assignment
        old_replicas = () if old is None else old.replicas
        if old_replicas != assignment.replicas:
            for broker_id in old_replicas:
                if broker_id not in assignment.replicas:
                    self._hosted[broker_id].pop(topic_partition, None)
            for broker_id in assignment.replicas:
                self._hosted.setdefault(broker_id, {})[topic_partition] = None
        leadership = self._leadership.get(topic_partition)
        if leadership is None or topic_partition.topic in self.topics_to_be_deleted:
            return
        if old is not None and _is_imbalanced(old, leadership):
            self.preferred_replica_imbalance_count -= 1
        if _is_imbalanced(assignment, leadership):
            self.preferred_replica_imbalance_count += 1

    def partition_full_replica_assignment(
        self, topic_partition: TopicPartition
    ) -> ReplicaAssignment:
        """Return the replicas, with those a reassignment adds and removes; empty if unknown."""
        return self._assignments.get(topic_partition, _UNASSIGNED)

    def partition_replica_assignment(self, topic_partition: TopicPartition) -> tuple[int, ...]:
        """Return all replicas, preferred leader first; empty if unknown."""
        return self._assignments.get(topic_partition, _UNASSIGNED).replicas

    def partition_full_replica_assignment_for_topic(
        self, topic: str
    ) -> dict[TopicPartition, ReplicaAssignment]:
        return {tp: self._assignments[tp] for tp in self._partitions_of(topic)}

    def has_assignment(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._assignments

    def all_partitions(self) -> Iterator[TopicPartition]:
        """Yield every assigned partition; do not change assignments while iterating."""
        for topic in self._partitions:
            yield from self._partitions_of(topic)

    def all_assignments(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        """Yield every assigned partition with its replicas."""
        for topic_partition in self.all_partitions():
            yield topic_partition, self._assignments[topic_partition].replicas

    def partitions_for_topic(self, topic: str) -> list[TopicPartition]:
        return list(self._partitions_of(topic))

    def replicas_for_topic(self, topic: str) -> list[PartitionReplica]:
        return self.replicas_for_partitions(self._partitions_of(topic))

    def replicas_for_partitions(
        self, partitions: Iterable[TopicPartition]
    ) -> list[PartitionReplica]:
        """Return every replica of the given partitions (Kafka: ``replicasForPartition``)."""
        return [
            PartitionReplica(tp.topic, tp.partition, broker_id)
            for tp in partitions
            for broker_id in self.partition_replica_assignment(tp)
        ]

    def partitions_by_replica(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[int, list[TopicPartition]]:
        """Group partitions by the brokers of their replicas, in the order the brokers occur."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for topic_partition in partitions:
            for broker_id in self.partition_replica_assignment(topic_partition):
                of_broker = by_broker.get(broker_id)
                if of_broker is None:
                    by_broker[broker_id] = [topic_partition]
                else:
                    of_broker.append(topic_partition)
        return by_broker

    def partitions_on_broker(self, broker_id: int) -> list[TopicPartition]:
        """Return the partitions that have the broker in their full replica list."""
        return list(self._hosted.get(broker_id, ()))

    def replicas_on_brokers(self, broker_ids: Iterable[int]) -> list[PartitionReplica]:
        return [
            PartitionReplica(tp.topic, tp.partition, broker_id)
            for broker_id in broker_ids
            for tp in self._hosted.get(broker_id, ())
        ]

    def online_and_offline_replicas(
        self,
    ) -> tuple[dict[int, list[TopicPartition]], dict[int, list[TopicPartition]]]:
        """Return (online replicas, offline replicas), each as a broker's partitions by its id."""
        online: dict[int, list[TopicPartition]] = {}
        offline: dict[int, list[TopicPartition]] = {}
        for topic_partition, replicas in self.all_assignments():
            for broker_id in replicas:
                is_online = self._brokers.is_replica_online(broker_id, topic_partition)
                by_broker = online if is_online else offline
                if broker_id in by_broker:
                    by_broker[broker_id].append(topic_partition)
                else:
                    by_broker[broker_id] = [topic_partition]
        return online, offline

    # --- leadership

    def put_partition_leadership_info(
        self, topic_partition: TopicPartition, leadership: LeaderIsrAndControllerEpoch
    ) -> None:
        """Set a partition's leadership, and update the imbalance count and the index."""
        old = self._leadership.get(topic_partition)
        self._leadership[topic_partition] = leadership
        leader = leadership.leader_and_isr.leader
        if self._state_listener is not None:
            _tell_changes(self._state_listener, topic_partition, old, leadership)
        if old is None:
            self._led.setdefault(leader, {})[topic_partition] = None
        elif old.leader_and_isr.leader != leader:
            self._led[old.leader_and_isr.leader].pop(topic_partition, None)
            self._led.setdefault(leader, {})[topic_partition] = None
        if topic_partition.topic in self.topics_to_be_deleted:
            return
        assignment = self.partition_full_replica_assignment(topic_partition)
        if old is not None and _is_imbalanced(assignment, old):
            self.preferred_replica_imbalance_count -= 1
        if _is_imbalanced(assignment, leadership):
            self.preferred_replica_imbalance_count += 1

    def partition_leadership_info(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None:
        return self._leadership.get(topic_partition)

    @property
    def partitions_leadership_info(self) -> Mapping[TopicPartition, LeaderIsrAndControllerEpoch]:
        """All known leadership; read only."""
        return self._leadership

    def leader_epoch(self, topic_partition: TopicPartition) -> int:
        """Return the leader epoch for StopReplica: -2 if the topic is queued for deletion, -1 if
        unknown (docs/kafka/control-requests.md#stopreplica)."""
        if topic_partition.topic in self.topics_to_be_deleted:
            return -2
        leadership = self._leadership.get(topic_partition)
        return -1 if leadership is None else leadership.leader_and_isr.leader_epoch

    def clear_partition_leadership_info(self) -> None:
        self._leadership.clear()
        self._led.clear()
        self.preferred_replica_imbalance_count = 0

    def partitions_with_leaders(self) -> list[TopicPartition]:
        """Return partitions with known leadership, even if the leader is -1, except those of
        topics queued for deletion."""
        deleting = self.topics_to_be_deleted
        if not deleting:
            return list(self._leadership)
        return [tp for tp in self._leadership if tp.topic not in deleting]

    def partitions_with_offline_leader(self) -> list[TopicPartition]:
        """Return partitions with an offline leader, except those of topics queued for deletion.

        Includes partitions without a leader and those led by a broker that is shutting down.
        """
        deleting = self.topics_to_be_deleted
        live = self._brokers.live_broker_ids
        offline: list[TopicPartition] = []
        for leader in sorted(self._led):
            led: Iterable[TopicPartition] = self._led[leader]
            if leader in live:
                dead_here = self._brokers.replicas_on_offline_dirs.get(leader)
                led = [tp for tp in led if tp in dead_here] if dead_here else ()
            offline.extend(tp for tp in led if tp.topic not in deleting)
        return offline

    def partitions_led_by(self, broker_ids: Iterable[int]) -> list[TopicPartition]:
        """Return partitions led by one of the brokers, except those of topics queued for
        deletion."""
        deleting = self.topics_to_be_deleted
        return [
            tp
            for leader in sorted(broker_ids)
            for tp in self._led.get(leader, ())
            if tp.topic not in deleting
        ]

    def count_leaderless_partitions(self) -> int:
        """Count partitions whose leader is not registered, for the gauge of releases before 2.1.

        Leaders on failed log directories do not count, nor, since 0.10.2, topics queued for
        deletion.
        """
        registered = self._brokers.live_or_shutting_down_broker_ids
        counts_queued = self._behaviour.gauges_count_queued_topics
        deleting = () if counts_queued else self.topics_to_be_deleted
        return sum(
            len(led) if not deleting else sum(tp.topic not in deleting for tp in led)
            for leader, led in self._led.items()
            if leader not in registered
        )

    def partition_leaders_on_broker(
        self, broker_id: int, with_queued_topics: bool = False
    ) -> list[TopicPartition]:
        """Return the partitions with several replicas that the broker leads, except those of topics
        queued for deletion unless ``with_queued_topics``."""
        return [
            tp
            for tp in self._led.get(broker_id, ())
            if (with_queued_topics or tp.topic not in self.topics_to_be_deleted)
            and len(self.partition_replica_assignment(tp)) > 1
        ]

    # --- topic deletion

    def queue_topic_deletion(self, topics: Iterable[str]) -> None:
        """Queue topics for deletion; the imbalance count drops their partitions at once."""
        for topic in topics:
            if topic not in self.topics_to_be_deleted:
                self._stop_counting_imbalance(topic)
                self.topics_to_be_deleted.add(topic)

    def begin_topic_deletion(self, topics: Iterable[str]) -> None:
        """Mark the deletion of queued topics as started; the offline count no longer changes with
        their partitions."""
        self.topics_with_deletion_started.add_all(topics)

    def is_topic_deletion_in_progress(self, topic: str) -> bool:
        return topic in self.topics_with_deletion_started

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool:
        return topic in self.topics_to_be_deleted

    def is_topic_eligible_for_deletion(self, topic: str) -> bool:
        return (
            topic in self.topics_to_be_deleted and topic not in self.topics_ineligible_for_deletion
        )

    def topics_queued_for_deletion(self) -> list[str]:
        return list(self.topics_to_be_deleted)

    # --- imbalance

    def imbalance_of_topic(self, topic: str) -> int:
        """Count a topic's partitions that are not led by their preferred replica."""
        count = 0
        for topic_partition in self._partitions_of(topic):
            leadership = self._leadership.get(topic_partition)
            if leadership is not None:
                count += _is_imbalanced(self._assignments[topic_partition], leadership)
        return count

    def _stop_counting_imbalance(self, topic: str) -> None:
        self.preferred_replica_imbalance_count -= self.imbalance_of_topic(topic)


def _tell_changes(
    tell: StateListener,
    topic_partition: TopicPartition,
    old: LeaderIsrAndControllerEpoch | None,
    new: LeaderIsrAndControllerEpoch,
) -> None:
    """Report each field that differs between the old and the new leadership."""
    before, now = None if old is None else old.leader_and_isr, new.leader_and_isr
    for name in ("leader", "leader_epoch", "isr"):
        was, is_now = getattr(before, name, None), getattr(now, name)
        if was != is_now:
            tell(f"{topic_partition}/{name}", was, is_now)
    epoch_before = None if old is None else old.controller_epoch
    if epoch_before != new.controller_epoch:
        tell(f"{topic_partition}/controller_epoch", epoch_before, new.controller_epoch)


def _is_imbalanced(assignment: ReplicaAssignment, leadership: LeaderIsrAndControllerEpoch) -> bool:
    """Return whether a partition counts as not led by its preferred replica.

    While a reassignment adds the preferred replica, the partition counts only once that replica is
    in the ISR.
    """
    if not assignment.replicas:
        return False
    preferred = assignment.replicas[0]
    if preferred == leadership.leader_and_isr.leader:
        return False
    return preferred not in assignment.adding or preferred in leadership.leader_and_isr.isr
