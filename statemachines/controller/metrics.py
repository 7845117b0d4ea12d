"""The controller's metrics, by Kafka's names (docs/kafka/controller-state.md).

Gauges are computed when read, from the controller's memory; only times are collected.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ..machines.transitions import ReplicaState

if TYPE_CHECKING:
    from .controller import KafkaController

_SAMPLES_MAX = 1024


class Histogram:
    """Count, extremes and sum of everything, percentiles of the last 1024 values."""

    __slots__ = ("_recent", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.total = 0
        self.minimum = 0
        """0 while nothing was recorded."""
        self.maximum = 0
        self._recent: deque[int] | None = None

    def update(self, value: int) -> None:
        if self._recent is None:
            self._recent = deque(maxlen=_SAMPLES_MAX)
            self.minimum = self.maximum = value
        self._recent.append(value)
        self.count += 1
        self.total += value
        if value < self.minimum:
            self.minimum = value
        elif value > self.maximum:
            self.maximum = value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def percentile(self, fraction: float) -> int:
        """Value below which ``fraction`` (0..1) of the recent values lie; 0 without values."""
        if not self._recent:
            return 0
        ordered = sorted(self._recent)
        return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]

    def snapshot(self) -> dict[str, float]:
        return {
            "count": self.count,
            "min": self.minimum,
            "max": self.maximum,
            "mean": self.mean,
            "p50": self.percentile(0.5),
            "p99": self.percentile(0.99),
        }


class ControllerMetrics:
    """Reads a controller's metrics; those of an inactive one are 0."""

    __slots__ = ("_controller",)

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    @property
    def active_controller_count(self) -> int:
        return int(self._controller.is_active)

    @property
    def offline_partitions_count(self) -> int:
        controller = self._controller
        if not controller.is_active:
            return 0
        if controller.behaviour.recounts_gauges:
            return controller.context.count_leaderless_partitions()
        return controller.context.offline_partition_count

    @property
    def preferred_replica_imbalance_count(self) -> int:
        controller = self._controller
        if not controller.is_active:
            return 0
        context = controller.context
        count = context.preferred_replica_imbalance_count
        if controller.behaviour.gauges_count_queued_topics:
            count += sum(map(context.imbalance_of_topic, context.topics_to_be_deleted))
        return count

    @property
    def global_topic_count(self) -> int:
        return len(self._controller.context.all_topics) if self._controller.is_active else 0

    @property
    def global_partition_count(self) -> int:
        """Partitions with leadership info."""
        controller = self._controller
        return len(controller.context.partitions_leadership_info) if controller.is_active else 0

    @property
    def topics_to_delete_count(self) -> int:
        controller = self._controller
        return len(controller.context.topics_to_be_deleted) if controller.is_active else 0

    @property
    def topics_ineligible_to_delete_count(self) -> int:
        controller = self._controller
        return len(controller.context.topics_ineligible_for_deletion) if controller.is_active else 0

    @property
    def replicas_to_delete_count(self) -> int:
        """Replicas of queued topics that did not confirm their deletion yet."""
        return self._count_deleting(frozenset(ReplicaState) - {ReplicaState.DELETION_SUCCESSFUL})

    @property
    def replicas_ineligible_to_delete_count(self) -> int:
        return self._count_deleting(frozenset({ReplicaState.DELETION_INELIGIBLE}))

    def _count_deleting(self, states: frozenset[ReplicaState]) -> int:
        controller = self._controller
        if not controller.is_active:
            return 0
        context = controller.context
        return sum(
            context.replica_state(replica) in states
            for topic in context.topics_queued_for_deletion()
            for replica in context.replicas_for_topic(topic)
        )

    @property
    def active_broker_count(self) -> int:
        """Brokers that are registered, those that are shutting down included."""
        controller = self._controller
        if not controller.is_active:
            return 0
        return len(controller.context.live_or_shutting_down_broker_ids)

    @property
    def unclean_leader_elections(self) -> int:
        """Elections of leaders outside the ISR since the process started."""
        return self._controller.context.unclean_leader_elections

    @property
    def event_queue_size(self) -> int:
        return len(self._controller.event_manager)

    @property
    def event_queue_times(self) -> Histogram:
        return self._controller.event_manager.queue_times

    def broker_queue_sizes(self) -> dict[int, int]:
        """Requests waiting for each registered broker, by id."""
        controller = self._controller
        if not controller.is_active:
            return {}
        ids = controller.context.live_or_shutting_down_broker_ids
        return {broker_id: controller.channels.queue_size(broker_id) for broker_id in ids}

    @property
    def total_queue_size(self) -> int:
        """Requests waiting for brokers; one that a broker has not answered yet does not count."""
        controller = self._controller
        return controller.channels.total_queue_size if controller.is_active else 0

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
            "ControllerState": int(self._controller.event_manager.state),
            "UncleanLeaderElectionsPerSec": self.unclean_leader_elections,
            "EventQueueSize": self.event_queue_size,
            "EventQueueTimeMs": self.event_queue_times.snapshot(),
        }
        if self._controller.behaviour.broker_count_metrics:
            values["ActiveBrokerCount"] = self.active_broker_count
            values["FencedBrokerCount"] = 0  # of KRaft; with ZooKeeper there are none
        for state, timer in self._controller.event_manager.timers.items():
            values[str(state.timer_name)] = timer.snapshot()
        values["TotalQueueSize"] = self.total_queue_size
        for broker_id, size in self.broker_queue_sizes().items():
            times = self._controller.channels.queue_times(broker_id)
            values[f"QueueSize,broker-id={broker_id}"] = size
            values[f"RequestRateAndQueueTimeMs,broker-id={broker_id}"] = times.snapshot()
        return values
