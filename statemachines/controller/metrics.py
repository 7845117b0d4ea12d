"""The controller's metrics, by Kafka's names (docs/kafka/controller-state.md).

Gauges are computed when read, from the controller's memory; only times are collected.
"""

from __future__ import annotations

from ..machines.transitions import ReplicaState
from .histogram import Histogram
from .parts import ControllerParts


class ControllerMetrics:
    """Reads a controller's metrics; those of an inactive one are 0."""

    __slots__ = ("_parts",)

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts

    @property
    def active_controller_count(self) -> int:
        return int(self._parts.is_active)

    @property
    def offline_partitions_count(self) -> int:
        parts = self._parts
        if not parts.is_active:
            return 0
        if parts.behaviour.recounts_gauges:
            return parts.context.topics.count_leaderless_partitions()
        return parts.context.states.offline_partition_count

    @property
    def preferred_replica_imbalance_count(self) -> int:
        parts = self._parts
        if not parts.is_active:
            return 0
        context = parts.context
        count = context.topics.preferred_replica_imbalance_count
        if parts.behaviour.gauges_count_queued_topics:
            count += sum(
                map(context.topics.imbalance_of_topic, context.topics.topics_to_be_deleted)
            )
        return count

    @property
    def global_topic_count(self) -> int:
        return len(self._parts.context.topics.all_topics) if self._parts.is_active else 0

    @property
    def global_partition_count(self) -> int:
        """Partitions with leadership info."""
        parts = self._parts
        return len(parts.context.topics.partitions_leadership_info) if parts.is_active else 0

    @property
    def topics_to_delete_count(self) -> int:
        parts = self._parts
        return len(parts.context.topics.topics_to_be_deleted) if parts.is_active else 0

    @property
    def topics_ineligible_to_delete_count(self) -> int:
        parts = self._parts
        return len(parts.context.topics.topics_ineligible_for_deletion) if parts.is_active else 0

    @property
    def replicas_to_delete_count(self) -> int:
        """Replicas of queued topics that did not confirm their deletion yet."""
        return self._count_deleting(frozenset(ReplicaState) - {ReplicaState.DELETION_SUCCESSFUL})

    @property
    def replicas_ineligible_to_delete_count(self) -> int:
        return self._count_deleting(frozenset({ReplicaState.DELETION_INELIGIBLE}))

    def _count_deleting(self, states: frozenset[ReplicaState]) -> int:
        parts = self._parts
        if not parts.is_active:
            return 0
        context = parts.context
        return sum(
            context.states.replica_state(replica) in states
            for topic in context.topics.topics_queued_for_deletion()
            for replica in context.topics.replicas_for_topic(topic)
        )

    @property
    def active_broker_count(self) -> int:
        """Brokers that are registered, those that are shutting down included."""
        parts = self._parts
        if not parts.is_active:
            return 0
        return len(parts.context.brokers.live_or_shutting_down_broker_ids)

    @property
    def unclean_leader_elections(self) -> int:
        """Elections of leaders outside the ISR since the process started."""
        return self._parts.context.unclean_leader_elections

    @property
    def event_queue_size(self) -> int:
        return len(self._parts.event_manager)

    @property
    def event_queue_times(self) -> Histogram:
        return self._parts.event_manager.queue_times

    def broker_queue_sizes(self) -> dict[int, int]:
        """Requests waiting for each registered broker, by id."""
        parts = self._parts
        if not parts.is_active:
            return {}
        ids = parts.context.brokers.live_or_shutting_down_broker_ids
        return {broker_id: parts.channels.queue_size(broker_id) for broker_id in ids}

    @property
    def total_queue_size(self) -> int:
        """Requests waiting for brokers; one that a broker has not answered yet does not count."""
        parts = self._parts
        return parts.channels.total_queue_size if parts.is_active else 0

    def clear(self) -> None:
        """Begin to count anew."""
        parts = self._parts
        parts.context.unclean_leader_elections = 0
        parts.event_manager.queue_times.clear()
        for timer in parts.event_manager.timers.values():
            timer.clear()
        for broker_id in self.broker_queue_sizes():
            parts.channels.queue_times(broker_id).clear()

    def snapshot(self) -> dict[str, float | dict[str, float]]:
        """Every metric by Kafka's name; timers and histograms as dicts of their figures."""
        values: dict[str, float | dict[str, float]] = {
            "ActiveControllerCount": self.active_controller_count,
            "OfflinePartitionsCount": self.offline_partitions_count,
            "PreferredReplicaImbalanceCount": self.preferred_replica_imbalance_count,
            "GlobalTopicCount": self.global_topic_count,
            "GlobalPartitionCount": self.global_partition_count,
            "TopicsToDeleteCount": self.topics_to_delete_count,
            "ReplicasToDeleteCount": self.replicas_to_delete_count,
            "TopicsIneligibleToDeleteCount": self.topics_ineligible_to_delete_count,
            "ReplicasIneligibleToDeleteCount": self.replicas_ineligible_to_delete_count,
            "ControllerState": int(self._parts.event_manager.state),
            "UncleanLeaderElectionsPerSec": self.unclean_leader_elections,
            "EventQueueSize": self.event_queue_size,
            "EventQueueTimeMs": self.event_queue_times.snapshot(),
        }
        if self._parts.behaviour.broker_count_metrics:
            values["ActiveBrokerCount"] = self.active_broker_count
            values["FencedBrokerCount"] = 0  # of KRaft; with ZooKeeper there are none
        for state, timer in self._parts.event_manager.timers.items():
            values[str(state.timer_name)] = timer.snapshot()
        values["TotalQueueSize"] = self.total_queue_size
        for broker_id, size in self.broker_queue_sizes().items():
            times = self._parts.channels.queue_times(broker_id)
            values[f"QueueSize,broker-id={broker_id}"] = size
            values[f"RequestRateAndQueueTimeMs,broker-id={broker_id}"] = times.snapshot()
        return values
