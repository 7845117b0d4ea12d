"""A broker's disk as data directories on the real disk, in Kafka's on-disk format.

Kafka's own dump tool can read the segments. The directories outlive the Python process, which may
be killed at any moment (docs/kafka/log.md).
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from os import PathLike

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.values import TopicPartition
from ..log.checkpoint_formats import (
    CLEAN_SHUTDOWN_MARKER,
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    CorruptCheckpoint,
    format_offsets,
    format_properties,
    parse_offsets,
    parse_properties,
)
from ..log.storage import LogDirectory, LogStorage
from .disk import Disk
from .file_io import FileHandles, read_file, write_atomically
from .file_storage import FileStorage
from .segment_files import DELETED_DIRECTORY

_PARTITION_DIRECTORY = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)$")
_FUTURE_DIRECTORY = re.compile(r"^(?P<topic>.+)-(?P<partition>\d+)\.[0-9a-f]{32}-future$")
_CHECKPOINTS = (
    HIGH_WATERMARK_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    CLEANER_CHECKPOINT,
)


class FileDisk(Disk):
    """Log directories on the real disk.

    ``data_dir`` is a single log directory, ``directories`` are several. ``sync=False`` skips every
    fsync, which is faster; data then survives a crash of the process, but not of the machine.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        directories: Sequence[str | PathLike[str]] = (),
        sync: bool = True,
    ) -> None:
        paths = [os.path.abspath(path) for path in directories]
        if data_dir is not None:
            paths.insert(0, os.path.abspath(data_dir))
        super().__init__(paths)
        self._sync = sync
        self._handles = FileHandles()
        for directory in self._directories.values():
            try:
                os.makedirs(directory.path, exist_ok=True)
                self._find_partitions(directory)
            except OSError:
                directory.is_offline = True

    def _find_partitions(self, directory: LogDirectory) -> None:
        for name in sorted(os.listdir(directory.path)):
            path = os.path.join(directory.path, name)
            if not os.path.isdir(path):
                continue
            if name.endswith(DELETED_DIRECTORY):
                shutil.rmtree(path, ignore_errors=True)
                continue
            match = _PARTITION_DIRECTORY.match(name)
            if match is not None:
                found = TopicPartition(match["topic"], int(match["partition"]))
                # There are two if the process ended just after one had replaced the other.
                self._storages.setdefault(found, self._create(found, directory))
                continue
            match = _FUTURE_DIRECTORY.match(name)
            if match is not None:
                found = TopicPartition(match["topic"], int(match["partition"]))
                self._futures[found] = FileStorage(directory, path, self._handles, self._sync)

    def _create(self, topic_partition: TopicPartition, directory: LogDirectory) -> LogStorage:
        path = os.path.join(directory.path, str(topic_partition))
        return FileStorage(directory, path, self._handles, self._sync)

    def _create_future(
        self, topic_partition: TopicPartition, directory: LogDirectory
    ) -> LogStorage:
        path = os.path.join(directory.path, future_directory_name(topic_partition))
        return FileStorage(directory, path, self._handles, self._sync)

    def volume_bytes(self, path: str) -> tuple[int, int]:
        try:
            usage = shutil.disk_usage(path)
        except OSError:
            return -1, -1
        return usage.total, usage.free

    # -- life of a process --------------------------------------------------------------------

    def _start_directory(self, directory: LogDirectory) -> None:
        marker = os.path.join(directory.path, CLEAN_SHUTDOWN_MARKER)
        directory.was_clean = os.path.exists(marker)
        with suppress(FileNotFoundError):
            os.remove(marker)
        meta = read_file(os.path.join(directory.path, META_PROPERTIES))
        self._meta[directory.path] = parse_properties((meta or b"").decode(errors="replace"))
        for name in _CHECKPOINTS:
            data = read_file(os.path.join(directory.path, name)) or b""
            try:
                directory.checkpoints[name] = parse_offsets(data.decode(errors="replace"))
            except CorruptCheckpoint:
                directory.checkpoints[name] = {}
                if name == HIGH_WATERMARK_CHECKPOINT:
                    # Recovery points and log starts can be recovered, high watermarks cannot.
                    directory.is_offline = True

    def _mark_clean(self, directory: LogDirectory) -> None:
        path = os.path.join(directory.path, CLEAN_SHUTDOWN_MARKER)
        write_atomically(path, self.clean_shutdown_content, self._sync)

    def _release(self) -> None:
        self._handles.close_all()
        for storage in (*self._storages.values(), *self._futures.values()):
            storage.unload()

    def _load_all(self) -> None:
        self.start()
        for name, storage in (*self._storages.items(), *self._futures.items()):
            if not storage.directory.is_offline:
                points = storage.directory.checkpoints.get(RECOVERY_POINT_CHECKPOINT, {})
                with suppress(KafkaError):
                    storage.load(4096, 60000, points.get(name, 0))

    # -- files of a directory ---------------------------------------------------------------------

    def _save_checkpoint(self, directory: LogDirectory, name: str) -> None:
        path = os.path.join(directory.path, name)
        data = format_offsets(directory.checkpoints[name]).encode()
        try:
            write_atomically(path, data, self._sync)
        except OSError as error:
            raise OSError(error.errno, error.strerror, directory.path) from error

    def _save_meta(self, directory: LogDirectory) -> None:
        data = format_properties(self._meta[directory.path]).encode()
        path = os.path.join(directory.path, META_PROPERTIES)
        try:
            write_atomically(path, data, self._sync)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {error}") from error


def future_directory_name(topic_partition: TopicPartition) -> str:
    """Return the directory name of the future log of a partition that moves between directories.

    Kafka puts a random number into the name (``Log.logFutureDirName``). Here it is always the same
    number, so that runs are reproducible.
    """
    digest = hashlib.md5(str(topic_partition).encode(), usedforsecurity=False)
    return f"{topic_partition}.{digest.hexdigest()}-future"
