"""The state of a hosted partition, what its broker's partitions share, and plain questions to it.

``Partition`` adds what changes the state (docs/kafka/partitions.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig, TopicConfig
from ...protocol.errors import ErrorCode, invariant
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .isr_updaters import IsrUpdater, PendingIsr
from .replica import Replica

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ..leader.sessions import CachedPartition, FetchSession
    from ..log.log import Log
    from .metadata_cache import MetadataCache
    from .partition import Partition

_NONE = ErrorCode.NONE


class TopicSettings:
    """What the partitions of one topic share, and topics of the same configuration object."""

    __slots__ = (
        "compression_is_zstd",
        "config",
        "deletes",
        "min_insync_replicas",
    )

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.min_insync_replicas: int = config["min.insync.replicas"]
        self.compression_is_zstd: bool = config["compression.type"] == "zstd"
        self.deletes: bool = "delete" in config["cleanup.policy"]


class PartitionContext:
    """What all partitions of one broker share."""

    __slots__ = (
        "behaviour",
        "broker_id",
        "by_previous_fetch",
        "frozen_under_min_isr",
        "high_watermark_moved",
        "host",
        "isr_expands",
        "isr_failed_updates",
        "isr_shrinks",
        "isr_updater",
        "join_needs_epoch_start",
        "joiner_must_be_eligible",
        "lag_ms_max",
        "metadata_cache",
        "min_isr_at_most_replicas",
        "open_log",
        "released_sessions",
        "waits_for_joiner",
    )

    def __init__(
        self,
        *,
        broker_id: int,
        host: Host,
        config: BrokerConfig,
        behaviour: Behaviour,
        metadata_cache: MetadataCache,
        isr_updater: IsrUpdater,
        open_log: Callable[[TopicPartition, bool], Log],
        high_watermark_moved: Callable[[Partition], object],
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.behaviour = behaviour
        self.metadata_cache = metadata_cache
        self.isr_updater = isr_updater
        self.open_log = open_log
        """Opens or creates a log with its checkpointed high watermark; raises ``KafkaError``
        KAFKA_STORAGE_ERROR when the disk refuses."""
        self.high_watermark_moved = high_watermark_moved
        self.lag_ms_max: int = config["replica.lag.time.max.ms"]
        self.by_previous_fetch = behaviour.caught_up_by_previous_fetch
        self.waits_for_joiner = behaviour.high_watermark_waits_for_joiner
        self.joiner_must_be_eligible = behaviour.joiner_must_be_eligible
        self.frozen_under_min_isr = behaviour.high_watermark_frozen_under_min_isr
        self.min_isr_at_most_replicas = behaviour.min_isr_at_most_replicas
        self.join_needs_epoch_start = behaviour.isr_join_needs_epoch_start
        self.released_sessions: list[FetchSession] = []
        """Sessions whose waiting fetch is to be tried because a partition changed its role."""
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.isr_failed_updates = 0


class PartitionState:
    """Fields of a hosted partition; methods here only read them."""

    __slots__ = (
        "adding_replicas",
        "context",
        "controller_epoch",
        "fetch_entries",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "maximal_isr",
        "partition_epoch",
        "pending_isr",
        "remote_replicas",
        "removing_replicas",
        "replicas",
        "settings",
        "topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, context: PartitionContext, settings: TopicSettings
    ) -> None:
        self.topic_partition = topic_partition
        self.context = context
        self.settings = settings
        self.log: Log | None = None
        self.leader_id: int | None = None
        self.is_leader = False
        """``leader_id`` is this broker; kept apart because every request asks."""
        self.leader_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        """The log's end when this broker became leader of ``leader_epoch``; None on followers."""
        self.partition_epoch = 0
        """Version of the stored leadership (zkVersion) the next ISR proposal is based on."""
        self.controller_epoch = 0
        self.replicas: tuple[int, ...] = ()
        self.adding_replicas: tuple[int, ...] = ()
        self.removing_replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """The committed ISR; empty on followers."""
        self.maximal_isr: tuple[int, ...] = ()
        """``isr`` plus who is being added: a superset of ``isr`` at all times."""
        self.pending_isr: PendingIsr | None = None
        self.remote_replicas: tuple[Replica, ...] = ()
        """The other assigned replicas, in assignment order; kept on leaders."""
        self.fetch_entries: list[CachedPartition] | None = None
        """Where followers' fetch sessions watch this partition; leaders only."""

    # -- access -----------------------------------------------------------------------------

    def access_error(self, current_leader_epoch: int, require_leader: bool) -> ErrorCode:
        """The epoch check, then the leader check
        (docs/kafka/partitions.md#access); NONE if both pass."""
        if current_leader_epoch != -1 and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if require_leader:
            if not self.is_leader:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif self.log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return _NONE

    def replica(self, broker_id: int) -> Replica | None:
        """The remote replica on a broker, if this (leader) partition knows one."""
        self.settle_fetchers()
        return self.find_replica(broker_id)

    def find_replica(self, broker_id: int) -> Replica | None:
        """Like ``replica``, but the times of an idle follower may lag behind."""
        for replica in self.remote_replicas:
            if replica.broker_id == broker_id:
                return replica
        return None

    @property
    def min_isr(self) -> int:
        """How many in-sync replicas acks=all needs on this leader.

        Since 3.7 no more than there are replicas (Kafka: ``Partition.effectiveMinIsr``).
        """
        wanted = self.settings.min_insync_replicas
        if wanted > 1 and self.context.min_isr_at_most_replicas:
            return min(wanted, len(self.remote_replicas) + 1)
        return wanted

    @property
    def low_watermark(self) -> int:
        """Smallest log start over this leader and the replicas on live brokers."""
        log = self.log
        invariant(log is not None and self.is_leader, "only a leader has a low watermark")
        assert log is not None
        low = log.log_start_offset
        is_alive = self.context.metadata_cache.is_alive
        for replica in self.remote_replicas:
            if replica.log_start_offset < low and is_alive(replica.broker_id):
                low = replica.log_start_offset
        return low

    # -- fetch sessions of followers ----------------------------------------------------------

    def wake_fetchers(self) -> None:
        """Offsets or marks changed: sessions have to look at the partition again."""
        if self.fetch_entries is not None:
            for entry in self.fetch_entries:
                if entry.is_idle:
                    entry.wake()

    def settle_fetchers(self) -> None:
        """Bring the times of idle followers up to date, before they are looked at."""
        if self.fetch_entries is not None:
            for entry in self.fetch_entries:
                entry.settle()

    def release_fetchers(self) -> None:
        """The role changes: no session may rely on what it knew of the partition."""
        entries, self.fetch_entries = self.fetch_entries, None
        for entry in entries or ():
            entry.unlink()
            if entry.session is not None:
                self.context.released_sessions.append(entry.session)

    # -- gauges (docs/kafka/partitions.md#predicates): leaders only
    # ----------------------------------------------

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def is_under_replicated(self) -> bool:
        """The ISR is smaller than the replicas that count (without those being added)."""
        if not self.is_leader:
            return False
        expected = len(self.replicas) - len(self.adding_replicas)
        return expected > len(self.isr)

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) < self.min_isr

    @property
    def is_at_min_isr(self) -> bool:
        return self.is_leader and len(self.isr) == self.min_isr

    def __repr__(self) -> str:
        role = "leader" if self.is_leader else f"follower of {self.leader_id}"
        return (
            f"Partition({self.topic_partition}, {role}, leader_epoch={self.leader_epoch}, "
            f"isr={self.isr})"
        )
