"""The segments of a log: rolling, flushing, truncating, deleting.

``LogSegments`` keeps the marks of ``LogState`` in step with the batches stored
(docs/kafka/log.md#truncation; Kafka's ``Log``).
"""

from __future__ import annotations

import zlib

from ...protocol.errors import invariant
from ...protocol.values import TopicPartition
from .segment import RELATIVE_OFFSET_MAX, Segment
from .settings import LogSettings
from .state import LogState
from .storage import LogStorage


class LogSegments(LogState):
    """The segments of one replica."""

    __slots__ = ()

    def __init__(
        self,
        topic_partition: TopicPartition,
        settings: LogSettings,
        storage: LogStorage,
        log_start_offset: int = 0,
    ) -> None:
        self.topic_partition = topic_partition
        self.settings = settings
        self.storage = storage
        self.segments = storage.segments
        if not self.segments:
            self._add_segment(log_start_offset, 0)
        self.active = self.segments[-1]
        first_base = self.segments[0].base_offset
        self.log_start_offset = max(log_start_offset, first_base)
        self.log_end_offset = self.active.next_offset
        if self.log_end_offset < self.log_start_offset:
            self._restart_segments_at(self.log_start_offset)
        self.high_watermark = self.log_start_offset
        self.recovery_point = self.log_end_offset
        self._epochs = None
        self.latest_epoch = -1
        if storage.epochs:
            epochs = self._epoch_cache()
            self._truncate_epochs(self.log_end_offset)
            epochs.truncate_from_start(self.log_start_offset)
        self.producers = None
        if storage.has_producers or storage.snapshots:
            self._reload_producers()

    # -- rolling and flushing -----------------------------------------------------------------

    def _add_segment(self, base_offset: int, now_ms: int) -> Segment:
        segment = Segment(base_offset, now_ms)
        segments = self.segments
        previous = segments[-1] if segments else None
        segments.append(segment)
        if self.storage.is_real:
            self.storage.on_roll(previous, segment)
        return segment

    def _needs_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether a batch must go to a new segment (Kafka: ``LogSegment.shouldRoll``)."""
        segment = self.active
        settings = self.settings
        if segment.size + size > settings.segment_bytes:
            return segment.size > 0
        if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if not segment.size:
            return False
        first = segment.first_timestamp
        waited = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
        return (
            waited > settings.segment_ms_least
            and waited > settings.segment_ms - self._roll_jitter_ms()
        ) or segment.index_entries >= settings.index_entries_max

    def _roll_jitter_ms(self) -> int:
        """Spreads rolling over time; fixed per partition, not random."""
        jitter = min(self.settings.segment_jitter_ms, self.settings.segment_ms)
        return zlib.crc32(str(self.topic_partition).encode()) % jitter if jitter > 0 else 0

    def roll(self, now_ms: int = 0) -> Segment:
        """Begin a new segment at the log end; an empty active segment stays."""
        self.storage.directory.check()
        end = self.log_end_offset
        if self.active.size == 0 and self.active.base_offset == end:
            return self.active
        self.take_producer_snapshot()
        self.flush(end)
        self.active = self._add_segment(end, now_ms)
        return self.active

    def flush(self, offset: int | None = None) -> None:
        """Bring everything below ``offset`` (the log end) to the disk."""
        storage = self.storage
        storage.directory.check()
        if offset is None:
            offset = self.log_end_offset
        if offset > storage.flushed_offset:
            if storage.is_real:
                storage.on_flush(offset)
            storage.flushed_offset = offset
        if offset > self.recovery_point:
            self.recovery_point = offset

    def delete_segments(self, count: int, now_ms: int) -> None:
        """Drop the first ``count`` segments; the log start must have moved past them."""
        doomed = self.segments[:count]
        if not doomed:
            return
        invariant(count < len(self.segments), "a log keeps at least one segment")
        del self.segments[:count]
        if self.storage.is_real:
            self.storage.on_delete(doomed, now_ms)

    # -- truncation ---------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Cut the log so that it ends at ``offset``; False if nothing was cut
        (docs/kafka/log.md#truncation).

        Raises ``ValueError`` for a negative offset, ``KafkaError`` when the directory is offline.
        """
        if offset < 0:
            raise ValueError(f"cannot truncate {self.topic_partition} to {offset}")
        self.storage.directory.check()
        if offset >= self.log_end_offset:
            # An epoch that began here but never wrote is dropped.
            self._truncate_epochs(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        segments = self.segments
        keep = self._segment_index(offset) + 1
        doomed = segments[keep:]
        del segments[keep:]
        storage = self.storage
        if doomed and storage.is_real:
            storage.on_delete(doomed, -1)
        self.active = segments[-1]
        self.active.truncate_to(offset, self.settings.index_interval_bytes)
        if storage.is_real:
            storage.on_truncate(self.active)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.recovery_point = min(self.recovery_point, offset)
        storage.flushed_offset = min(storage.flushed_offset, offset)
        self._lower_cleaned_offset(offset)
        self._truncate_epochs(offset)
        if storage.has_producers:
            self._reload_producers()
        if self.high_watermark > offset:
            self.update_high_watermark(offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and begin anew at ``offset``."""
        self.storage.directory.check()
        self._restart_segments_at(offset)
        self.log_start_offset = offset
        self.recovery_point = offset
        self.storage.flushed_offset = offset
        if self._epochs is not None:
            self._epochs.clear()
            self.latest_epoch = -1
        self.producers = None
        for snapshot_offset in tuple(self.storage.snapshots or ()):
            self.storage.drop_snapshot(snapshot_offset)
        self.storage.has_producers = False
        self.high_watermark = offset
        self._lower_cleaned_offset(offset)

    def _lower_cleaned_offset(self, offset: int) -> None:
        """What will be written from ``offset`` on was not compacted."""
        if self.storage.cleaned_offset(self.topic_partition) > offset:
            self.storage.put_cleaned_offset(self.topic_partition, offset)

    def _restart_segments_at(self, offset: int) -> None:
        doomed = list(self.segments)
        self.segments.clear()
        if doomed and self.storage.is_real:
            self.storage.on_delete(doomed, -1)
        self.active = self._add_segment(offset, 0)
        self.log_end_offset = offset
