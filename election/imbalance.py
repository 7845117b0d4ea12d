"""Which partitions the auto-rebalance timer hands back to their preferred leaders.

Source: Kafka's ``KafkaController.checkAndTriggerAutoLeaderRebalance``
(docs/kafka/election.md#rebalancing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from ..protocol.values import LeaderIsrAndControllerEpoch, TopicPartition, message
from ..protocol.versions import Behaviour
from .strategies import preferred_replica_partition_leader_election


class BrokersToRebalance(Protocol):
    """Registered brokers as the selection sees them."""

    def is_replica_online(
        self,
        broker_id: int,
        topic_partition: TopicPartition,
        include_shutting_down: bool = False,
    ) -> bool: ...


class TopicsToRebalance(Protocol):
    """Known topics as the selection sees them."""

    @property
    def all_topics(self) -> Collection[str]: ...

    @property
    def partitions_being_reassigned(self) -> Collection[TopicPartition]: ...

    def all_assignments(self) -> Iterable[tuple[TopicPartition, tuple[int, ...]]]: ...

    def partition_leadership_info(
        self, topic_partition: TopicPartition
    ) -> LeaderIsrAndControllerEpoch | None: ...

    def is_topic_queued_up_for_deletion(self, topic: str) -> bool: ...


class RebalanceContext(Protocol):
    """Controller's memory as the selection sees it."""

    @property
    def brokers(self) -> BrokersToRebalance: ...

    @property
    def topics(self) -> TopicsToRebalance: ...


@message
class BrokerImbalance:
    """Distance of one broker from leading all that it should lead."""

    broker_id: int
    preferred_count: int
    """Partitions whose first replica is on this broker."""
    imbalanced: tuple[TopicPartition, ...]
    """Those of them that another broker (or none) leads."""
    candidates: tuple[TopicPartition, ...]
    """Partitions to elect now; empty when the ratio does not exceed the limit."""


def leader_imbalances(
    context: RebalanceContext, imbalance_percentage: int, behaviour: Behaviour
) -> list[BrokerImbalance]:
    """Imbalance per preferred broker, by broker id, with the partitions to move back.

    Acts only when the ratio is strictly greater than the percentage. Partitions without
    leadership information count for the broker but are never imbalanced.
    """
    counts: dict[int, int] = {}
    imbalanced: dict[int, list[TopicPartition]] = {}
    topics = context.topics
    for topic_partition, assignment in topics.all_assignments():
        if not assignment or topics.is_topic_queued_up_for_deletion(topic_partition.topic):
            continue
        preferred = assignment[0]
        counts[preferred] = counts.get(preferred, 0) + 1
        leadership = topics.partition_leadership_info(topic_partition)
        if leadership is not None and leadership.leader_and_isr.leader != preferred:
            imbalanced.setdefault(preferred, []).append(topic_partition)
    results = []
    for broker_id in sorted(counts):
        partitions = imbalanced.get(broker_id, [])
        candidates: list[TopicPartition] = []
        if len(partitions) * 100 > imbalance_percentage * counts[broker_id]:
            candidates = [
                tp for tp in partitions if _may_be_moved(context, tp, broker_id, behaviour)
            ]
        results.append(
            BrokerImbalance(broker_id, counts[broker_id], tuple(partitions), tuple(candidates))
        )
    return results


def _may_be_moved(
    context: RebalanceContext,
    topic_partition: TopicPartition,
    preferred: int,
    behaviour: Behaviour,
) -> bool:
    if context.topics.partitions_being_reassigned and not behaviour.rebalance_during_reassignments:
        return False
    if topic_partition.topic not in context.topics.all_topics:
        return False
    if not context.brokers.is_replica_online(preferred, topic_partition):
        return False
    if not behaviour.rebalance_needs_isr:
        return True
    leadership = context.topics.partition_leadership_info(topic_partition)
    if leadership is None:
        return False
    isr = leadership.leader_and_isr.isr
    chosen = preferred_replica_partition_leader_election((preferred,), isr, (preferred,))
    return chosen is not None
