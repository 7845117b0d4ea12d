"""One partition's directory on the real disk: reading it, and recovering it after a crash.

Data below the recovery point is believed, what lies above is checked batch by batch
(docs/kafka/log.md#restart; Kafka's ``Log.loadSegments`` and ``recoverLog``).
"""

from __future__ import annotations

import mmap
import os

from ..log.checkpoint_formats import (
    LEADER_EPOCH_CHECKPOINT,
    PARTITION_METADATA,
    CorruptCheckpoint,
    parse_epochs,
    parse_topic_id,
)
from ..log.segment import Segment
from .file_io import read_file
from .file_writes import SEGMENT_SUFFIXES, FileWrites
from .segment_files import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
    parse_aborted,
    scan_batches,
)


class FileStorage(FileWrites):
    """The stored state of one partition in a directory of its own."""

    __slots__ = ()

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
        """Forget what is in memory; the files stay."""
        self.is_loaded = False
        self.segments = []
        self.epochs = self.epoch_starts = self.snapshots = None
        self.has_producers = False
        self._dirty.clear()
        self._deleted.clear()

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
            self.topic_id = parse_topic_id(_text(metadata))
        self._load_segments(bases, recovery_point)
        end = self.segments[-1].next_offset if self.segments else 0
        was_clean = self.directory.was_clean
        self.flushed_offset = end if was_clean else min(end, recovery_point)
        self.has_producers = bool(self.snapshots) or any(
            data[43] < 0x80 for segment in self.segments for data in segment.stored
        )

    def _tidy(self) -> None:
        """Finish or undo what a crash interrupted; files of others are left alone."""
        names = sorted(os.listdir(self.path))
        files = [  # (base offset, suffix, name) of what belongs to segments
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
                    if other_suffix in SEGMENT_SUFFIXES and base <= other_base <= last:
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
                self._cut_files(segment)
                self._delete_files([Segment(later) for later in bases[index + 1 :]], -1)
                break
        for segment in self.segments:
            self._cut_files(segment)

    def _load_segment(self, base: int, verify: bool) -> tuple[Segment, bool]:
        """A segment with its valid batches, and whether that is all of the file."""
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
            # Without snapshots the whole log is replayed, which builds the index anew.
            for offset in tuple(self.snapshots or ()):
                self.drop_snapshot(offset)
        end = segment.next_offset
        segment.aborted = [e for e in aborted or () if e.last_offset < end] or None
        return segment, valid == status.st_size

    def _recover_epochs(self, segment: Segment) -> None:
        """Add the epochs of re-scanned batches that the checkpoint misses."""
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


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise CorruptCheckpoint("a checkpoint is not text") from None
