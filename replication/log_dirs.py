"""The log directories of a broker: their contents, and moves between them (KIP-113).

A move copies the log of a partition to a *future* log in the other directory. When the future log
has caught up, it becomes the partition's log, and the old log is deleted. Meanwhile the partition
is led or followed as usual, with its old log (Kafka's ``ReplicaAlterLogDirsThread`` and
``Partition.maybeReplaceCurrentWithFutureReplica``).

The current log may be truncated below the end of the future log. So before each copy the leader
epochs of both are compared, and the future log is truncated to the part they share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..protocol.config import BrokerConfig
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.host import Host, Timer
from ..protocol.values import TopicPartition
from .byte_rate import ByteRate
from .follower.manager import fetcher_id_for
from .partition.hosted_partitions import HostedPartitions

if TYPE_CHECKING:
    from ..protocol.admin import DescribedLogDir
    from .log.log import Log
    from .partition.partition import Partition

_NONE = ErrorCode.NONE
_FUTURE_NAME_EXTRA = len(".") + 32 + len("-future")
_FILE_NAME_MAX = 255
_UNKNOWN_LAG = -1


class LogDirs:
    """Describes the log directories of one broker, and moves replicas between them."""

    def __init__(
        self,
        hosted: HostedPartitions,
        host: Host,
        config: BrokerConfig,
        on_failure: Callable[[str], object],
    ) -> None:
        """``on_failure`` is called with the path of a directory that failed during a move."""
        self._hosted = hosted
        self._disk = hosted.disk
        self._host = host
        self._config = config
        self._on_failure = on_failure
        self._moving: dict[TopicPartition, None] = {}
        """Partitions whose future logs are being filled."""
        self._in_progress: dict[int, TopicPartition] = {}
        """Partition that each thread copies until its move is done, by thread number."""
        self._copy_rate = ByteRate(
            config["alter.log.dirs.replication.quota.window.num"],
            1000 * config["alter.log.dirs.replication.quota.window.size.seconds"],
        )
        self._timer: Timer | None = None

    def shutdown(self) -> None:
        """Stop copying; the moves resume after the next start."""
        self._moving.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- DescribeLogDirs --------------------------------------------------------------------

    def describe(self, wanted: Sequence[TopicPartition] | None) -> tuple[DescribedLogDir, ...]:
        """Describe the logs in each directory, of all partitions or only the wanted ones."""
        return tuple(self._describe(path, wanted) for path in self._disk.directories)

    def _describe(self, path: str, wanted: Sequence[TopicPartition] | None) -> DescribedLogDir:
        from ..protocol.admin import DescribedLogDir, StoredReplica  # rarely needed

        disk = self._disk
        if not disk.is_online(path):
            return DescribedLogDir(ErrorCode.KAFKA_STORAGE_ERROR, path)
        replicas: list[StoredReplica] = []
        topics: dict[str, None] = {}
        asked = None if wanted is None else set(wanted)
        for logs, is_future in ((disk.logs, False), (disk.future_logs, True)):
            for name, log in logs.items():
                if log.directory != path:
                    continue
                topics[name.topic] = None
                if asked is None or name in asked:
                    lag = self._lag(name, log, is_future)
                    replicas.append(StoredReplica(name, log.size_in_bytes, lag, is_future))
        replicas.sort(key=lambda replica: (replica.topic_partition, replica.is_future))
        named = sorted(topics) if self._hosted.behaviour.log_dirs_name_topics_not_asked else ()
        total_bytes, usable_bytes = disk.volume_bytes(path)
        return DescribedLogDir(
            _NONE, path, tuple(replicas), tuple(named), total_bytes, usable_bytes
        )

    def _lag(self, name: TopicPartition, log: Log, is_future: bool) -> int:
        partition = self._hosted.partition(name)
        current = None if partition is None else partition.log
        if current is None:
            return _UNKNOWN_LAG
        if is_future:
            return current.log_end_offset - log.log_end_offset
        return max(current.high_watermark - log.log_end_offset, 0)

    # -- AlterReplicaLogDirs ----------------------------------------------------------------

    def alter(
        self, moves: Iterable[tuple[TopicPartition, str]]
    ) -> tuple[tuple[TopicPartition, ErrorCode], ...]:
        """Begin to move replicas to other directories; new replicas will be created there."""
        return tuple((name, self._alter(name, path)) for name, path in dict(moves).items())

    def _alter(self, name: TopicPartition, path: str) -> ErrorCode:
        if len(str(name)) + _FUTURE_NAME_EXTRA > _FILE_NAME_MAX:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        disk = self._disk
        try:
            if not disk.is_online(path) or self._hosted.is_offline(name):
                return ErrorCode.KAFKA_STORAGE_ERROR
            if disk.future_directory_of(name) not in (None, path):
                self.abandon(name, deletes=True)
            disk.prefer(name, path)
            partition = self._hosted.partition(name)
            if partition is None or partition.log is None:
                return ErrorCode.REPLICA_NOT_AVAILABLE
            if partition.log.directory != path and name not in self._moving:
                self._begin(partition, path)
        except KafkaError as error:
            return error.code
        return _NONE

    def _begin(self, partition: Partition, path: str | None) -> None:
        name = partition.topic_partition
        future = self._disk.open_future(name, partition.settings.config, path)
        if partition.log is not None:
            future.assign_topic_id(partition.log.topic_id)
        self._moving[name] = None
        self._schedule_copy(0)

    # -- roles ------------------------------------------------------------------------------

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Resume the moves of partitions that have taken a role."""
        for partition in partitions:
            name = partition.topic_partition
            if (
                partition.log is not None
                and name not in self._moving
                and self._disk.future_directory_of(name) is not None
            ):
                try:
                    self._begin(partition, None)
                except (KafkaError, OSError):
                    continue  # its directory is offline

    def abandon(self, name: TopicPartition, *, deletes: bool) -> None:
        """Stop copying a partition; with ``deletes``, delete the copy."""
        self._moving.pop(name, None)
        if deletes:
            self._disk.delete_future(name)

    def is_moving(self, name: TopicPartition) -> bool:
        """Return whether a partition has a future log, so that its log is not compacted."""
        return name in self._disk.future_logs

    def directory_failed(self, path: str) -> None:
        """Give up the moves to a directory that is offline."""
        for name in tuple(self._moving):
            if self._disk.future_directory_of(name) == path:
                self.abandon(name, deletes=True)

    # -- copying ----------------------------------------------------------------------------

    def _schedule_copy(self, delay_ms: int) -> None:
        if self._timer is None:
            self._timer = self._host.call_later_ms(delay_ms, self._copy_next)

    def _copy_next(self) -> None:
        self._timer = None
        limit: int = self._config["replica.alter.log.dirs.io.max.bytes.per.second"]
        if self._copy_rate.per_second(self._host.now_ms()) > limit:
            self._schedule_copy(self._config["replica.fetch.backoff.ms"])
            return
        for name in self._partitions_to_copy():
            self._copy(name)
        if self._moving:
            self._schedule_copy(0)

    def _partitions_to_copy(self) -> list[TopicPartition]:
        """Return the partition that each thread copies: the one begun, else the first by name."""
        threads = self._config["num.replica.alter.log.dirs.threads"]
        if threads is None:
            threads = len(self._disk.directories)
        by_thread: dict[int, TopicPartition] = {}
        for name in sorted(self._moving):
            thread = fetcher_id_for(name, threads)
            if thread not in by_thread or self._in_progress.get(thread) == name:
                by_thread[thread] = name
        self._in_progress = by_thread
        return list(by_thread.values())

    def _copy(self, name: TopicPartition) -> None:
        partition = self._hosted.partition(name)
        future = self._disk.future_logs.get(name)
        if partition is None or partition.log is None or future is None:
            self._moving.pop(name, None)
            return
        log = partition.log
        try:
            self._copy_batches(log, future)
            if future.log_end_offset == log.log_end_offset:
                self._replace(partition, log, future)
        except (KafkaError, OSError):
            self._moving.pop(name, None)
            failed = self._disk.offline_dirs
            directory = future.directory if future.directory in failed else log.directory
            self._on_failure(directory)

    def _copy_batches(self, log: Log, future: Log) -> None:
        _truncate_to_common_prefix(log, future)
        if future.log_end_offset < log.log_start_offset:
            future.truncate_fully_and_start_at(log.log_start_offset)
        # Without leader epochs, a later truncation of copied records could not be detected.
        has_epochs = log.latest_epoch >= 0
        end = log.log_end_offset if has_epochs else log.high_watermark
        if future.log_end_offset < end:
            size_max: int = self._config["replica.fetch.max.bytes"]
            from ..protocol.records.batch import whole_batches
            from .log.follower_append import append_as_follower

            read = log.read(future.log_end_offset, size_max, end)
            append_as_follower(future, whole_batches(read.batches), self._host.wall_ms())
            self._copy_rate.record(read.size, self._host.now_ms())
        future.update_high_watermark(log.high_watermark)
        if log.log_start_offset <= future.log_end_offset:
            future.maybe_increment_log_start_offset(log.log_start_offset, "leader")

    def _replace(self, partition: Partition, log: Log, future: Log) -> None:
        name = partition.topic_partition
        future.update_config(partition.settings.config)
        future.update_high_watermark(log.high_watermark)
        self._disk.replace_by_future(name)
        partition.log = future
        partition.wake_fetchers()
        self._moving.pop(name, None)


def _truncate_to_common_prefix(log: Log, future: Log) -> None:
    """Truncate a future log to the part that it shares with the current one."""
    while future.log_end_offset > future.log_start_offset:
        epoch = future.latest_epoch
        if epoch < 0 or log.latest_epoch < 0:
            future.truncate_to(min(future.log_end_offset, log.log_end_offset))
            return
        end = log.end_offset_for_epoch(epoch)
        if end.leader_epoch < 0:
            future.truncate_fully_and_start_at(log.log_start_offset)
            return
        own_end = future.end_offset_for_epoch(end.leader_epoch).end_offset
        future.truncate_to(max(0, min(own_end, end.end_offset, future.log_end_offset)))
        if end.leader_epoch == epoch:
            return
