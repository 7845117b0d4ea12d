"""Automatic return of leadership to preferred replicas (docs/kafka/election.md#rebalancing).

Source: Kafka's ``KafkaController.checkAndTriggerAutoLeaderRebalance``.
"""

from __future__ import annotations

from ....election.strategies import preferred_replica_partition_leader_election
from ....protocol.control import PREFERRED
from ....protocol.host import Timer
from ....protocol.values import TopicPartition, message
from ....protocol.versions import Behaviour
from ...machines.context import ControllerContext
from ..events import AutoPreferredReplicaLeaderElection, ElectionTrigger
from ..parts import ControllerParts
from .elections import Elections

FIRST_DELAY_MS = 5_000


class Rebalance:
    """Periodically elects preferred leaders, while this controller is active."""

    def __init__(self, parts: ControllerParts, elections: Elections) -> None:
        self._parts = parts
        self._elections = elections
        self._timer: Timer | None = None
        self._is_started = False

    def start(self) -> None:
        """Start the timer, if rebalancing is enabled; the first check comes after 5 s."""
        self._is_started = True
        if self._parts.config["auto.leader.rebalance.enable"]:
            self._schedule(FIRST_DELAY_MS)

    def stop(self) -> None:
        """Stop the timer when the controller resigns."""
        self._is_started = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def _interval_ms(self) -> int:
        return int(self._parts.config["leader.imbalance.check.interval.seconds"]) * 1000

    def _schedule(self, delay_ms: int) -> None:
        if self._is_started:
            self._timer = self._parts.host.call_later_ms(delay_ms, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if not self._is_started:
            return
        self._parts.event_manager.put(AutoPreferredReplicaLeaderElection())
        if self._parts.behaviour.rebalance_fixed_rate:
            self._schedule(self._interval_ms)

    async def process_rebalance(self, _event: AutoPreferredReplicaLeaderElection) -> None:
        """Elect preferred leaders where needed, and schedule the next check."""
        parts = self._parts
        try:
            await self._check_and_trigger()
        finally:
            if not parts.behaviour.rebalance_fixed_rate:
                self._schedule(self._interval_ms)

    async def _check_and_trigger(self) -> None:
        parts = self._parts
        limit = parts.config["leader.imbalance.per.broker.percentage"]
        for imbalance in leader_imbalances(parts.context, limit, parts.behaviour):
            if not imbalance.candidates:
                continue
            parts.log(
                "info",
                f"broker {imbalance.broker_id} does not lead {len(imbalance.imbalanced)} of its "
                f"{imbalance.preferred_count} preferred partitions",
            )
            groups = [imbalance.candidates]
            if parts.behaviour.rebalance_one_by_one:
                groups = [(topic_partition,) for topic_partition in imbalance.candidates]
            for group in groups:
                await self._elections.on_replica_election(
                    group, PREFERRED, ElectionTrigger.AUTO_TRIGGERED
                )


@message
class BrokerImbalance:
    """Partitions that one broker should lead, and those of them that it does not."""

    broker_id: int
    preferred_count: int
    """Number of partitions whose preferred replica is on this broker."""
    imbalanced: tuple[TopicPartition, ...]
    """Partitions among these that another broker, or none, leads."""
    candidates: tuple[TopicPartition, ...]
    """Partitions to elect now; empty if the ratio does not exceed the limit."""


def leader_imbalances(
    context: ControllerContext, imbalance_percentage: int, behaviour: Behaviour
) -> list[BrokerImbalance]:
    """Return the imbalance of each preferred broker, in the order of broker ids.

    There are candidates only if the ratio is strictly greater than the percentage. Partitions
    without leadership count for the broker but are never imbalanced.
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
    context: ControllerContext,
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
