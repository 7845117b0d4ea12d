"""The disk of a broker, which outlives the broker process and may lose data in a power failure.

A ``Disk`` holds one or several log directories. A broker process opens its logs with ``open_log``
and ends in one of three ways: ``close`` (cleanly: everything is flushed, a marker is written),
``kill`` (the page cache survives, and with it everything appended) or ``power_off`` (only flushed
data survives, and perhaps some more bytes).
``MemoryDisk`` keeps everything in memory, ``FileDisk`` in Kafka's files
(docs/kafka/log.md#files). They implement how directories and their files are written; a
``LogStorage`` does so for one partition.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from ...protocol.config import TopicConfig
from ...protocol.errors import ErrorCode, KafkaError, UsageError
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ...protocol.versions import behaviour as behaviour_of
from ..log.checkpoint_formats import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from ..log.storage import LogDirectory, LogStorage

if TYPE_CHECKING:
    from ..log.log import Log
    from ..log.segment import Segment
    from ..log.settings import LogSettings


class Disk(ABC):
    """Log directories and the logs in them."""

    def __init__(self, directories: Sequence[str]) -> None:
        if not directories:
            raise UsageError("a disk needs at least one log directory")
        self._directories = {path: LogDirectory(path) for path in directories}
        self._storages: dict[TopicPartition, LogStorage] = {}
        """Storages of all partitions, whether their logs are open or not."""
        self.logs: dict[TopicPartition, Log] = {}
        """Logs opened by the running process."""
        self._futures: dict[TopicPartition, LogStorage] = {}
        """Storages of future logs, which replace the log of a partition that moves to another
        directory (KIP-113)."""
        self.future_logs: dict[TopicPartition, Log] = {}
        """Future logs opened by the running process."""
        self._preferred: dict[TopicPartition, str] = {}
        """Directories in which the running process is to create logs that do not exist yet."""
        self._settings: dict[int, LogSettings] = {}
        """Settings by the ``id()`` of their ``TopicConfig``, which they keep alive."""
        self._is_up = False
        """True while a process uses the disk."""
        self.clean_shutdown_content: bytes = b""
        """Content of the file that marks a clean shutdown, which depends on the release."""
        self._meta: dict[str, dict[str, str]] = {path: {} for path in directories}

    # -- directories --------------------------------------------------------------------------

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(self._directories)

    @property
    def offline_dirs(self) -> tuple[str, ...]:
        return tuple(path for path, d in self._directories.items() if d.is_offline)

    def fail(self, directory: str | None = None) -> None:
        """Take a log directory (by default the first) offline until ``repair``: its logs raise
        KAFKA_STORAGE_ERROR."""
        self._directory(directory).is_offline = True

    def repair(self, directory: str | None = None) -> None:
        """Bring a failed directory back online; a restarted broker finds its content again."""
        self._directory(directory).is_offline = False

    def _directory(self, path: str | None) -> LogDirectory:
        if path is None:
            return next(iter(self._directories.values()))
        try:
            return self._directories[path]
        except KeyError:
            known = ", ".join(self._directories)
            raise UsageError(f"no log directory {path!r}; the disk has {known}") from None

    def watch_expiry(
        self, watcher: Callable[[TopicPartition, Sequence[Segment]], object] | None
    ) -> None:
        """Set the function called with segments that retention deletes; None for no function."""
        for directory in self._directories.values():
            directory.on_expiry = watcher

    def directory_of(self, topic_partition: TopicPartition) -> str | None:
        """Return the log directory of a partition; None if it is not stored here."""
        storage = self._storages.get(topic_partition)
        return None if storage is None else storage.directory.path

    def future_directory_of(self, topic_partition: TopicPartition) -> str | None:
        """Return the log directory to which a partition is being moved; None if it is not."""
        storage = self._futures.get(topic_partition)
        return None if storage is None else storage.directory.path

    def is_online(self, path: str) -> bool:
        """Return whether a log directory can be used. Raises ``KafkaError`` LOG_DIR_NOT_FOUND if it
        does not exist."""
        directory = self._directories.get(path)
        if directory is None:
            raise KafkaError(
                ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config."
            )
        return not directory.is_offline

    @abstractmethod
    def volume_bytes(self, path: str) -> tuple[int, int]:
        """Return the total and usable bytes of the volume of a log directory; -1 if unknown."""

    def stored(self, topic_partition: TopicPartition) -> LogStorage | None:
        """Return the storage of a partition, for inspection while no process uses the disk."""
        self._load_all()
        return self._storages.get(topic_partition)

    # -- life of a process --------------------------------------------------------------------

    def start(self) -> None:
        """Begin the use of the disk by a process; every operation that needs this calls it."""
        if self._is_up:
            return
        self._is_up = True
        for directory in self._directories.values():
            if not directory.is_offline:
                self._start_directory(directory)

    @abstractmethod
    def _start_directory(self, directory: LogDirectory) -> None:
        """Read what the last process left: the marker of a clean shutdown, the checkpoints, the
        properties."""

    def close(self) -> None:
        """End the process cleanly: flush, snapshot, checkpoint; no effect if it has ended."""
        if not self._is_up:
            return
        for log in (*self.logs.values(), *self.future_logs.values()):
            if not log.storage.directory.is_offline:
                log.flush()
                log.take_producer_snapshot()
                log.storage.finish_active()
        self.checkpoint_log_offsets()
        for directory in self._directories.values():
            if not directory.is_offline:
                directory.was_clean = True
                self._mark_clean(directory)
        self._forget_process_state()

    def dispose(self) -> None:
        """Close for good and free the memory of all batches.

        Logs are part of reference cycles, so the batches would otherwise stay until the garbage
        collector runs, which depends on the number of objects, not on their size.
        """
        storages = (*self._storages.values(), *self._futures.values())
        segments = [segment for storage in storages for segment in storage.segments]
        self.close()
        for segment in segments:
            segment.discard()

    @abstractmethod
    def _mark_clean(self, directory: LogDirectory) -> None:
        """Write the file that marks a clean shutdown."""

    def kill(self) -> None:
        """End the process at once; everything it appended stays."""
        if not self._is_up:
            return
        for directory in self._directories.values():
            directory.was_clean = False
        self._forget_process_state()

    def power_off(
        self,
        survivors: Mapping[TopicPartition, int] | None = None,
        torn: Callable[[int], int] | None = None,
    ) -> None:
        """Cut the power: every log loses the data that was not flushed.

        ``survivors`` gives a higher end offset for some partitions, as the operating system may
        have written more than it was asked to. ``torn`` is called with the number of unflushed
        bytes of each log and returns how many of them were written, which may end in the middle
        of a batch.
        """
        self._load_all()
        if torn is not None:
            self._tear(torn)
            self.kill()
            return
        for name, storage in self._storages.items():
            if not storage.directory.is_offline:
                offset = storage.flushed_offset
                if survivors is not None and survivors.get(name, -1) > offset:
                    offset = survivors[name]
                    storage.flushed_offset = offset
                storage.cut_to(offset)
        for storage in self._futures.values():
            if not storage.directory.is_offline:
                storage.cut_to(storage.flushed_offset)
        self.kill()

    def _tear(self, torn: Callable[[int], int]) -> None:
        for storages in (self._storages, self._futures):
            for _, storage in sorted(storages.items()):
                if not storage.directory.is_offline:
                    storage.tear(torn)

    @abstractmethod
    def _load_all(self) -> None:
        """Load the segments of every storage that has not loaded them."""

    def _forget_process_state(self) -> None:
        self._release()
        self._is_up = False
        self.logs = {}
        self.future_logs = {}
        self._preferred.clear()
        self._settings.clear()

    @abstractmethod
    def _release(self) -> None:
        """Release what only a running process holds: open files, and data that can be reloaded."""

    # -- logs ---------------------------------------------------------------------------------

    def existing_partitions(self) -> list[TopicPartition]:
        """Return the partitions stored in directories that are online, sorted."""
        self.start()
        return sorted(
            name for name, storage in self._storages.items() if not storage.directory.is_offline
        )

    def stored_topic_id(self, topic_partition: TopicPartition) -> str:
        """Return the topic id of a log, open or not; empty if it is unknown or the log offline."""
        storage = self._storages.get(topic_partition)
        return "" if storage is None or storage.directory.is_offline else storage.topic_id

    def open_log(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig,
        behaviour: Behaviour | None = None,
        is_new: bool = True,
    ) -> Log:
        """Open a partition's log, recovering it, or create an empty one.

        Opening it again returns the same object. A new log goes to the preferred directory, or
        else to the one with the fewest partitions. Raises ``KafkaError`` KAFKA_STORAGE_ERROR if
        its directory is offline, or if a log that is not ``is_new`` is not found and may be in an
        offline directory.
        """
        log = self.logs.get(topic_partition)
        if log is not None:
            return log
        self.start()
        if behaviour is None:
            behaviour = behaviour_of(config.kafka_version)
        storage = self._storages.get(topic_partition)
        if storage is None:
            if not is_new and self.offline_dirs:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"{topic_partition} may lie in an offline directory: "
                    + ", ".join(self.offline_dirs),
                )
            directory = self._choose_directory(topic_partition)
            storage = self._storages[topic_partition] = self._create(topic_partition, directory)
        starts = storage.directory.checkpoints.get(LOG_START_OFFSET_CHECKPOINT) or {}
        start = starts.get(topic_partition, 0)
        log = self._open_storage(topic_partition, storage, config, behaviour, start)
        self.logs[topic_partition] = log
        return log

    def _open_storage(
        self,
        topic_partition: TopicPartition,
        storage: LogStorage,
        config: TopicConfig,
        behaviour: Behaviour,
        start_offset: int = 0,
    ) -> Log:
        from ..log.log import Log  # not needed to start a cluster

        storage.directory.check()
        settings = self._settings_for(config, behaviour)
        self._load(topic_partition, storage, settings)
        log = Log(topic_partition, settings, behaviour, storage, start_offset)
        self._preferred.pop(topic_partition, None)
        return log

    def prefer(self, topic_partition: TopicPartition, path: str) -> None:
        """Set the directory in which to create a log, unless the log is in or moves to it."""
        if path not in (
            self.directory_of(topic_partition),
            self.future_directory_of(topic_partition),
        ):
            self._preferred[topic_partition] = path

    def _choose_directory(self, topic_partition: TopicPartition) -> LogDirectory:
        """Return the directory for a new log: the preferred one, else that with the fewest logs."""
        preferred = self._directories.get(self._preferred.get(topic_partition, ""))
        if preferred is not None and not preferred.is_offline:
            return preferred
        return self._emptiest_directory()

    def _settings_for(self, config: TopicConfig, behaviour: Behaviour) -> LogSettings:
        settings = self._settings.get(id(config))
        if settings is None or settings.config is not config:
            if len(self._settings) > 1000:
                self._settings.clear()
            from ..log.settings import LogSettings

            settings = self._settings[id(config)] = LogSettings(config, behaviour)
        return settings

    def _emptiest_directory(self) -> LogDirectory:
        online = [d for d in self._directories.values() if not d.is_offline]
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "every log directory is offline")
        if len(online) == 1:
            return online[0]
        counts = {directory.path: 0 for directory in online}
        for storage in self._storages.values():
            if storage.directory.path in counts:
                counts[storage.directory.path] += 1
        return min(online, key=lambda directory: counts[directory.path])

    @abstractmethod
    def _create(self, topic_partition: TopicPartition, directory: LogDirectory) -> LogStorage:
        """Return the storage of a partition in a directory; existing data is loaded later."""

    def _load(
        self, topic_partition: TopicPartition, storage: LogStorage, settings: LogSettings
    ) -> None:
        if storage.is_real:
            points = storage.directory.checkpoints.get(RECOVERY_POINT_CHECKPOINT, {})
            storage.load(
                settings.index_interval_bytes,
                settings.file_delete_delay_ms,
                points.get(topic_partition, 0),
            )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Remove a partition; no effect if it is not stored here.

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR when its directory is offline.
        """
        self.start()
        storage = self._storages.get(topic_partition)
        if storage is None:
            return
        storage.directory.check()
        storage.delete()
        self._storages.pop(topic_partition, None)
        self.logs.pop(topic_partition, None)
        for name, offsets in storage.directory.checkpoints.items():
            if topic_partition in offsets:
                kept = {k: v for k, v in offsets.items() if k != topic_partition}
                self._write_checkpoint(storage.directory, name, kept)

    # -- moves between directories --------------------------------------------------------------

    def open_future(
        self, topic_partition: TopicPartition, config: TopicConfig, path: str | None = None
    ) -> Log:
        """Open the future log of a partition, or create it in the directory ``path``.

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if its directory is offline, or if it does not
        exist and may be in a directory that is offline.
        """
        log = self.future_logs.get(topic_partition)
        if log is not None:
            return log
        storage = self._futures.get(topic_partition)
        if storage is None:
            if self.offline_dirs or path is None:
                raise KafkaError(
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    f"Can not create log for {topic_partition} because log directories "
                    f"{', '.join(self.offline_dirs)} are offline",
                )
            storage = self._create_future(topic_partition, self._directory(path))
            self._futures[topic_partition] = storage
        behaviour = behaviour_of(config.kafka_version)
        log = self._open_storage(topic_partition, storage, config, behaviour)
        self.future_logs[topic_partition] = log
        return log

    @abstractmethod
    def _create_future(
        self, topic_partition: TopicPartition, directory: LogDirectory
    ) -> LogStorage:
        """Return the storage for a new future log of a partition."""

    def replace_by_future(self, topic_partition: TopicPartition) -> Log:
        """Make the future log the partition's current log and delete the log it replaces.

        Checkpoint entries move too (Kafka: ``LogManager.replaceCurrentWithFutureLog``).
        """
        log = self.future_logs[topic_partition]
        storage = self._futures[topic_partition]
        replaced = self._storages[topic_partition]
        replaced.directory.check()
        log.flush()
        storage.become_current(topic_partition)
        del self.future_logs[topic_partition], self._futures[topic_partition]
        self.logs[topic_partition] = log
        self._storages[topic_partition] = storage
        for name, offsets in tuple(replaced.directory.checkpoints.items()):
            if topic_partition in offsets:
                kept = dict(offsets)
                moved = kept.pop(topic_partition)
                if name == RECOVERY_POINT_CHECKPOINT:
                    moved = log.recovery_point
                self._write_checkpoint(replaced.directory, name, kept)
                there = storage.directory.checkpoints.get(name, {})
                self._write_checkpoint(storage.directory, name, {**there, topic_partition: moved})
        replaced.delete()
        return log

    def delete_future(self, topic_partition: TopicPartition) -> None:
        """Remove the future log of a partition; no effect if there is none."""
        storage = self._futures.pop(topic_partition, None)
        self.future_logs.pop(topic_partition, None)
        if storage is not None and not storage.directory.is_offline:
            storage.delete()

    # -- checkpoints --------------------------------------------------------------------------

    def read_checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """Return the entries of a checkpoint file in all directories that are online."""
        self.start()
        found: dict[TopicPartition, int] = {}
        for directory in self._directories.values():
            if not directory.is_offline:
                found.update(directory.checkpoints.get(name, {}))
        return found

    def write_checkpoint(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace a checkpoint file, with each partition's entry in the directory of its log."""
        self.start()
        online = [d for d in self._directories.values() if not d.is_offline]
        if len(self._directories) == 1:
            for directory in online:
                self._write_checkpoint(directory, name, dict(offsets))
            return
        parts: dict[str, dict[TopicPartition, int]] = {d.path: {} for d in online}
        for topic_partition, offset in offsets.items():
            path = self.directory_of(topic_partition)
            if path in parts:
                parts[path][topic_partition] = offset
        for directory in online:
            self._write_checkpoint(directory, name, parts[directory.path])

    def _write_checkpoint(
        self, directory: LogDirectory, name: str, offsets: dict[TopicPartition, int]
    ) -> None:
        directory.checkpoints[name] = offsets
        self._save_checkpoint(directory, name)

    @abstractmethod
    def _save_checkpoint(self, directory: LogDirectory, name: str) -> None:
        """Write the checkpoint file from ``directory.checkpoints``."""

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return self.read_checkpoint(HIGH_WATERMARK_CHECKPOINT)

    def checkpoint_high_watermarks(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.write_checkpoint(HIGH_WATERMARK_CHECKPOINT, offsets)

    def checkpoint_log_offsets(self) -> None:
        """Write recovery points and log start offsets of the open logs (docs/kafka/log.md#files).

        Log start offsets are written only if they are above the base of the first segment.
        Partitions that are stored but not open keep their entries.
        """
        self._merge(RECOVERY_POINT_CHECKPOINT, lambda log: log.recovery_point)
        self._merge(
            LOG_START_OFFSET_CHECKPOINT,
            lambda log: (
                log.log_start_offset if log.log_start_offset > log.segments[0].base_offset else None
            ),
        )

    def _merge(self, name: str, value: Callable[[Log], int | None]) -> None:
        offsets = {
            tp: offset
            for tp, offset in self.read_checkpoint(name).items()
            if tp not in self.logs and tp in self._storages
        }
        for topic_partition, log in self.logs.items():
            offset = value(log)
            if offset is not None:
                offsets[topic_partition] = offset
        self.write_checkpoint(name, offsets)

    # -- meta.properties ------------------------------------------------------------------------

    def read_meta_properties(self, directory: str | None = None) -> dict[str, str]:
        """Return ``broker.id``, ``cluster.id`` and so on; empty if nothing was written yet."""
        self.start()
        return dict(self._meta[self._directory(directory).path])

    def write_meta_properties(self, values: Mapping[str, str]) -> None:
        """Write the properties to every online directory that has different ones.

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if they cannot be written.
        """
        self.start()
        for path, directory in self._directories.items():
            if not directory.is_offline and self._meta[path] != values:
                self._meta[path] = dict(values)
                self._save_meta(directory)

    @abstractmethod
    def _save_meta(self, directory: LogDirectory) -> None:
        """Write ``meta.properties`` from ``_meta``."""
