"""The partitions a broker hosts, found by name, and the operations that wait on them.

``PartitionHost`` is the ground under the handlers of ``ReplicaManager``: lookup with Kafka's
errors (docs/kafka/partitions.md#access), shared settings per topic, the purgatories and their one
host timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig, TopicConfig
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..leader.replica_selector import replica_selector
from ..leader.session_cache import FetchSessionCache
from ..waiting.purgatory import Purgatory
from ..waiting.timing_wheel import WheelTimer
from .isr_updaters import IsrUpdater
from .metadata_cache import MetadataCache
from .partition import Partition, PartitionContext, TopicSettings

if TYPE_CHECKING:
    from ..disk.memory import Disk
    from ..follower.manager import FetcherManager
    from ..log.log import Log

LeadershipCallback = Callable[[list[Partition], list[Partition]], object]
"""Told the partitions of one LeaderAndIsr that are now led, and followed, here."""


class PartitionHost:
    """Hosted partitions, their purgatories and what they share.

    The fields of all handlers are declared here: of several bases only one may have slots.
    """

    __slots__ = (
        "_fetch_bytes_max",
        "_high_watermarks",
        "_hosted_counts",
        "_last_settings",
        "_now_ms",
        "_offline",
        "_partitions",
        "_settings",
        "behaviour",
        "broker_epoch",
        "broker_id",
        "config",
        "context",
        "controller_epoch",
        "delete_purgatory",
        "disk",
        "fetch_expirations",
        "fetch_purgatory",
        "fetch_sessions",
        "fetcher_manager",
        "growth_purgatory",
        "host",
        "is_shutting_down",
        "isr_updater",
        "metadata_cache",
        "on_leadership_change",
        "produce_expirations",
        "produce_purgatory",
        "selector",
        "timer",
        "topic_config",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        disk: Disk,
        metadata_cache: MetadataCache,
        isr_updater: IsrUpdater,
        fetcher_manager: FetcherManager,
        topic_config: Callable[[str], TopicConfig],
        broker_epoch: Callable[[], int],
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self._now_ms = host.now_ms
        """``host.now_ms``, bound once: every request asks."""
        self.config = config
        self.behaviour = behaviour
        self.disk = disk
        self.metadata_cache = metadata_cache
        self.isr_updater = isr_updater
        self.fetcher_manager = fetcher_manager
        self.topic_config = topic_config
        self.broker_epoch = broker_epoch
        self.selector = replica_selector(config["replica.selector.class"])
        self.context = PartitionContext(
            broker_id=broker_id,
            host=host,
            config=config,
            behaviour=behaviour,
            metadata_cache=metadata_cache,
            isr_updater=isr_updater,
            open_log=self._open_log,
            high_watermark_moved=self.complete_delayed,
        )
        self._partitions: dict[TopicPartition, Partition] = {}
        self._offline: dict[TopicPartition, None] = {}
        """Partitions that failed with their log directory; disjoint from ``_partitions``."""
        self._settings: dict[str, TopicSettings] = {}
        """By topic; topics with the same configuration object share their settings."""
        self._hosted_counts: dict[str, int] = {}
        """Hosted partitions by topic, wherever ``_settings`` has an entry."""
        self._last_settings: TopicSettings | None = None
        self._fetch_bytes_max: int = config["fetch.max.bytes"]
        self.timer = WheelTimer(host)
        self._make_purgatories(config)
        self.fetch_sessions = FetchSessionCache(
            config["max.incremental.fetch.session.cache.slots"] if behaviour.fetch_sessions else 0,
            host.rng,
        )
        self._high_watermarks: dict[TopicPartition, int] = dict(disk.read_high_watermarks())
        """Checkpointed high watermarks of logs not opened yet."""
        self.produce_expirations = 0
        """Produce requests that failed because their time was up."""
        self.fetch_expirations = 0
        """Fetches answered because their time was up."""
        self.controller_epoch = 0
        """Highest controller epoch seen in any control request; never goes down."""
        self.on_leadership_change: LeadershipCallback | None = None
        self.is_shutting_down = False

    def _make_purgatories(self, config: BrokerConfig) -> None:
        self.produce_purgatory = Purgatory(
            "Produce", self.timer, config["producer.purgatory.purge.interval.requests"]
        )
        self.fetch_purgatory = Purgatory(
            "Fetch", self.timer, config["fetch.purgatory.purge.interval.requests"]
        )
        self.growth_purgatory = Purgatory(
            "FetchToEnd", self.timer, config["fetch.purgatory.purge.interval.requests"]
        )
        """The part of Kafka's fetch purgatory that an append may complete: followers read up to
        the log's end, consumers only what is below the high watermark."""
        self.delete_purgatory = Purgatory(
            "DeleteRecords",
            self.timer,
            config["delete.records.purgatory.purge.interval.requests"],
        )

    # -- lookup -----------------------------------------------------------------------------

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        """A hosted partition; None if not hosted here or offline."""
        return self._partitions.get(topic_partition)

    @property
    def partitions(self) -> Iterator[Partition]:
        """Hosted partitions that are online, in the order they came."""
        return iter(tuple(self._partitions.values()))

    def lookup_error(self, topic_partition: TopicPartition) -> ErrorCode:
        """Why a partition is not among the hosted ones."""
        if topic_partition in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_known = self.behaviour.foreign_partition_is_known
        if is_known and self.metadata_cache.contains(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._offline

    # -- creation ---------------------------------------------------------------------------

    def _register(self, topic_partition: TopicPartition) -> Partition:
        """Host a partition that is not hosted yet; it has no role and no log."""
        topic = topic_partition.topic
        settings = self._settings.get(topic)
        if settings is None:
            settings = self._settings[topic] = self._topic_settings(topic)
        self._hosted_counts[topic] = self._hosted_counts.get(topic, 0) + 1
        partition = Partition(topic_partition, self.context, settings)
        self._partitions[topic_partition] = partition
        return partition

    def _unregister(self, topic_partition: TopicPartition) -> Partition | None:
        """Host a partition no longer; its object is dead. None if it was not hosted."""
        partition = self._partitions.pop(topic_partition, None)
        if partition is None:
            return None
        partition.delete()
        topic = topic_partition.topic
        self._hosted_counts[topic] -= 1
        if not self._hosted_counts[topic]:
            # A topic of the same name may come back with another configuration.
            del self._hosted_counts[topic], self._settings[topic]
        return partition

    def _topic_settings(self, topic: str) -> TopicSettings:
        """Settings of a topic; those made last are shared if they are of the same object."""
        config = self.topic_config(topic)
        settings = self._last_settings
        if settings is None or settings.config is not config:
            settings = self._last_settings = TopicSettings(config)
        return settings

    def update_topic_config(self, topic: str) -> None:
        """Take a changed topic configuration into force, without a leadership change."""
        if topic not in self._settings:
            return
        settings = self._settings[topic] = self._topic_settings(topic)
        for topic_partition, partition in self._partitions.items():
            if topic_partition.topic == topic:
                partition.settings = settings
                if partition.log is not None:
                    partition.log.update_config(settings.config)

    def _open_log(self, topic_partition: TopicPartition, is_new: bool) -> Log:
        """Open or create a log and give it its checkpointed high watermark
        (docs/kafka/partitions.md#the-first-high-watermark)."""
        config = self._settings[topic_partition.topic].config
        try:
            log = self.disk.open_log(topic_partition, config, is_new=is_new)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        high_watermark = self._high_watermarks.pop(topic_partition, 0)
        log.update_high_watermark(high_watermark)
        return log

    # -- delayed operations -----------------------------------------------------------------

    def complete_delayed(self, partition: Partition) -> None:
        """Try whatever waits on a partition whose high watermark moved.

        Fetches come first (Kafka: ``Partition.tryCompleteDelayedRequests``).
        """
        partition.wake_fetchers()
        name = partition.topic_partition
        self._complete_fetches_of(name)
        if self.produce_purgatory.delayed_count:
            self.produce_purgatory.check_and_complete(name)
        self._complete_rest_of(name)

    def complete_after_append(self, partition: Partition) -> None:
        """Try whatever waits on a leader whose high watermark moved with its own append."""
        if self.behaviour.append_completes_produces_first:
            self.complete_delayed_of(partition.topic_partition)
        else:
            self.complete_delayed(partition)

    def complete_delayed_of(self, topic_partition: TopicPartition) -> None:
        """Try whatever waits on a partition, produces first: its role changed.

        Kafka: ``ReplicaManager.completeDelayedFetchOrProduceRequests``.
        """
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            partition.wake_fetchers()
        if self.produce_purgatory.delayed_count:
            self.produce_purgatory.check_and_complete(topic_partition)
        self._complete_fetches_of(topic_partition)
        self._complete_rest_of(topic_partition)

    def _complete_fetches_of(self, topic_partition: TopicPartition) -> None:
        if self.fetch_purgatory.delayed_count:
            self.fetch_purgatory.check_and_complete(topic_partition)
        if self.growth_purgatory.delayed_count:
            self.growth_purgatory.check_and_complete(topic_partition)

    def _complete_rest_of(self, topic_partition: TopicPartition) -> None:
        if self.delete_purgatory.delayed_count:
            self.delete_purgatory.check_and_complete(topic_partition)
        released = self.context.released_sessions
        while released:
            parked = released.pop().parked
            if parked is not None:
                parked.try_complete()

    def complete_fetches(self, partition: Partition) -> None:
        """Try the fetches that wait on a partition whose log grew."""
        raise NotImplementedError

    # -- failures ---------------------------------------------------------------------------

    def on_storage_failure(self, topic_partition: TopicPartition, error: Exception) -> None:
        """A log failed under an operation: its whole directory goes offline."""
        raise NotImplementedError

    def mark_partition_offline(self, topic_partition: TopicPartition) -> None:
        """Serve a partition no longer until the broker restarts."""
        self.fetcher_manager.remove_fetchers((topic_partition,))
        self._unregister(topic_partition)
        self._offline[topic_partition] = None
        self.complete_delayed_of(topic_partition)
