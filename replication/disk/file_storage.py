"""One partition's directory on the real disk, in Kafka's on-disk format (docs/kafka/log.md#files).

The log keeps its batches in memory, as with every storage; every change is also written to the
files at once, without a buffer in this process, so that appended batches survive ``kill -9``. When
the directory is loaded, data below the recovery point is trusted, and data above it is checked
batch by batch (docs/kafka/log.md#restart; Kafka's ``Log.loadSegments`` and ``recoverLog``).
"""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import Readable
from ...protocol.values import TopicPartition
from ..log.checkpoint_formats import (
    CLEANER_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CorruptCheckpoint,
    format_epochs,
    format_offsets,
    format_topic_id,
    parse_epochs,
    parse_topic_id,
)
from ..log.segment import Segment
from ..log.storage import LogDirectory, LogStorage
from .file_io import FileHandles, read_file, write_atomically
from .segment_files import (
    CLEANED_SUFFIX,
    DELETED_DIRECTORY,
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    build_indexes,
    file_stem,
    format_aborted,
    index_entry,
    parse_aborted,
    scan_batches,
    time_index_entry,
)

_SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


class FileStorage(LogStorage):
    """The stored state of one partition, in a directory of its own."""

    __slots__ = (
        "_deleted",
        "_dirty",
        "_file_delete_delay_ms",
        "_handles",
        "_index_interval_bytes",
        "_sync",
        "is_loaded",
        "path",
    )

    is_real = True

    def __init__(
        self, directory: LogDirectory, path: str, handles: FileHandles, sync: bool
    ) -> None:
        super().__init__(directory)
        directory.is_real = True
        self.path: str = path
        self._handles = handles
        self._sync = sync
        self.is_loaded: bool = False
        self._index_interval_bytes = 4096
        self._file_delete_delay_ms = 60000
        self._dirty: dict[str, None] = {}
        """Files written since they were last synced."""
        self._deleted: list[tuple[int, str]] = []
        """(due time in ms, path) of the renamed files of deleted segments."""

    def _guarded(self, action: Callable[[], object]) -> None:
        """Run file operations; an I/O error takes the log directory offline."""
        try:
            action()
        except OSError as error:
            self.directory.is_offline = True
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory.path} failed: {error}"
            ) from error

    def _stem(self, segment: Segment) -> str:
        return f"{self.path}/{segment.base_offset:020d}"

    def _append(self, path: str, data: Readable) -> None:
        self._handles.append(path, data)
        self._dirty[path] = None

    # -- hooks ------------------------------------------------------------------------------

    def on_append(self, segment: Segment, batch: RecordBatch, indexed: bool) -> None:
        stem = self._stem(segment)
        try:
            self._append(stem + LOG_SUFFIX, batch.data)
            if indexed:
                self._append(stem + INDEX_SUFFIX, index_entry(segment, batch))
                if segment.time_index_grew:
                    self._append(stem + TIME_INDEX_SUFFIX, time_index_entry(segment))
        except OSError as error:
            self.directory.is_offline = True
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.directory.path} failed: {error}"
            ) from error

    def on_aborted(self, segment: Segment) -> None:
        entry = (segment.aborted or [])[-1:]
        path = self._stem(segment) + TRANSACTION_INDEX_SUFFIX
        self._guarded(lambda: self._append(path, format_aborted(entry)))

    def on_roll(self, previous: Segment | None, segment: Segment) -> None:
        def run() -> None:
            os.makedirs(self.path, exist_ok=True)
            if previous is not None:
                self._finish(previous)
            stem = self._stem(segment)
            for suffix in (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                self._append(stem + suffix, b"")

        self._guarded(run)

    def _finish(self, segment: Segment) -> None:
        """Complete the indexes of a segment that takes no more batches."""
        stem = self._stem(segment)
        index, times = build_indexes(segment, self._index_interval_bytes, is_active=False)
        self._put_if_different(stem + INDEX_SUFFIX, index)
        self._put_if_different(stem + TIME_INDEX_SUFFIX, times)
        for suffix in _SEGMENT_SUFFIXES:
            self._handles.close(stem + suffix)

    def finish_active(self) -> None:
        """Complete the indexes of the active segment at a clean shutdown."""
        if self.segments:
            self._guarded(lambda: self._finish(self.segments[-1]))

    def _put_if_different(self, path: str, data: bytes) -> None:
        if read_file(path) != data:
            self._handles.close(path)
            write_atomically(path, data, sync=False)
            self._dirty[path] = None

    def on_truncate(self, segment: Segment) -> None:
        self._guarded(lambda: self._truncate_files(segment))

    def _truncate_files(self, segment: Segment) -> None:
        """Make the files of a segment match the segment in memory."""
        stem = self._stem(segment)
        path = stem + LOG_SUFFIX
        if (read_size := _size(path)) != segment.size:
            if read_size is None or read_size < segment.size:
                self._handles.close(path)
                data = b"".join(segment.stored)
                write_atomically(path, data, sync=False)
            else:
                os.truncate(path, segment.size)
            self._dirty[path] = None
        is_active = not self.segments or segment is self.segments[-1]
        index, times = build_indexes(segment, self._index_interval_bytes, is_active)
        self._put_if_different(stem + INDEX_SUFFIX, index)
        self._put_if_different(stem + TIME_INDEX_SUFFIX, times)
        if segment.aborted or _size(stem + TRANSACTION_INDEX_SUFFIX):
            aborted = format_aborted(segment.aborted or ())
            self._put_if_different(stem + TRANSACTION_INDEX_SUFFIX, aborted)

    def on_delete(self, segments: Sequence[Segment], now_ms: int) -> None:
        self._guarded(lambda: self._delete_files(segments, now_ms))

    def _delete_files(self, segments: Sequence[Segment], now_ms: int) -> None:
        for segment in segments:
            for suffix in _SEGMENT_SUFFIXES:
                path = self._stem(segment) + suffix
                self._handles.close(path)
                self._dirty.pop(path, None)
                with suppress(FileNotFoundError):
                    if now_ms < 0:
                        os.remove(path)
                    else:
                        os.replace(path, path + DELETED_SUFFIX)
                        due_ms = now_ms + self._file_delete_delay_ms
                        self._deleted.append((due_ms, path + DELETED_SUFFIX))

    def purge(self, now_ms: int) -> None:
        kept = []
        for due_ms, path in self._deleted:
            if due_ms <= now_ms:
                with suppress(FileNotFoundError):
                    os.remove(path)
            else:
                kept.append((due_ms, path))
        self._deleted = kept

    def on_rewrite(self, segment: Segment, replaced: Sequence[Segment], now_ms: int) -> None:
        def run() -> None:
            stem = self._stem(segment)
            data = b"".join(segment.stored)
            # In this order a crash leaves either all of the old or all of the new content.
            write_atomically(stem + LOG_SUFFIX + CLEANED_SUFFIX, data, self._sync)
            os.replace(stem + LOG_SUFFIX + CLEANED_SUFFIX, stem + LOG_SUFFIX + SWAP_SUFFIX)
            self._delete_files(replaced, now_ms)
            os.replace(stem + LOG_SUFFIX + SWAP_SUFFIX, stem + LOG_SUFFIX)
            self._truncate_files(segment)

        self._guarded(run)

    def on_flush(self, offset: int) -> None:
        def run() -> None:
            if self._sync:
                for path in self._dirty:
                    if os.path.exists(path):
                        self._handles.sync(path)
            self._dirty.clear()

        self._guarded(run)

    def on_epochs(self) -> None:
        data = format_epochs(self.epochs or (), self.epoch_starts or ()).encode()
        self._put(LEADER_EPOCH_CHECKPOINT, data)

    def on_topic_id(self) -> None:
        self._put(PARTITION_METADATA, format_topic_id(self.topic_id).encode())

    def _put(self, name: str, data: bytes) -> None:
        def run() -> None:
            os.makedirs(self.path, exist_ok=True)
            write_atomically(f"{self.path}/{name}", data, self._sync)

        self._guarded(run)

    def put_snapshot(self, offset: int, data: bytes) -> None:
        super().put_snapshot(offset, data)
        self._put(file_stem(offset) + SNAPSHOT_SUFFIX, data)

    def drop_snapshot(self, offset: int) -> None:
        super().drop_snapshot(offset)
        with suppress(OSError):
            os.remove(f"{self.path}/{file_stem(offset)}{SNAPSHOT_SUFFIX}")

    def put_cleaned_offset(self, topic_partition: TopicPartition, offset: int) -> None:
        super().put_cleaned_offset(topic_partition, offset)
        path = f"{self.directory.path}/{CLEANER_CHECKPOINT}"
        data = format_offsets(self.directory.checkpoints[CLEANER_CHECKPOINT]).encode()
        self._guarded(lambda: write_atomically(path, data, self._sync))

    def cut_to(self, offset: int, index_interval_bytes: int = 4096) -> None:
        before = list(self.segments)
        super().cut_to(offset, index_interval_bytes)
        self._delete_files(before[len(self.segments) :], -1)
        if self.segments:
            self._truncate_files(self.segments[-1])

    def _keep_torn(self, torn_bytes: int) -> None:
        """Truncate the files where the disk stopped writing, even in the middle of a batch.

        The indexes keep the entries beyond the end; the next start repairs the indexes and drops
        the torn batch.
        """
        before = list(self.segments)
        while len(self.segments) > 1 and self.segments[-1].base_offset > self.flushed_offset:
            self.segments.pop()
        self._delete_files(before[len(self.segments) :], -1)
        if self.segments:
            self._tear_file(self.segments[-1], torn_bytes)

    def _tear_file(self, segment: Segment, torn_bytes: int) -> None:
        path = self._stem(segment) + LOG_SUFFIX
        whole = segment.stored[: segment.find(self.flushed_offset)]
        self._guarded(lambda: os.truncate(path, sum(map(len, whole)) + torn_bytes))

    # -- loading and recovering --------------------------------------------------------------

    def load(
        self,
        index_interval_bytes: int,
        file_delete_delay_ms: int,
        recovery_point: int,
    ) -> None:
        """Read the directory into memory; after an unclean stop, recover it
        (docs/kafka/log.md#restart).

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR, and takes the log directory offline, when a
        checkpoint in it is corrupt or an I/O error occurs.
        """
        self._index_interval_bytes = index_interval_bytes
        self._file_delete_delay_ms = file_delete_delay_ms
        if not self.is_loaded:
            self._guarded(lambda: self._load(recovery_point))
            self.is_loaded = True

    def unload(self) -> None:
        """Release the state in memory; the files stay."""
        self.is_loaded = False
        self.segments: list[Segment] = []
        self.epochs = self.epoch_starts = None
        self.snapshots: dict[int, bytes] | None = None
        self.has_producers: bool = False
        self._dirty.clear()
        self._deleted.clear()

    def become_current(self, topic_partition: TopicPartition) -> None:
        """Rename the directory to that of the partition. All data in it must be flushed."""
        path = os.path.join(self.directory.path, str(topic_partition))

        def run() -> None:
            self._handles.close_all()
            os.makedirs(self.path, exist_ok=True)
            os.replace(self.path, path)
            self.path = path
            self._dirty.clear()
            self._deleted.clear()

        self._guarded(run)

    def delete(self) -> None:
        """Remove the directory, renaming it first so that a crash leaves all of it or nothing.

        Raises ``KafkaError`` KAFKA_STORAGE_ERROR if this fails; the log directory stays online.
        """
        self._handles.close_all()
        try:
            if os.path.isdir(self.path):
                os.replace(self.path, self.path + DELETED_DIRECTORY)
                shutil.rmtree(self.path + DELETED_DIRECTORY, ignore_errors=True)
        except OSError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _load(self, recovery_point: int) -> None:
        os.makedirs(self.path, exist_ok=True)
        self._tidy()
        names = sorted(os.listdir(self.path))
        self.segments = []
        for name in names:
            if name.endswith(SNAPSHOT_SUFFIX) and name[: -len(SNAPSHOT_SUFFIX)].isdecimal():
                data = read_file(f"{self.path}/{name}") or b""
                super().put_snapshot(int(name[: -len(SNAPSHOT_SUFFIX)]), data)
        bases = [
            int(name[: -len(LOG_SUFFIX)])
            for name in names
            if name.endswith(LOG_SUFFIX) and name[: -len(LOG_SUFFIX)].isdecimal()
        ]
        epochs = read_file(f"{self.path}/{LEADER_EPOCH_CHECKPOINT}")
        if epochs is not None:
            self.epochs, self.epoch_starts = parse_epochs(_text(epochs))
        metadata = read_file(f"{self.path}/{PARTITION_METADATA}")
        if metadata is not None:
            self.topic_id: str = parse_topic_id(_text(metadata))
        self._load_segments(bases, recovery_point)
        end = self.segments[-1].next_offset if self.segments else 0
        was_clean = self.directory.was_clean
        flushed = max(recovery_point, self.flushed_offset)  # may be newer than the checkpoint
        self.flushed_offset: int = end if was_clean else min(end, flushed)
        self.has_producers = bool(self.snapshots) or any(
            data[43] < 0x80 for segment in self.segments for data in segment.stored
        )

    def _tidy(self) -> None:
        """Finish or undo what a crash interrupted; leave unrelated files alone."""
        names = sorted(os.listdir(self.path))
        files = [  # (base offset, suffix, name) of the files of segments
            (int(stem), f".{suffix}", name)
            for name in names
            for stem, _, suffix in (name.partition("."),)
            if stem.isdecimal()
        ]
        for name in names:
            if name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, ".tmp")):
                os.remove(f"{self.path}/{name}")
        for base, suffix, name in files:
            if suffix == LOG_SUFFIX + SWAP_SUFFIX:
                path = f"{self.path}/{name}"
                batches, _ = scan_batches(read_file(path) or b"", base, verify=False)
                last = batches[-1].last_offset if batches else base
                for other_base, other_suffix, other in files:
                    if other_suffix in _SEGMENT_SUFFIXES and base <= other_base <= last:
                        os.remove(f"{self.path}/{other}")
                os.replace(path, path[: -len(SWAP_SUFFIX)])

    def _load_segments(self, bases: list[int], recovery_point: int) -> None:
        was_clean = self.directory.was_clean
        for index, base in enumerate(bases):
            next_base = bases[index + 1] if index + 1 < len(bases) else None
            verify = not was_clean and (next_base is None or next_base > recovery_point)
            segment, is_whole = self._load_segment(base, verify)
            overlaps = self.segments and self.segments[-1].next_offset > base
            if overlaps:
                self._delete_files([segment], -1)
                continue
            self.segments.append(segment)
            if verify:
                self._recover_epochs(segment)
            if not is_whole:
                # Nothing after a damaged batch can be trusted.
                self._truncate_files(segment)
                self._delete_files([Segment(later) for later in bases[index + 1 :]], -1)
                break
        for segment in self.segments:
            self._truncate_files(segment)

    def _load_segment(self, base: int, verify: bool) -> tuple[Segment, bool]:
        """Return a segment with its valid batches, and whether they are the whole file."""
        stem = f"{self.path}/{file_stem(base)}"
        status = os.stat(stem + LOG_SUFFIX)
        modified_ms = status.st_mtime_ns // 1_000_000
        segment = Segment(base, modified_ms)
        valid = 0
        if status.st_size:
            with open(stem + LOG_SUFFIX, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                view = memoryview(mapped)
                try:
                    batches, valid = scan_batches(view, base, verify)
                finally:
                    view.release()
                    mapped.close()
            segment.replace_batches(batches, modified_ms, self._index_interval_bytes)
        aborted = parse_aborted(read_file(stem + TRANSACTION_INDEX_SUFFIX) or b"")
        if aborted is None:
            # Without snapshots the whole log is replayed, which rebuilds the index.
            for offset in tuple(self.snapshots or ()):
                self.drop_snapshot(offset)
        end = segment.next_offset
        segment.aborted = [e for e in aborted or () if e.last_offset < end] or None
        return segment, valid == status.st_size

    def _recover_epochs(self, segment: Segment) -> None:
        """Add the epochs of re-scanned batches that the checkpoint lacks."""
        if self.epochs is None or self.epoch_starts is None:
            self.epochs, self.epoch_starts = [], []
        before = len(self.epochs)
        latest = self.epochs[-1] if self.epochs else -1
        for batch in segment.walk():
            epoch = batch.partition_leader_epoch
            if epoch > latest:
                latest = epoch
                self.epochs.append(epoch)
                self.epoch_starts.append(batch.base_offset)
        if len(self.epochs) != before:
            self.on_epochs()


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptCheckpoint("a checkpoint is not text") from None
