"""State that the partitions of one broker share, and the fetch sessions a partition knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ...protocol.config import BrokerConfig, TopicConfig
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .isr_proposals import IsrUpdater

if TYPE_CHECKING:
    from ...protocol.host import ReplicaHost
    from ..log.log import Log
    from .metadata_cache import MetadataCache


class WaitingFetch(Protocol):
    """A follower's fetch that waits in the purgatory."""

    def try_complete(self) -> bool: ...
    def watch_again(self) -> None:
        """Keep waiting although a partition has changed its role."""


class WaitingSession(Protocol):
    """A follower's fetch session."""

    @property
    def parked(self) -> WaitingFetch | None: ...


class FetchEntry(Protocol):
    """A partition in a follower's fetch session (docs/kafka/fetch-sessions.md)."""

    is_idle: bool

    @property
    def session(self) -> WaitingSession | None: ...
    def wake(self) -> None:
        """Make the session's next fetch, or the waiting one, read the partition."""

    def settle(self) -> None:
        """Update the time at which an idle follower was last caught up."""

    def unlink(self) -> None:
        """Wake the entry and detach it from the partition."""


class TopicSettings:
    """Settings shared by the partitions of a topic, and by topics with one configuration object."""

    __slots__ = (
        "compression_is_zstd",
        "config",
        "deletes",
        "min_insync_replicas",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.config: TopicConfig = config
        self.min_insync_replicas: int = config["min.insync.replicas"]
        self.compression_is_zstd: bool = config["compression.type"] == "zstd"
        self.deletes: bool = "delete" in config["cleanup.policy"]


class PartitionContext:
    """State that all partitions of one broker share."""

    def __init__(
        self,
        *,
        broker_id: int,
        host: ReplicaHost,
        config: BrokerConfig,
        behaviour: Behaviour,
        metadata_cache: MetadataCache,
        isr_updater: IsrUpdater,
        open_log: Callable[[TopicPartition, bool], Log],
    ) -> None:
        self.broker_id: int = broker_id
        self.host: ReplicaHost = host
        self.behaviour: Behaviour = behaviour
        self.metadata_cache: MetadataCache = metadata_cache
        self.isr_updater: IsrUpdater = isr_updater
        self.open_log: Callable[[TopicPartition, bool], Log] = open_log
        """Opens or creates a log and sets its checkpointed high watermark; raises ``KafkaError``
        KAFKA_STORAGE_ERROR if the disk fails."""
        self.high_watermark_moved: Callable[[Any], object] = lambda partition: None
        """Called with each partition whose high watermark rose, as delayed operations may wait
        for it."""
        self.lag_ms_max: int = config["replica.lag.time.max.ms"]
        self.by_previous_fetch: bool = behaviour.caught_up_by_previous_fetch
        self.waits_for_joiner: bool = behaviour.high_watermark_waits_for_joiner
        self.joiner_must_be_eligible: bool = behaviour.joiner_must_be_eligible
        self.frozen_under_min_isr: bool = behaviour.high_watermark_frozen_under_min_isr
        self.min_isr_at_most_replicas: bool = behaviour.min_isr_at_most_replicas
        self.join_needs_epoch_start: bool = behaviour.isr_join_needs_epoch_start
        self.released_sessions: list[WaitingSession] = []
        """Sessions whose waiting fetch must be retried because a partition changed its role."""
        self.isr_shrinks: int = 0
        self.isr_expands: int = 0
        self.isr_failed_updates: int = 0

    def report_lag(self, topic_partition: TopicPartition, lagging: Iterable[int]) -> None:
        """Report replicas that have lagged for too long, if the run is recorded."""
        if self.host.state_listener is None:
            return
        for broker_id in lagging:
            self.host.report_silence(
                broker_name(broker_id),
                self.lag_ms_max,
                f"replica {broker_id} of {topic_partition} has been behind for more than "
                f"{self.lag_ms_max} ms",
            )
