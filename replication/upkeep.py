"""Periodic work of a broker on its logs: the ISR check, checkpoints, retention, flushing,
compaction, expiry of producer ids (docs/kafka/log.md, docs/kafka/isr.md#shrinking)."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..protocol.config import LONG_MAX, BrokerConfig
from ..protocol.errors import KafkaError
from ..protocol.host import Host, Timer, name_as
from ..protocol.values import TopicPartition
from .follower.manager import FetcherManager
from .leader.delayed_requests import DelayedRequests
from .partition.hosted_partitions import HostedPartitions

if TYPE_CHECKING:
    from .log.log import Log
    from .partition.partition import Partition

INITIAL_TASK_DELAY_MS = 30000
PRODUCER_ID_CHECK_MS = 600000


class Upkeep:
    """The periodic work of one broker."""

    def __init__(
        self,
        hosted: HostedPartitions,
        delayed: DelayedRequests,
        fetcher_manager: FetcherManager,
        host: Host,
        config: BrokerConfig,
        on_storage_failure: Callable[[TopicPartition, Exception], object],
    ) -> None:
        self._hosted = hosted
        self._deletions = delayed.deletions
        self._fetcher_manager = fetcher_manager
        self._host = host
        self._config = config
        self._on_storage_failure = on_storage_failure
        self.on_uncleanable: Callable[[TopicPartition, Exception], object] | None = None
        """Called once with each log that compaction cannot read and skips from then on."""
        self.is_moving: Callable[[TopicPartition], bool] = lambda name: False
        """Returns whether a partition moves to another log directory, so that its log is not
        compacted."""
        self._uncleanable: dict[TopicPartition, Log] = {}
        self._timers: dict[str, Timer] = {}
        self._is_running = False
        self._is_flushed_once = False
        """True if the flusher has no interval and its only run is still to come."""

    def startup(self) -> None:
        """Start the periodic work, before the broker has any role."""
        self._is_running = True
        config = self._config
        lag_ms_max: int = config["replica.lag.time.max.ms"]
        if not self._hosted.behaviour.isr_checked_each_lag_time:
            lag_ms_max //= 2
        self._every("isr-expiration", lag_ms_max, self.shrink_isrs)
        self._every(
            "log-retention",
            config["log.retention.check.interval.ms"],
            self.apply_retention,
            INITIAL_TASK_DELAY_MS,
        )
        flush_check_ms: int = config["log.flush.scheduler.interval.ms"]
        self._is_flushed_once = flush_check_ms == LONG_MAX
        if not self._is_flushed_once:
            self._every("log-flusher", flush_check_ms, self.flush_dirty_logs, INITIAL_TASK_DELAY_MS)
        self._every(
            "flush-checkpoints",
            config["log.flush.offset.checkpoint.interval.ms"],
            self._checkpoint_by_the_clock,
            INITIAL_TASK_DELAY_MS,
        )
        self._every("producer-id-expiry", PRODUCER_ID_CHECK_MS, self.expire_producer_ids)
        if config["log.cleaner.enable"]:
            self._every("log-cleaner", config["log.cleaner.backoff.ms"], self.clean_logs)

    def shutdown(self) -> None:
        """Stop the periodic work."""
        self._is_running = False
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _every(
        self,
        name: str,
        interval_ms: int,
        task: Callable[[], object],
        first_delay_ms: int | None = None,
    ) -> None:
        def run() -> None:
            if self._is_running:
                self._timers[name] = self._host.call_later_ms(interval_ms, run)
                task()

        name_as(run, task)
        delay_ms = interval_ms if first_delay_ms is None else first_delay_ms
        self._timers[name] = self._host.call_later_ms(delay_ms, run)

    # -- periodic work ----------------------------------------------------------------------

    def shrink_isrs(self) -> None:
        """Propose ISRs without members that fell behind (docs/kafka/isr.md#shrinking).

        An error in one partition ends the whole check, until the next one
        (``KafkaScheduler.schedule`` catches the exceptions of a task).
        """
        now_ms = self._host.now_ms()
        with contextlib.suppress(KafkaError):
            for partition in tuple(self._hosted.by_name.values()):
                if partition.is_leader:
                    partition.maybe_shrink_isr(now_ms)

    def start_high_watermark_checkpoints(self) -> None:
        """Start checkpointing high watermarks, at the first call, which follows a LeaderAndIsr."""
        name = "high-watermark-checkpoint"
        if name not in self._timers and self._is_running:
            self._every(
                name,
                self._config["replica.high.watermark.checkpoint.interval.ms"],
                self.checkpoint_high_watermarks,
            )

    def checkpoint_high_watermarks(self) -> None:
        """Write the high watermark of every online log, led and followed
        (docs/kafka/log.md#files)."""
        high_watermarks = dict(self._hosted.high_watermarks)
        for name, partition in self._hosted.by_name.items():
            if partition.log is not None:
                high_watermarks[name] = partition.log.high_watermark
        self._hosted.disk.checkpoint_high_watermarks(high_watermarks)

    def _checkpoint_by_the_clock(self) -> None:
        if self._is_flushed_once:  # due together with the first checkpoint
            self._is_flushed_once = False
            self.flush_dirty_logs()
        self.checkpoint_log_offsets()

    def checkpoint_log_offsets(self) -> None:
        """Write recovery points and log starts (docs/kafka/log.md#files)."""
        self._hosted.disk.checkpoint_log_offsets()

    def expire_producer_ids(self) -> None:
        """Remove idempotent producers that were inactive for too long
        (docs/kafka/producer-state.md#forgetting)."""
        wall_ms = self._host.wall_ms()
        by_themselves = self._hosted.behaviour.producer_ids_expire_by_themselves
        name = "producer" if by_themselves else "transactional"
        expiration_ms: int = self._config[f"{name}.id.expiration.ms"]
        for partition in self._hosted.by_name.values():
            log = partition.log
            if log is not None and log.producers is not None:
                log.remove_expired_producers(wall_ms, expiration_ms)

    def apply_retention(self) -> None:
        """Delete the segments due for deletion, on leaders and followers
        (docs/kafka/log.md#retention)."""
        from .log.retention import delete_old_segments  # not needed at the start

        wall_ms = self._host.wall_ms()
        for name, partition in tuple(self._hosted.by_name.items()):
            log = partition.log
            if log is None:
                continue
            log_start_offset = log.log_start_offset
            try:
                delete_old_segments(log, wall_ms)
            except (KafkaError, OSError) as error:
                self._on_storage_failure(name, error)
                continue
            if log.log_start_offset != log_start_offset:
                self._log_start_changed(name, partition, log)

    def delete_below(self, name: TopicPartition, partition: Partition, offset: int) -> None:
        """Raise the log start of a hosted partition to an offset and delete the segments below it.

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if its directory is offline.
        """
        log = partition.log
        if log is None:
            return
        from .log.retention import delete_below

        log_start_offset = log.log_start_offset
        delete_below(log, offset, self._host.wall_ms())
        if log.log_start_offset != log_start_offset:
            self._log_start_changed(name, partition, log)

    def _log_start_changed(self, name: TopicPartition, partition: Partition, log: Log) -> None:
        if partition.report is not None:
            partition.report.log_moved(log)
        partition.wake_fetchers()
        self._fetcher_manager.log_start_changed(name)
        self._deletions.check_and_complete(name)

    def flush_dirty_logs(self) -> None:
        """Flush the logs last flushed at least ``flush.ms`` ago (docs/kafka/log.md#flushing)."""
        wall_ms = self._host.wall_ms()
        for name, partition in tuple(self._hosted.by_name.items()):
            log = partition.log
            if log is None or wall_ms - log.last_flush_ms < log.settings.flush_ms:
                continue
            try:
                log.flush(wall_ms)
            except (KafkaError, OSError) as error:
                self._on_storage_failure(name, error)

    def clean_logs(self) -> None:
        """Compact the logs of compacted topics that are dirty enough.

        A log that cannot be read is skipped until the broker restarts (KIP-346); a new log of the
        same partition is not.
        """
        from .log.compaction import compact

        wall_ms = self._host.wall_ms()
        uncleanable, self._uncleanable = self._uncleanable, {}
        for name, partition in tuple(self._hosted.by_name.items()):
            log = partition.log
            if log is None or not log.settings.is_compacted or self.is_moving(name):
                continue
            if uncleanable.get(name) is log:
                self._uncleanable[name] = log
                continue
            try:
                compact(log, wall_ms)
            except (KafkaError, OSError) as failure:
                self._on_storage_failure(name, failure)
            except (ValueError, LookupError, struct.error) as error:
                self._uncleanable[name] = log
                if self.on_uncleanable is not None:
                    self.on_uncleanable(name, error)
