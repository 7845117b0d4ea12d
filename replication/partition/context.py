"""State that the partitions of one broker share, and the fetchers a partition knows."""

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
    """A follower's fetch that waits."""

    def try_complete(self) -> bool: ...
    def watch_again(self) -> None:
        """Go on waiting though a partition has changed its role."""


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
        """Be read by the session's next fetch, or by the one that waits."""

    def settle(self) -> None:
        """Write down when an idle follower was caught up last."""

    def unlink(self) -> None:
        """Wake up and depend on the partition no more."""


class TopicSettings:
    """Settings that the partitions of a topic share, and topics of one configuration object."""

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
        """Opens or creates a log with its checkpointed high watermark; raises ``KafkaError``
        KAFKA_STORAGE_ERROR when the disk refuses."""
        self.high_watermark_moved: Callable[[Any], object] = lambda partition: None
        """Told a partition whose high watermark went up: operations may wait for that."""
        self.lag_ms_max: int = config["replica.lag.time.max.ms"]
        self.by_previous_fetch: bool = behaviour.caught_up_by_previous_fetch
        self.waits_for_joiner: bool = behaviour.high_watermark_waits_for_joiner
        self.joiner_must_be_eligible: bool = behaviour.joiner_must_be_eligible
        self.frozen_under_min_isr: bool = behaviour.high_watermark_frozen_under_min_isr
        self.min_isr_at_most_replicas: bool = behaviour.min_isr_at_most_replicas
        self.join_needs_epoch_start: bool = behaviour.isr_join_needs_epoch_start
        self.released_sessions: list[WaitingSession] = []
        """Sessions whose waiting fetch is to be tried because a partition changed its role."""
        self.isr_shrinks: int = 0
        self.isr_expands: int = 0
        self.isr_failed_updates: int = 0

    def tell_lag(self, topic_partition: TopicPartition, lagging: Iterable[int]) -> None:
        """Tell whoever records the run that replicas have been behind for too long."""
        if self.host.state_listener is None:
            return
        for broker_id in lagging:
            self.host.report_silence(
                broker_name(broker_id),
                self.lag_ms_max,
                f"replica {broker_id} of {topic_partition} has been behind for more than "
                f"{self.lag_ms_max} ms",
            )
