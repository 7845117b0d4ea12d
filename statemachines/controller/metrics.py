"""The controller's metrics, by Kafka's names (docs/kafka/controller-state.md).

Gauges are computed from the controller's context when they are read; only times are collected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from ..machines.transitions import ReplicaState
from .parts import ControllerParts


def _offline_partitions(parts: ControllerParts) -> int:
    if parts.behaviour.recounts_gauges:
        return parts.context.topics.count_leaderless_partitions()
    return parts.context.states.offline_partition_count


def _preferred_replica_imbalance(parts: ControllerParts) -> int:
    topics = parts.context.topics
    count = topics.preferred_replica_imbalance_count
    if parts.behaviour.gauges_count_queued_topics:
        count += sum(map(topics.imbalance_of_topic, topics.topics_to_be_deleted))
    return count


def _count_deleting(parts: ControllerParts, states: Collection[ReplicaState]) -> int:
    context = parts.context
    return sum(
        context.states.replica_state(replica) in states
        for topic in context.topics.topics_queued_for_deletion()
        for replica in context.topics.replicas_for_topic(topic)
    )


_UNCONFIRMED = frozenset(ReplicaState) - {ReplicaState.DELETION_SUCCESSFUL}
_INELIGIBLE = frozenset({ReplicaState.DELETION_INELIGIBLE})

_GAUGES: Mapping[str, Callable[[ControllerParts], int]] = {
    "OfflinePartitionsCount": _offline_partitions,
    "PreferredReplicaImbalanceCount": _preferred_replica_imbalance,
    "GlobalTopicCount": lambda parts: len(parts.context.topics.all_topics),
    "GlobalPartitionCount": lambda parts: len(parts.context.topics.partitions_leadership_info),
    "TopicsToDeleteCount": lambda parts: len(parts.context.topics.topics_to_be_deleted),
    "ReplicasToDeleteCount": lambda parts: _count_deleting(parts, _UNCONFIRMED),
    "TopicsIneligibleToDeleteCount": lambda parts: len(
        parts.context.topics.topics_ineligible_for_deletion
    ),
    "ReplicasIneligibleToDeleteCount": lambda parts: _count_deleting(parts, _INELIGIBLE),
}
"""Gauges of the active controller; on other brokers they are 0."""


class ControllerMetrics:
    """Reads a controller's metrics, and resets its counters and histograms."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    def broker_queue_sizes(self) -> dict[int, int]:
        """Return the number of requests that wait for each registered broker, by id."""
        parts = self._parts
        if not parts.is_active:
            return {}
        ids = parts.context.brokers.live_or_shutting_down_broker_ids
        return {broker_id: parts.channels.queue_size(broker_id) for broker_id in ids}

    def clear(self) -> None:
        """Reset all counters and histograms."""
        parts = self._parts
        parts.context.unclean_leader_elections = 0
        parts.event_manager.queue_times.clear()
        for timer in parts.event_manager.timers.values():
            timer.clear()
        for broker_id in self.broker_queue_sizes():
            parts.channels.queue_times(broker_id).clear()

    def snapshot(self) -> dict[str, float | dict[str, float]]:
        """Return every metric by Kafka's name; timers and histograms as dicts of their figures."""
        parts = self._parts
        is_active, events = parts.is_active, parts.event_manager
        sizes = self.broker_queue_sizes()
        values: dict[str, float | dict[str, float]] = {
            "ActiveControllerCount": int(is_active),
            **{name: gauge(parts) if is_active else 0 for name, gauge in _GAUGES.items()},
            "ControllerState": int(events.state),
            "UncleanLeaderElectionsPerSec": parts.context.unclean_leader_elections,
            "EventQueueSize": len(events),
            "EventQueueTimeMs": events.queue_times.snapshot(),
        }
        if parts.behaviour.broker_count_metrics:
            values["ActiveBrokerCount"] = len(sizes)
            values["FencedBrokerCount"] = 0  # only KRaft fences brokers
        for state, timer in events.timers.items():
            values[str(state.timer_name)] = timer.snapshot()
        # Requests in flight, which brokers have not answered yet, do not count.
        values["TotalQueueSize"] = parts.channels.total_queue_size if is_active else 0
        for broker_id, size in sizes.items():
            times = parts.channels.queue_times(broker_id)
            values[f"QueueSize,broker-id={broker_id}"] = size
            values[f"RequestRateAndQueueTimeMs,broker-id={broker_id}"] = times.snapshot()
        return values
