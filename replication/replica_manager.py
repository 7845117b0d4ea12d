"""The replica manager: everything a broker does with the partitions it hosts
(docs/kafka/control-requests.md, docs/kafka/isr.md).

The face of the replica layer. Its parts, by what asks for them: ``control_requests`` (the
controller), ``produce``, ``fetch`` (clients and followers), ``offsets``; ``hosting`` is the
ground under them. Here is what runs by the clock: the ISR check, checkpoints, retention and
compaction, expiry of delayed operations; and what to do when a disk fails.

Nothing here blocks, sleeps or sends. Answers go through the ``respond`` of each request; periodic
work is scheduled at the ``Host`` given.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ..protocol.errors import KafkaError
from ..protocol.host import Timer
from ..protocol.values import TopicPartition
from .leader.fetch import FetchHandling
from .leader.offsets import OffsetsHandling
from .leader.produce import ProduceHandling
from .log.compaction import compact
from .log.log import Log
from .log.retention import delete_old_segments
from .partition.partition import Partition
from .role_changes import ControlRequestHandling

INITIAL_TASK_DELAY_MS = 30000
PRODUCER_ID_CHECK_MS = 600000


class ReplicaManager(ProduceHandling, FetchHandling, OffsetsHandling, ControlRequestHandling):
    """Hosts partitions, answers for them, and keeps their logs.

    Construction takes the keywords of ``PartitionHost``. One actor owns it.
    """

    __slots__ = (
        "_is_running",
        "_timers",
        "_uncleanable",
        "on_halt",
        "on_log_dir_failure",
        "on_uncleanable",
    )

    def __init__(self, **surroundings: Any) -> None:
        super().__init__(**surroundings)
        self.on_log_dir_failure: Callable[[str], object] | None = None
        """Told each directory taken offline, once (docs/kafka/brokers.md#failed-disks)."""
        self.on_halt: Callable[[str], object] | None = None
        """The broker process has to exit, with the reason: 0.10 on a position out of range
        (docs/kafka/replica-fetchers.md#out-of-range) or on a failed disk,
        later releases on the last of their disks."""
        self.on_uncleanable: Callable[[TopicPartition, Exception], object] | None = None
        """Told each log that compaction cannot read and leaves alone from now on, once."""
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._timers: dict[str, Timer] = {}
        self._is_running = False
        self.fetcher_manager.bind(self.partition)
        callbacks = self.fetcher_manager.callbacks
        callbacks.on_appended = self.fetch_purgatory.check_and_complete
        callbacks.on_storage_failure = self.on_storage_failure
        callbacks.on_halt = lambda name, reason: self._halt(reason)
        callbacks.is_unclean_election_allowed = self._is_unclean_election_allowed

    # -- life -------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin the periodic work. The broker has no leadership yet."""
        self._is_running = True
        config = self.config
        lag_ms_max: int = config["replica.lag.time.max.ms"]
        if not self.behaviour.isr_checked_each_lag_time:
            lag_ms_max //= 2
        self._every("isr-expiration", lag_ms_max, self.shrink_isrs)
        self._every(
            "log-retention",
            config["log.retention.check.interval.ms"],
            self.apply_retention,
            INITIAL_TASK_DELAY_MS,
        )
        self._every(
            "flush-checkpoints",
            config["log.flush.offset.checkpoint.interval.ms"],
            self.checkpoint_log_offsets,
            INITIAL_TASK_DELAY_MS,
        )
        self._every("producer-id-expiry", PRODUCER_ID_CHECK_MS, self.expire_producer_ids)
        if config["log.cleaner.enable"]:
            self._every("log-cleaner", config["log.cleaner.backoff.ms"], self.clean_logs)

    def shutdown(self, checkpoint: bool) -> None:
        """Stop. With ``checkpoint`` as a controlled stop does: high watermarks, flush, marker."""
        self.is_shutting_down = True
        self._is_running = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self.timer.close()
        self.fetcher_manager.shutdown()
        if checkpoint:
            self.checkpoint_high_watermarks()
            self.disk.close()

    def _every(
        self,
        name: str,
        interval_ms: int,
        task: Callable[[], object],
        first_delay_ms: int | None = None,
    ) -> None:
        def run() -> None:
            if self._is_running:
                self._timers[name] = self.host.call_later_ms(interval_ms, run)
                task()

        delay_ms = interval_ms if first_delay_ms is None else first_delay_ms
        self._timers[name] = self.host.call_later_ms(delay_ms, run)

    # -- periodic work ----------------------------------------------------------------------

    def shrink_isrs(self) -> None:
        """Propose ISRs without members that fell behind (docs/kafka/isr.md#shrinking)."""
        now_ms = self.host.now_ms()
        for partition in tuple(self._partitions.values()):
            if partition.is_leader:
                partition.maybe_shrink_isr(now_ms)

    def start_high_watermark_checkpoints(self) -> None:
        """Begin checkpointing high watermarks, once: with the first LeaderAndIsr."""
        name = "high-watermark-checkpoint"
        if name not in self._timers and self._is_running:
            self._every(
                name,
                self.config["replica.high.watermark.checkpoint.interval.ms"],
                self.checkpoint_high_watermarks,
            )

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every online log, led and followed
        (docs/kafka/log.md#files)."""
        high_watermarks = dict(self._high_watermarks)
        for name, partition in self._partitions.items():
            if partition.log is not None:
                high_watermarks[name] = partition.log.high_watermark
        self.disk.checkpoint_high_watermarks(high_watermarks)

    def checkpoint_log_offsets(self) -> None:
        """Write recovery points and log starts (docs/kafka/log.md#files)."""
        self.disk.checkpoint_log_offsets()

    def expire_producer_ids(self) -> None:
        """Forget idempotent producers that were silent for too long
        (docs/kafka/producer-state.md#forgetting)."""
        now_ms = self.host.now_ms()
        by_themselves = self.behaviour.producer_ids_expire_by_themselves
        name = "producer" if by_themselves else "transactional"
        expiration_ms: int = self.config[f"{name}.id.expiration.ms"]
        for partition in self._partitions.values():
            log = partition.log
            if log is not None and log.producers is not None:
                log.remove_expired_producers(now_ms, expiration_ms)

    def apply_retention(self) -> None:
        """Delete segments that retention lets go, on leaders and followers
        (docs/kafka/log.md#retention)."""
        now_ms = self.host.now_ms()
        for name, partition in tuple(self._partitions.items()):
            log = partition.log
            if log is None:
                continue
            log_start_offset = log.log_start_offset
            try:
                delete_old_segments(log, now_ms)
            except (KafkaError, OSError) as error:
                self.on_storage_failure(name, error)
                continue
            if log.log_start_offset != log_start_offset:
                partition.wake_fetchers()
                self.fetcher_manager.log_start_changed(name)
                self.delete_purgatory.check_and_complete(name)

    def clean_logs(self) -> None:
        """Compact the logs of compacted topics that are dirty enough.

        A log that cannot be read is left alone until the broker starts again (KIP-346); a new log
        of the same name is another one.
        """
        now_ms = self.host.now_ms()
        uncleanable, self._uncleanable = self._uncleanable, {}
        for name, partition in tuple(self._partitions.items()):
            log = partition.log
            if log is None or not log.settings.is_compacted:
                continue
            if uncleanable.get(name) is log:
                self._uncleanable[name] = log
                continue
            try:
                compact(log, now_ms)
            except (KafkaError, OSError) as error:
                self.on_storage_failure(name, error)
            except (ValueError, LookupError, struct.error) as error:
                self._uncleanable[name] = log
                if self.on_uncleanable is not None:
                    self.on_uncleanable(name, error)

    # -- failures ---------------------------------------------------------------------------

    def on_storage_failure(self, topic_partition: TopicPartition, error: Exception) -> None:
        """A log failed under an operation: its whole directory goes offline."""
        partition = self._partitions.get(topic_partition)
        log = None if partition is None else partition.log
        if log is not None:
            self.handle_log_dir_failure(log.directory)
        else:
            self.mark_partition_offline(topic_partition)

    def handle_log_dir_failure(self, directory: str) -> bool:
        """Take the partitions in a failed directory offline (docs/kafka/brokers.md#failed-disks).

        Gives whether the process ends. It does with the last directory, and the controller hears
        of it by the end of the session only (``LogManager.handleLogDirFailure``).
        """
        if not self.behaviour.log_dir_failure_handling:
            self._halt(f"log directory {directory} failed")
            return True
        failed = [
            name
            for name, partition in self._partitions.items()
            if partition.log is not None and partition.log.directory == directory
        ]
        self.disk.fail(directory)
        for name in failed:
            self.mark_partition_offline(name)
        if len(self.disk.offline_dirs) == len(self.disk.directories):
            self._halt("every log directory has failed")
            return True
        if self.on_log_dir_failure is not None:
            self.on_log_dir_failure(directory)
        return False

    def _halt(self, reason: str) -> None:
        if self.on_halt is not None:
            self.on_halt(reason)

    def _is_unclean_election_allowed(self, topic: str) -> bool:
        return bool(self.topic_config(topic)["unclean.leader.election.enable"])

    # -- gauges -----------------------------------------------------------------------------

    def _count(self, predicate: Callable[[Partition], bool]) -> int:
        return sum(1 for partition in self._partitions.values() if predicate(partition))

    @property
    def leader_count(self) -> int:
        return self._count(lambda partition: partition.is_leader)

    @property
    def partition_count(self) -> int:
        return len(self._partitions)

    @property
    def offline_count(self) -> int:
        """Replicas that are offline because their log directory failed."""
        return len(self._offline)

    @property
    def under_replicated_count(self) -> int:
        return self._count(lambda partition: partition.is_under_replicated)

    @property
    def under_min_isr_count(self) -> int:
        return self._count(lambda partition: partition.is_under_min_isr)

    @property
    def at_min_isr_count(self) -> int:
        return self._count(lambda partition: partition.is_at_min_isr)

    @property
    def isr_shrinks(self) -> int:
        """Committed removals from an ISR since the start."""
        return self.context.isr_shrinks

    @property
    def isr_expands(self) -> int:
        """Committed additions to an ISR since the start."""
        return self.context.isr_expands

    @property
    def failed_isr_updates(self) -> int:
        return self.context.isr_failed_updates
