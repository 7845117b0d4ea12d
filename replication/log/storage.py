"""The state of a partition's log that outlives the broker process.

``LogStorage`` keeps it in memory: the log works directly on the lists kept here, so nothing needs
to be written. ``FileStorage`` overrides the hooks, which do nothing in memory, to write files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.values import TopicPartition
from .checkpoint_formats import CLEANER_CHECKPOINT

if TYPE_CHECKING:
    from ...protocol.records.batch import RecordBatch
    from .segment import Segment


class LogDirectory:
    """One log directory of a broker, which fails as a whole."""

    def __init__(self, path: str) -> None:
        self.path: str = path
        self.is_offline: bool = False
        self.is_real: bool = False
        """True if the logs are stored in files, like ``LogStorage.is_real`` of each log."""
        self.was_clean: bool = True
        """True if the last shutdown was clean or there was none; otherwise logs are recovered."""
        self.checkpoints: dict[str, dict[TopicPartition, int]] = {}
        """Contents of the checkpoint files by file name."""
        self.on_expiry: Callable[[TopicPartition, Sequence[Segment]], object] | None = None
        """Called with the segments that retention is about to delete."""

    def check(self) -> None:
        """Raise ``KafkaError`` KAFKA_STORAGE_ERROR when offline."""
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline")


class LogStorage:
    """The stored state of one partition, in memory."""

    __slots__ = (
        "directory",
        "epoch_starts",
        "epochs",
        "flushed_offset",
        "has_producers",
        "segments",
        "snapshots",
        "topic_id",
    )

    is_real = False
    """True if the log has to call the hooks."""

    def __init__(self, directory: LogDirectory) -> None:
        self.directory: LogDirectory = directory
        self.segments: list[Segment] = []
        self.epochs: list[int] | None = None
        self.epoch_starts: list[int] | None = None
        """Start offsets of ``epochs``, in the same order; both are the leader-epoch checkpoint."""
        self.snapshots: dict[int, bytes] | None = None
        """Producer snapshots by the log end offset at which they were taken."""
        self.flushed_offset: int = 0
        """End offset of the flushed data, which is what survives a power failure."""
        self.has_producers: bool = False
        """True if the log has batches or snapshots with producer ids, as far as is known."""
        self.topic_id: str = ""

    # -- hooks: only called where ``is_real`` -------------------------------------------------

    def on_append(self, segment: Segment, batch: RecordBatch, indexed: bool) -> None:
        """Write a batch just appended to ``segment``, and its index entry if ``indexed``."""

    def on_aborted(self, segment: Segment) -> None:
        """Write the last entry of the segment's transaction index, which is new."""

    def on_roll(self, previous: Segment | None, segment: Segment) -> None:
        """Complete the files of the ``previous`` segment and create those of the active one."""

    def on_truncate(self, segment: Segment) -> None:
        """Truncate the files of a segment that was truncated in memory."""

    def on_rewrite(self, segment: Segment, replaced: Sequence[Segment], now_ms: int) -> None:
        """Write ``segment``, with which compaction replaced segments from the same base on."""

    def purge(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose ``file.delete.delay.ms`` has passed."""

    def on_delete(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Delete the files of removed segments: after the delay, or at once if ``now_ms`` is -1."""

    def on_flush(self, offset: int) -> None:
        """Sync everything below ``offset`` to the disk before returning."""

    def on_epochs(self) -> None:
        """Write the epoch history, which changed."""

    def on_topic_id(self) -> None:
        """Write the topic id, which was just assigned."""

    def put_snapshot(self, offset: int, data: bytes) -> None:
        if self.snapshots is None:
            self.snapshots = {}
        self.snapshots[offset] = data

    def drop_snapshot(self, offset: int) -> None:
        if self.snapshots is not None:
            self.snapshots.pop(offset, None)

    def load(
        self, index_interval_bytes: int, file_delete_delay_ms: int, recovery_point: int
    ) -> None:
        """Load the segments into memory if they are not loaded."""

    def unload(self) -> None:
        """Release what ``load`` can restore."""

    # -- called in memory and on files ----------------------------------------------------------

    def finish_active(self) -> None:
        """Complete the files of the active segment at a clean shutdown."""

    def delete(self) -> None:
        """Remove the files of the partition."""

    def become_current(self, topic_partition: TopicPartition) -> None:
        """Rename the directory of a future log to that of the partition."""

    # -- compaction ---------------------------------------------------------------------------

    def cleaned_offset(self, topic_partition: TopicPartition) -> int:
        """Return the offset up to which the log was compacted; 0 if it never was."""
        return self.directory.checkpoints.get(CLEANER_CHECKPOINT, {}).get(topic_partition, 0)

    def put_cleaned_offset(self, topic_partition: TopicPartition, offset: int) -> None:
        offsets = self.directory.checkpoints.setdefault(CLEANER_CHECKPOINT, {})
        offsets[topic_partition] = offset

    # -- crashes ------------------------------------------------------------------------------

    def cut_to(self, offset: int, index_interval_bytes: int = 4096) -> None:
        """Lose every batch that reaches ``offset`` or beyond, as in a power failure."""
        segments = self.segments
        while len(segments) > 1 and segments[-1].base_offset >= offset:
            segments.pop()
        if segments:
            segments[-1].truncate_to(offset, index_interval_bytes)

    def tear(self, survives: Callable[[int], int]) -> None:
        """Lose the end of the unflushed data, as in a power failure in the middle of a write.

        ``survives`` is called with the number of unflushed bytes, if there are any, and returns
        how many of them are on the disk, which may end in the middle of a batch.
        """
        unflushed = [
            data
            for segment in self.segments
            for data in segment.stored[segment.find(self.flushed_offset) :]
        ]
        total = sum(map(len, unflushed))
        if not total:
            return
        from ...protocol.records.batch import RecordBatch  # rarely needed

        left = survives(total)
        offset = self.flushed_offset
        for data in unflushed:
            if len(data) > left:
                break
            left -= len(data)
            offset = RecordBatch.from_bytes(data).last_offset + 1
        self.flushed_offset = offset
        self._keep_torn(left)

    def _keep_torn(self, torn_bytes: int) -> None:
        """Keep the batches below ``flushed_offset`` and ``torn_bytes`` bytes of the next one.

        A storage in memory keeps none of these bytes, as the next start would drop them.
        """
        self.cut_to(self.flushed_offset)
