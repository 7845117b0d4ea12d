"""The partitions a broker hosts, by name, with Kafka's errors for missing ones
(docs/kafka/partitions.md#access), and the settings that the partitions of a topic share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig, TopicConfig
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import ReplicaHost
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ..log.checkpoint_formats import CLEAN_SHUTDOWN_WITH_EPOCH
from .context import PartitionContext, TopicSettings
from .isr_proposals import IsrUpdater
from .metadata_cache import MetadataCache

if TYPE_CHECKING:
    from ..disk.disk import Disk
    from ..log.log import Log
    from .partition import Partition


class HostedPartitions:
    """The partitions of one broker; opens their logs."""

    def __init__(
        self,
        *,
        broker_id: int,
        host: ReplicaHost,
        config: BrokerConfig,
        behaviour: Behaviour,
        disk: Disk,
        metadata_cache: MetadataCache,
        isr_updater: IsrUpdater,
        topic_config: Callable[[str], TopicConfig],
    ) -> None:
        self.broker_id: int = broker_id
        self.behaviour: Behaviour = behaviour
        self.disk: Disk = disk
        self.metadata_cache: MetadataCache = metadata_cache
        self.topic_config: Callable[[str], TopicConfig] = topic_config
        self.context: PartitionContext = PartitionContext(
            broker_id=broker_id,
            host=host,
            config=config,
            behaviour=behaviour,
            metadata_cache=metadata_cache,
            isr_updater=isr_updater,
            open_log=self.open_log,
        )
        if behaviour.clean_shutdown_file_has_epoch:
            disk.clean_shutdown_content = CLEAN_SHUTDOWN_WITH_EPOCH
        self.by_name: dict[TopicPartition, Partition] = {}
        """Online partitions in order of registration. Request handlers keep a reference to it."""
        self.offline: dict[TopicPartition, None] = {}
        """Partitions that failed with their log directory; disjoint from ``by_name``."""
        self.high_watermarks: dict[TopicPartition, int] = dict(disk.read_high_watermarks())
        """Checkpointed high watermarks of logs not opened yet."""
        self._settings: dict[str, TopicSettings] = {}
        """Settings by topic; topics with the same configuration object share them."""
        self._hosted_counts: dict[str, int] = {}
        """Number of hosted partitions by topic, for each topic in ``_settings``."""
        self._last_settings: TopicSettings | None = None

    # -- lookup -----------------------------------------------------------------------------

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        """Return a hosted partition; None if it is not hosted here or offline."""
        return self.by_name.get(topic_partition)

    def __iter__(self) -> Iterator[Partition]:
        """Iterate over the online partitions in order of registration."""
        return iter(tuple(self.by_name.values()))

    def lookup_error(self, topic_partition: TopicPartition) -> ErrorCode:
        """Return the error for a partition that is offline or not hosted."""
        if topic_partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        is_known = self.behaviour.foreign_partition_is_known
        if is_known and self.metadata_cache.contains(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self.offline

    # -- creation ---------------------------------------------------------------------------

    def register(self, topic_partition: TopicPartition) -> Partition:
        """Host a partition that is not hosted yet; it begins without role and log."""
        from .partition import Partition  # not needed to start a cluster

        topic = topic_partition.topic
        settings = self._settings.get(topic)
        if settings is None:
            settings = self._settings[topic] = self._topic_settings(topic)
        self._hosted_counts[topic] = self._hosted_counts.get(topic, 0) + 1
        partition = Partition(topic_partition, self.context, settings)
        self.by_name[topic_partition] = partition
        return partition

    def unregister(self, topic_partition: TopicPartition) -> Partition | None:
        """Stop hosting a partition; return it, which must not be used again, or None."""
        partition = self.by_name.pop(topic_partition, None)
        if partition is None:
            return None
        partition.delete()
        topic = topic_partition.topic
        self._hosted_counts[topic] -= 1
        if not self._hosted_counts[topic]:
            # A topic of the same name may be created again with another configuration.
            del self._hosted_counts[topic], self._settings[topic]
        return partition

    def _topic_settings(self, topic: str) -> TopicSettings:
        """Return the settings of a topic; reuse the last ones if they have the same ``config``."""
        config = self.topic_config(topic)
        settings = self._last_settings
        if settings is None or settings.config is not config:
            settings = self._last_settings = TopicSettings(config)
        return settings

    def update_topic_config(self, topic: str) -> None:
        """Apply a changed topic configuration, without a leadership change."""
        if topic not in self._settings:
            return
        settings = self._settings[topic] = self._topic_settings(topic)
        for topic_partition, partition in self.by_name.items():
            if topic_partition.topic == topic:
                partition.settings = settings
                if partition.log is not None:
                    partition.log.update_config(settings.config)

    def open_log(self, topic_partition: TopicPartition, is_new: bool) -> Log:
        """Open or create a log and set its checkpointed high watermark
        (docs/kafka/partitions.md#the-first-high-watermark)."""
        config = self._settings[topic_partition.topic].config
        try:
            log = self.disk.open_log(topic_partition, config, is_new=is_new)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        high_watermark = self.high_watermarks.pop(topic_partition, 0)
        log.update_high_watermark(high_watermark)
        if not log.last_flush_ms:
            log.last_flush_ms = self.context.host.wall_ms()
        return log
