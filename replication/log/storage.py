"""State of a partition's log that outlives the broker process, and where it is kept.

``LogStorage`` is the memory kind: the log works on the very lists kept here, so nothing needs to
be written. Storages on real files (``FileStorage``) override the hooks, which do nothing in memory.
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
    """One log directory of a broker; fails as a whole."""

    def __init__(self, path: str) -> None:
        self.path: str = path
        self.is_offline: bool = False
        self.is_real: bool = False
        """Whether logs in it lie in files; as ``LogStorage.is_real`` of each of them."""
        self.was_clean: bool = True
        """Whether the last stop was clean (or there was none): decides on recovery."""
        self.checkpoints: dict[str, dict[TopicPartition, int]] = {}
        """Checkpoint files by name."""
        self.on_expiry: Callable[[TopicPartition, Sequence[Segment]], object] | None = None
        """Hears of segments that retention deletes, before they are gone."""

    def check(self) -> None:
        """Raise ``KafkaError`` KAFKA_STORAGE_ERROR when offline."""
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path} is offline")


class LogStorage:
    """The stored state of one partition in memory."""

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
    """Whether the log has to call the hooks."""

    def __init__(self, directory: LogDirectory) -> None:
        self.directory: LogDirectory = directory
        self.segments: list[Segment] = []
        self.epochs: list[int] | None = None
        self.epoch_starts: list[int] | None = None
        """Parallel to ``epochs``: the leader-epoch checkpoint."""
        self.snapshots: dict[int, bytes] | None = None
        """Producer snapshots by the offset up to which they hold."""
        self.flushed_offset: int = 0
        """What a power failure leaves."""
        self.has_producers: bool = False
        """Whether a batch with a producer id was ever stored."""
        self.topic_id: str = ""

    # -- hooks: only called where ``is_real`` -------------------------------------------------

    def on_append(self, segment: Segment, batch: RecordBatch, indexed: bool) -> None:
        """A batch was added behind the last of ``segment``; write an index entry if told to."""

    def on_aborted(self, segment: Segment) -> None:
        """The last entry of the segment's transaction index is new."""

    def on_roll(self, previous: Segment | None, segment: Segment) -> None:
        """``segment`` is the active one now."""

    def on_truncate(self, segment: Segment) -> None:
        """A segment lost its end."""

    def on_rewrite(self, segment: Segment, replaced: Sequence[Segment], now_ms: int) -> None:
        """Compaction put ``segment`` in the place of ``replaced`` (its own base among theirs)."""

    def purge(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose delay is over."""

    def on_delete(self, segments: Sequence[Segment], now_ms: int) -> None:
        """Segments left the log for good."""

    def on_flush(self, offset: int) -> None:
        """Everything below ``offset`` must be on the disk when this returns."""

    def on_epochs(self) -> None:
        """The epoch history changed."""

    def on_topic_id(self) -> None:
        """The topic id became known."""

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
        """Bring the segments into memory, if they are not there."""

    def unload(self) -> None:
        """Forget what ``load`` can bring back."""

    # -- called on both kinds -------------------------------------------------------------------

    def finish_active(self) -> None:
        """End the files of the active segment at a clean shutdown."""

    def delete(self) -> None:
        """Remove the files of the partition."""

    def become_current(self, topic_partition: TopicPartition) -> None:
        """Give the files of a copy the partition's name."""

    # -- compaction ---------------------------------------------------------------------------

    def cleaned_offset(self, topic_partition: TopicPartition) -> int:
        """Up to where the log was compacted; 0 before the first time."""
        return self.directory.checkpoints.get(CLEANER_CHECKPOINT, {}).get(topic_partition, 0)

    def put_cleaned_offset(self, topic_partition: TopicPartition, offset: int) -> None:
        offsets = self.directory.checkpoints.setdefault(CLEANER_CHECKPOINT, {})
        offsets[topic_partition] = offset

    # -- crashes ------------------------------------------------------------------------------

    def cut_to(self, offset: int, index_interval_bytes: int = 4096) -> None:
        """Lose every batch that reaches ``offset`` or beyond, as a power failure does."""
        segments = self.segments
        while len(segments) > 1 and segments[-1].base_offset >= offset:
            segments.pop()
        if segments:
            segments[-1].truncate_to(offset, index_interval_bytes)

    def tear(self, survives: Callable[[int], int]) -> None:
        """Lose the end of what was not flushed, as a power failure in the middle of a write does.

        ``survives`` is called with the number of bytes that were not flushed, if there are any,
        and says how many of them the disk has; the last batch of these may be cut in the middle.
        """
        unflushed = [
            data
            for segment in self.segments
            for data in segment.stored[segment.find(self.flushed_offset) :]
        ]
        total = sum(map(len, unflushed))
        if not total:
            return
        from ...protocol.records.batch import RecordBatch  # few writes are torn

        left = survives(total)
        offset = self.flushed_offset
        for data in unflushed:
            if len(data) > left:
                break
            left -= len(data)
            offset = RecordBatch.of(data).last_offset + 1
        self.flushed_offset = offset
        self._keep_torn(left)

    def _keep_torn(self, torn_bytes: int) -> None:
        """Keep the batches that are whole, and so many bytes of the one behind them.

        Memory keeps none of these: the next start would drop them.
        """
        self.cut_to(self.flushed_offset)
