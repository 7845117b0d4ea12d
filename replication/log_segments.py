"""The segments of a log and the marks upon them: rolling, flushing, truncating, deleting.

``LogSegments`` is the lower half of ``Log``: it keeps offsets, epochs and producer state in step
with the batches stored (data_plane 8, 10.4, 10.5; Kafka's ``Log``).
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from ..protocol.config import TopicConfig
from ..protocol.data import EpochEndOffset
from ..protocol.errors import ErrorCode, KafkaError, invariant
from ..protocol.record_batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch
from ..protocol.values import TopicPartition
from ..protocol.versions import Behaviour
from .epoch_cache import UNDEFINED, LeaderEpochCache
from .log_settings import LogSettings
from .log_storage import LogStorage
from .producer_state import CorruptSnapshot, ProducerStateManager
from .segment import RELATIVE_OFFSET_MAX, AbortedEntry, Segment

_base_offset = attrgetter("base_offset")


class LogSegments:
    """Segments, offsets, epoch history and producer state of one replica."""

    __slots__ = (
        "_epochs",
        "active",
        "behaviour",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "segments",
        "settings",
        "storage",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        settings: LogSettings,
        behaviour: Behaviour,
        storage: LogStorage,
        log_start_offset: int = 0,
    ) -> None:
        self.topic_partition = topic_partition
        self.settings = settings
        self.behaviour = behaviour
        self.storage = storage
        self.segments = storage.segments
        """Ascending by base offset; never empty."""
        if not self.segments:
            self._add_segment(log_start_offset, 0)
        self.active = self.segments[-1]
        first_base = self.segments[0].base_offset
        self.log_start_offset = max(log_start_offset, first_base)
        """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, always."""
        self.log_end_offset = self.active.next_offset
        if self.log_end_offset < self.log_start_offset:
            self._restart_segments_at(self.log_start_offset)
        self.high_watermark = self.log_start_offset
        self.recovery_point = self.log_end_offset
        """First offset not known to be flushed."""
        self._epochs: LeaderEpochCache | None = None
        if storage.epochs:
            epochs = self._epoch_cache()
            epochs.truncate_from_end(self.log_end_offset)
            epochs.truncate_from_start(self.log_start_offset)
        self.producers: ProducerStateManager | None = None
        if storage.has_producers or storage.snapshots:
            self._reload_producers()

    # -- facts ------------------------------------------------------------------------------

    @property
    def directory(self) -> str:
        """Path of the log directory it lies in."""
        return self.storage.directory.path

    @property
    def topic_id(self) -> str:
        return self.storage.topic_id

    def assign_topic_id(self, topic_id: str) -> None:
        """Write ``partition.metadata``; a different id already there is an error."""
        invariant(
            self.storage.topic_id in ("", topic_id),
            f"{self.topic_partition} has topic id {self.storage.topic_id}, not {topic_id}",
        )
        if topic_id and not self.storage.topic_id:
            self.storage.topic_id = topic_id
            if self.storage.is_real:
                self.storage.on_topic_id()

    @property
    def config(self) -> TopicConfig:
        return self.settings.config

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def update_config(self, config: TopicConfig) -> None:
        """Go by another configuration from the next append on."""
        self.settings = LogSettings(config, self.behaviour)

    def batches(self, from_offset: int = 0) -> Iterator[RecordBatch]:
        """The stored batches in order, beginning with the one that holds ``from_offset``."""
        start = self._segment_index(from_offset)
        for segment in self.segments[start:]:
            position = segment.find(from_offset) if segment.base_offset < from_offset else 0
            yield from segment.batches[position:]

    def _segment_index(self, offset: int) -> int:
        """Position of the segment that covers an offset."""
        segments = self.segments
        if offset >= segments[-1].base_offset:
            return len(segments) - 1
        return max(0, bisect_right(segments, offset, key=_base_offset) - 1)

    # -- epochs -----------------------------------------------------------------------------

    def _epoch_cache(self) -> LeaderEpochCache:
        cache = self._epochs
        if cache is None:
            storage = self.storage
            if storage.epochs is None or storage.epoch_starts is None:
                storage.epochs, storage.epoch_starts = [], []
            notify = (lambda _: storage.on_epochs()) if storage.is_real else None
            cache = self._epochs = LeaderEpochCache(
                storage.epochs,
                storage.epoch_starts,
                self.behaviour.epoch_registered_at_election,
                notify,
            )
        return cache

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        """(epoch, start offset) of the leader epochs in this log."""
        return () if self._epochs is None else tuple(self._epochs.entries)

    @property
    def latest_epoch(self) -> int:
        """-1 without epoch history."""
        return -1 if self._epochs is None else self._epochs.latest_epoch

    @property
    def earliest_epoch(self) -> int:
        return -1 if self._epochs is None else self._epochs.earliest_epoch

    @property
    def epoch_at_log_start(self) -> int:
        """The epoch that covers the log start offset; -1 if the history begins later."""
        if self._epochs is None or not self._epochs.epochs:
            return -1
        if self._epochs.start_offsets[0] > self.log_start_offset:
            return -1
        return self._epochs.epochs[0]

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Note the start of a leader epoch; logs of old message formats keep no history."""
        if not self.behaviour.epoch_cache:
            return
        if self.settings.record_version < 2:
            if self._epochs is not None:
                self._epochs.clear()
            return
        self._epoch_cache().assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Where an epoch ends in this log (data_plane 8); (-1, -1) if undefined."""
        if self._epochs is None:
            return UNDEFINED
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

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
            waited > settings.segment_ms - self._roll_jitter_ms()
            or segment.index_entries >= settings.index_entries_max
        )

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

    # -- high watermark and log start ---------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to what the log holds; gives the value set."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        self.high_watermark = offset
        if self.producers is not None:
            self.producers.on_high_watermark(offset)
        return offset

    @property
    def last_stable_offset(self) -> int:
        """End (exclusive) of what READ_COMMITTED consumers see (data_plane 3.6)."""
        producers = self.producers
        if producers is None or producers.first_unstable_offset < 0:
            return self.high_watermark
        return min(self.high_watermark, max(producers.first_unstable_offset, self.log_start_offset))

    @property
    def first_unstable_offset(self) -> int:
        """First offset of the oldest undecided or unreplicated transaction, or -1."""
        producers = self.producers
        if producers is None or producers.first_unstable_offset < 0:
            return -1
        return max(producers.first_unstable_offset, self.log_start_offset)

    def maybe_increment_log_start_offset(self, offset: int, reason: str = "client") -> bool:
        """Raise the log start; False if it is there already (data_plane 10.5).

        ``reason`` is ``client``, ``retention`` or ``leader``: only what a leader says may go
        beyond the high watermark, which then follows. Raises ``KafkaError`` OFFSET_OUT_OF_RANGE.
        """
        if offset <= self.log_start_offset:
            return False
        self.storage.directory.check()
        limit = self.log_end_offset if reason == "leader" else self.high_watermark
        if offset > limit:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} cannot start at {offset}, beyond {limit}",
            )
        self.log_start_offset = offset
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        if self._epochs is not None:
            self._epochs.truncate_from_start(offset)
        for snapshot_offset in tuple(self.storage.snapshots or ()):
            if snapshot_offset <= offset:
                self.storage.drop_snapshot(snapshot_offset)
        return True

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
        """Cut the log so that it ends at ``offset``; False if nothing was cut (data_plane 10.4).

        Raises ``ValueError`` for a negative offset, ``KafkaError`` when the directory is offline.
        """
        if offset < 0:
            raise ValueError(f"cannot truncate {self.topic_partition} to {offset}")
        self.storage.directory.check()
        if offset >= self.log_end_offset:
            if self._epochs is not None:
                # An epoch that began here but never wrote is dropped.
                self._epochs.truncate_from_end(self.log_end_offset)
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
        if self._epochs is not None:
            self._epochs.truncate_from_end(offset)
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
        self.producers = None
        for snapshot_offset in tuple(self.storage.snapshots or ()):
            self.storage.drop_snapshot(snapshot_offset)
        self.storage.has_producers = False
        self.high_watermark = offset

    def _restart_segments_at(self, offset: int) -> None:
        doomed = list(self.segments)
        self.segments.clear()
        if doomed and self.storage.is_real:
            self.storage.on_delete(doomed, -1)
        self.active = self._add_segment(offset, 0)
        self.log_end_offset = offset

    # -- producer state -----------------------------------------------------------------------

    def take_producer_snapshot(self) -> None:
        """Save the producer state as of the log end, if there is any."""
        if self.producers is not None and self.producers.entries:
            self.storage.put_snapshot(self.log_end_offset, self.producers.snapshot())

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget silent producers (data_plane 13.1); gives their number."""
        return 0 if self.producers is None else self.producers.remove_expired(now_ms, expiration_ms)

    def _reload_producers(self) -> None:
        """Rebuild the producer state: the newest usable snapshot, then the batches after it."""
        storage = self.storage
        state: ProducerStateManager | None = None
        position = self.log_start_offset
        for offset in sorted(storage.snapshots or (), reverse=True):
            if offset > self.log_end_offset or offset <= self.log_start_offset:
                storage.drop_snapshot(offset)
            elif state is None:
                try:
                    state = ProducerStateManager.from_snapshot(
                        storage.snapshots[offset]  # type: ignore[index]
                    )
                    position = offset
                except CorruptSnapshot:
                    storage.drop_snapshot(offset)
        self.producers = state or ProducerStateManager()
        for batch in self.batches(position):
            if batch.base_offset >= position and batch.data[43] < 0x80:
                self._note_producer(batch, self._segment_of(batch), is_replay=True)
        if not self.producers.entries:
            self.producers = None
            storage.has_producers = False
        else:
            self.producers.on_high_watermark(self.high_watermark)
            storage.has_producers = True

    def _segment_of(self, batch: RecordBatch) -> Segment:
        return self.segments[self._segment_index(batch.base_offset)]

    def _note_producer(self, batch: RecordBatch, segment: Segment, is_replay: bool = False) -> None:
        """Carry a stored batch with a producer id into the producer state."""
        producers = self.producers
        if producers is None:
            producers = self.producers = ProducerStateManager()
            self.storage.has_producers = True
        attributes = batch.data[22]
        if not attributes & CONTROL_BIT:
            producers.append_data_batch(
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp,
                bool(attributes & TRANSACTIONAL_BIT),
            )
            return
        marker = batch.control_marker()
        if marker is None:
            return
        completed = producers.append_marker(
            batch.producer_id,
            batch.producer_epoch,
            marker,
            batch.last_offset,
            batch.max_timestamp,
        )
        if completed is None:
            return
        if completed.is_aborted and not (
            is_replay and _has_aborted(segment.aborted, completed.last_offset)
        ):
            if segment.aborted is None:
                segment.aborted = []
            segment.aborted.append(
                AbortedEntry(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    producers.last_stable_offset_after(completed),
                )
            )
            if self.storage.is_real:
                self.storage.on_aborted(segment)
        producers.complete(completed)


def _has_aborted(entries: Sequence[AbortedEntry] | None, marker_offset: int) -> bool:
    return entries is not None and any(e.last_offset == marker_offset for e in entries)
