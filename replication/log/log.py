"""The log of one replica: its segments, its offset marks, and the operations that change them.

Batches are never rebuilt: the leader scans the records of a client's batch and patches offset and
leader epoch into its header, all replicas share these bytes, and readers get whole batches
(docs/kafka/log.md, docs/kafka/offsets-and-epochs.md, docs/kafka/partitions.md#order-of-the-marks,
docs/kafka/fetch.md#positions, docs/kafka/producer-state.md; Kafka's ``Log``). The checks
before an append are in ``leader_append`` and ``follower_append``; look-ups by time and of aborted
transactions are in ``lookups``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.config import TopicConfig
from ...protocol.data import EpochEndOffset
from ...protocol.errors import ErrorCode, KafkaError, invariant
from ...protocol.host import LogOffsets
from ...protocol.records.batch import PartialBatch, RecordBatch
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from ...protocol.versions import behaviour as behaviour_of
from .epoch_history import UNDEFINED, LeaderEpochCache
from .producer_replay import newest_snapshot, note_batch
from .producer_state import ProducerStateManager
from .results import NOTHING_READ, ReadInfo
from .segment import RELATIVE_OFFSET_MAX, Segment
from .segments import (
    add_segment,
    needs_roll,
    restart_segments,
    segment_index,
    truncate_segments,
    walk,
)
from .settings import LogSettings
from .storage import LogDirectory, LogStorage


class Log(LogOffsets):
    """The log of one replica. Raises ``KafkaError`` KAFKA_STORAGE_ERROR once its directory failed.

    An instance belongs to one broker process; its ``storage`` outlives it.
    """

    __slots__ = (
        "_epochs",
        "active",
        "last_flush_ms",
        "latest_epoch",
        "producers",
        "recovery_point",
        "segments",
        "settings",
        "storage",
        "topic_partition",
    )

    topic_partition: TopicPartition
    settings: LogSettings
    storage: LogStorage
    segments: list[Segment]
    """Segments in ascending order of base offsets; never empty. The list belongs to the storage."""
    active: Segment
    """The last segment."""
    recovery_point: int
    """First offset not known to be flushed."""
    last_flush_ms: int
    """Time in ms at which the recovery point last rose, or else the broker opened the log."""
    producers: ProducerStateManager | None
    """State of the producers; None until a batch with a producer id is stored."""
    _epochs: LeaderEpochCache | None
    """Leader-epoch history; None until the first epoch is assigned."""
    latest_epoch: int
    """Latest epoch in ``_epochs``, stored here because every fetch reads it; -1 without history."""

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: TopicConfig | LogSettings,
        behaviour: Behaviour | None = None,
        storage: LogStorage | None = None,
        log_start_offset: int = 0,
    ) -> None:
        if isinstance(config, LogSettings):
            settings = config
        else:
            settings = LogSettings(config, behaviour or behaviour_of(config.kafka_version))
        if storage is None:
            storage = LogStorage(LogDirectory("memory"))
        self.topic_partition = topic_partition
        self.settings = settings
        self.storage = storage
        self.segments = storage.segments
        if not self.segments:
            add_segment(storage, log_start_offset, 0)
        self.active = self.segments[-1]
        first_base = self.segments[0].base_offset
        self.log_start_offset: int = max(log_start_offset, first_base)
        self.log_end_offset: int = self.active.next_offset
        if self.log_end_offset < self.log_start_offset:
            self._restart_segments_at(self.log_start_offset)
        self.high_watermark: int = self.log_start_offset
        self.recovery_point = self.log_end_offset
        self.last_flush_ms = 0
        self._epochs = None
        self.latest_epoch = -1
        if storage.epochs:
            epochs = self._epoch_cache()
            self._truncate_epochs(self.log_end_offset)
            epochs.truncate_from_start(self.log_start_offset)
        self.producers = None
        if storage.has_producers or storage.snapshots:
            self._reload_producers()

    # -- facts ------------------------------------------------------------------------------

    @property
    def directory(self) -> str:
        """Path of the log directory that holds the log."""
        return self.storage.directory.path

    @property
    def behaviour(self) -> Behaviour:
        return self.settings.behaviour

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
        """Replace the configuration, with effect from the next append."""
        self.settings = LogSettings(config, self.behaviour)

    def batches(self, from_offset: int = 0) -> Iterator[RecordBatch]:
        """Iterate over the stored batches from the one that contains ``from_offset``."""
        return walk(self.segments, from_offset)

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
    def earliest_epoch(self) -> int:
        return -1 if self._epochs is None else self._epochs.earliest_epoch

    @property
    def epoch_at_log_start(self) -> int:
        """Leader epoch at the log start offset; -1 if the history begins later."""
        if self._epochs is None or not self._epochs.epochs:
            return -1
        if self._epochs.start_offsets[0] > self.log_start_offset:
            return -1
        return self._epochs.epochs[0]

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        """Record the start of a leader epoch; logs of message formats below v2 keep no history."""
        if not self.behaviour.epoch_cache:
            return
        if self.settings.record_version < 2:
            if self._epochs is not None:
                self._epochs.clear()
                self.latest_epoch = -1
            return
        epochs = self._epoch_cache()
        epochs.assign(epoch, offset)
        self.latest_epoch = epochs.latest_epoch

    def _truncate_epochs(self, end_offset: int) -> None:
        """Remove the epochs that begin at or after ``end_offset``."""
        epochs = self._epochs
        if epochs is not None:
            epochs.truncate_from_end(end_offset)
            self.latest_epoch = epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Return the end offset of an epoch in this log
        (docs/kafka/offsets-and-epochs.md#where-an-epoch-ends); (-1, -1) if undefined."""
        if self._epochs is None:
            return UNDEFINED
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    # -- high watermark and log start ---------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to the offsets of the log, and return it."""
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        elif offset < self.log_start_offset:
            offset = self.log_start_offset
        self.high_watermark = offset
        producers = self.producers
        if producers is not None and producers.unreplicated:
            producers.on_high_watermark(offset)
        return offset

    @property
    def last_stable_offset(self) -> int:
        """Offset below which READ_COMMITTED consumers may read
        (docs/kafka/partitions.md#last-stable-offset)."""
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
        """Raise the log start offset; return False if it is not below ``offset``
        (docs/kafka/log.md#raising-the-log-start).

        ``reason`` is ``client``, ``retention`` or ``leader``: only the leader, and in 0.10
        retention, may go beyond the high watermark, which is then raised as well. Raises
        ``KafkaError`` OFFSET_OUT_OF_RANGE.
        """
        if offset <= self.log_start_offset:
            return False
        self.storage.directory.check()
        limit = self.high_watermark
        if reason == "leader" or (
            reason == "retention" and self.behaviour.retention_passes_high_watermark
        ):
            limit = self.log_end_offset
        if offset > limit:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"log start offset {offset} of {self.topic_partition} is above the limit {limit}",
            )
        self.log_start_offset = offset
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        if self._epochs is not None:
            self._epochs.truncate_from_start(offset)
        for snapshot_offset in tuple(self.storage.snapshots or ()):
            if snapshot_offset <= offset:
                self.storage.drop_snapshot(snapshot_offset)
        if self.producers is not None and self.behaviour.producers_go_with_their_records:
            self.producers.remove_below(offset)
        return True

    # -- producer state -----------------------------------------------------------------------

    def take_producer_snapshot(self) -> None:
        """Store a snapshot of the producer state at the log end, if any producer is known."""
        if self.producers is not None and self.producers.entries:
            self.storage.put_snapshot(self.log_end_offset, self.producers.snapshot())

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Remove inactive producers and return their number
        (docs/kafka/producer-state.md#forgetting)."""
        return 0 if self.producers is None else self.producers.remove_expired(now_ms, expiration_ms)

    def producer_state(self) -> ProducerStateManager:
        producers = self.producers
        if producers is None:
            producers = self.producers = ProducerStateManager()
            self.storage.has_producers = True
        return producers

    def _reload_producers(self) -> None:
        """Rebuild the producer state from the newest usable snapshot and the batches after it."""
        storage = self.storage
        state, position = newest_snapshot(storage, self.log_start_offset, self.log_end_offset)
        if state is not None and self.behaviour.producers_go_with_their_records:
            state.remove_below(self.log_start_offset)
        producers = self.producers = state or ProducerStateManager()
        segments = self.segments
        for batch in self.batches(position):
            if batch.data[43] < 0x80:  # has a producer id; may begin below the log start
                segment = segments[segment_index(segments, batch.base_offset)]
                note_batch(producers, storage, batch, segment, is_replay=True)
        if not producers.entries:
            self.producers = None
            storage.has_producers = False
        else:
            producers.on_high_watermark(self.high_watermark)
            storage.has_producers = True

    # -- rolling and flushing -----------------------------------------------------------------

    def roll(self, now_ms: int = 0) -> Segment:
        """Start a new segment at the log end unless the active one is empty; return the active."""
        self.storage.directory.check()
        end = self.log_end_offset
        if self.active.size == 0 and self.active.base_offset == end:
            return self.active
        self.take_producer_snapshot()
        self.flush(now_ms, end)
        self.active = add_segment(self.storage, end, now_ms)
        return self.active

    def flush(self, now_ms: int = 0, offset: int | None = None) -> None:
        """Flush everything below ``offset`` (by default the log end) to the disk."""
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
            self.last_flush_ms = now_ms

    # -- truncation ---------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> bool:
        """Truncate the log so that it ends at ``offset``; return False if nothing was removed
        (docs/kafka/log.md#truncation).

        Raises ``ValueError`` for a negative offset, ``KafkaError`` when the directory is offline.
        """
        if offset < 0:
            raise ValueError(f"cannot truncate {self.topic_partition} to the negative {offset}")
        self.storage.directory.check()
        if offset >= self.log_end_offset:
            # Drop an epoch that began at the log end and has no records.
            self._truncate_epochs(self.log_end_offset)
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        storage = self.storage
        self.active = truncate_segments(storage, offset, self.settings.index_interval_bytes)
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
        """Delete all data and restart the log at ``offset``."""
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
        """Lower the cleaned offset to ``offset``: records appended from there are not compacted."""
        if self.storage.cleaned_offset(self.topic_partition) > offset:
            self.storage.put_cleaned_offset(self.topic_partition, offset)

    def _restart_segments_at(self, offset: int) -> None:
        self.active = restart_segments(self.storage, offset)
        self.log_end_offset = offset

    # -- storing batches --------------------------------------------------------------------

    def store(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> Segment:
        """Append a batch, rolling to a new segment if one is due, and return its segment."""
        segment = self.active
        settings = self.settings
        data = batch.data
        size = segment.size
        size_after = size + len(data)
        last_offset = batch.last_offset
        if (
            size_after > settings.segment_bytes
            or (first_timestamp := segment.first_timestamp) < 0
            or max_timestamp - first_timestamp > settings.segment_ms_least
            or segment.index_entries >= settings.index_entries_max
            or last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or size - segment.indexed_bytes > settings.index_interval_bytes
            or self.storage.directory.is_real
        ):
            return self._store_and_roll(batch, max_timestamp, now_ms)
        # ``Segment.append`` for a batch that is not the first, inlined because every replica
        # stores every batch.
        stored = segment.stored
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.max_timestamp_batch = len(stored)
        stored.append(data)  # type: ignore[union-attr]
        segment.last_batch = batch
        segment.size = size_after
        segment.last_modified_ms = now_ms
        self.log_end_offset = last_offset + 1
        return segment

    def _store_and_roll(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> Segment:
        """Append a batch that may need a new segment, an index entry or a write to a file."""
        segment = self.active
        last_offset = batch.last_offset
        settings = self.settings
        size = len(batch.data)
        if needs_roll(
            segment, settings, self.topic_partition, size, max_timestamp, last_offset, now_ms
        ):
            segment = self.roll(now_ms)
        indexed = segment.append(batch, max_timestamp, now_ms, settings.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        storage = self.storage
        if storage.is_real:
            storage.on_append(segment, batch, indexed)
        return segment

    def flush_if_due(self, now_ms: int) -> None:
        """Flush if at least ``flush.messages`` records have not been flushed."""
        if self.log_end_offset - self.recovery_point >= self.settings.flush_messages:
            self.flush(now_ms)

    # -- reading ------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        minimum_one_batch: bool = True,
        cuts_first_batch: bool = False,
    ) -> ReadInfo:
        """Return batches of one segment, starting with the one that contains ``offset``.

        They end below ``upper_bound_offset`` and within ``max_bytes``; a batch after the first
        that exceeds ``max_bytes`` is cut to a ``PartialBatch``. A first batch that exceeds it is
        returned whole with ``minimum_one_batch``; otherwise it is left out, or cut with
        ``cuts_first_batch``. Raises ``KafkaError`` OFFSET_OUT_OF_RANGE below the log start and
        above the log end (docs/kafka/fetch.md#limits, Kafka's ``LogSegment.read``).
        """
        if self.storage.directory.is_offline:
            self.storage.directory.check()
        end_offset = self.log_end_offset
        last = self.active.last_batch
        if (
            last is not None
            and last.base_offset <= offset < end_offset <= upper_bound_offset
            and offset >= self.log_start_offset
        ):
            # Readers of the tail mostly lack only the batch that was just appended.
            size = len(last.data)
            if size > max_bytes and not minimum_one_batch:
                return _cut(last.data, max_bytes) if cuts_first_batch else NOTHING_READ
            return ReadInfo((last,), size)
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {self.topic_partition} is out of range "
                f"{self.log_start_offset} to {self.log_end_offset}",
            )
        if offset >= upper_bound_offset or offset == self.log_end_offset:
            return NOTHING_READ
        segments = self.segments
        for index in range(segment_index(self.segments, offset), len(segments)):
            segment = segments[index]
            position = segment.find(offset)
            stored = segment.stored
            end = len(stored)
            if position < end:
                break
        else:
            return NOTHING_READ
        if upper_bound_offset < self.log_end_offset:
            end = segment.find(upper_bound_offset)
            if position >= end:
                return NOTHING_READ
        size = len(stored[position])
        if size > max_bytes and not minimum_one_batch:
            return _cut(stored[position], max_bytes) if cuts_first_batch else NOTHING_READ
        for index in range(position + 1, end):
            data = stored[index]
            larger = size + len(data)
            if larger > max_bytes:
                if size >= max_bytes:
                    end = index
                    break
                batches = segment.views(position, index)
                batches.append(PartialBatch(data[: max_bytes - size]))
                return ReadInfo(tuple(batches), max_bytes)
            size = larger
        return ReadInfo(tuple(segment.views(position, end)), size)

    def records(self) -> list[Record]:
        """Return every record from the log start on, markers included; for tests and displays."""
        return [
            record
            for batch in self.batches(self.log_start_offset)
            for record in batch.records()
            if record.offset >= self.log_start_offset
        ]


def _cut(data: bytes, max_bytes: int) -> ReadInfo:
    """Return the first ``max_bytes`` bytes of a batch as a partial batch."""
    return ReadInfo((PartialBatch(data[:max_bytes]),), max_bytes) if max_bytes else NOTHING_READ
