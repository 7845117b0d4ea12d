"""The marks a log keeps beside its batches: offsets, epoch history, producer state.

The lowest layer of ``Log`` (docs/kafka/log.md, docs/kafka/offsets-and-epochs.md,
docs/kafka/partitions.md, docs/kafka/producer-state.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from ...protocol.config import TopicConfig
from ...protocol.data import EpochEndOffset
from ...protocol.errors import ErrorCode, KafkaError, invariant
from ...protocol.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, RecordBatch
from ...protocol.records.format import PRODUCER_FIELDS
from ...protocol.values import TopicPartition
from ...protocol.versions import Behaviour
from .epoch_history import UNDEFINED, LeaderEpochCache
from .producer_state import CorruptSnapshot, ProducerStateManager
from .segment import AbortedEntry, Segment
from .settings import LogSettings
from .storage import LogStorage

_base_offset = attrgetter("base_offset")


class LogState:
    """Offsets, epoch history and producer state of one replica."""

    __slots__ = (
        "_epochs",
        "active",
        "high_watermark",
        "latest_epoch",
        "log_end_offset",
        "log_start_offset",
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
    """Ascending by base offset; never empty. The list itself belongs to the storage."""
    active: Segment
    """The last segment."""
    log_start_offset: int
    """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, always."""
    high_watermark: int
    log_end_offset: int
    recovery_point: int
    """First offset not known to be flushed."""
    producers: ProducerStateManager | None
    """None until a batch with a producer id comes."""
    _epochs: LeaderEpochCache | None
    """None until the first epoch is assigned."""
    latest_epoch: int
    """The last of ``_epochs``, kept apart because every fetch asks; -1 without epoch history."""

    # -- facts ------------------------------------------------------------------------------

    @property
    def directory(self) -> str:
        """Path of the log directory it lies in."""
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
        """Go by another configuration from the next append on."""
        self.settings = LogSettings(config, self.behaviour)

    def batches(self, from_offset: int = 0) -> Iterator[RecordBatch]:
        """The stored batches in order, beginning with the one that holds ``from_offset``."""
        start = self._segment_index(from_offset)
        for segment in self.segments[start:]:
            position = segment.find(from_offset) if segment.base_offset < from_offset else 0
            yield from segment.walk(position)

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
                self.latest_epoch = -1
            return
        epochs = self._epoch_cache()
        epochs.assign(epoch, offset)
        self.latest_epoch = epochs.latest_epoch

    def _truncate_epochs(self, end_offset: int) -> None:
        """Forget the epochs that begin at or after ``end_offset``."""
        epochs = self._epochs
        if epochs is not None:
            epochs.truncate_from_end(end_offset)
            self.latest_epoch = epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        """Where an epoch ends in this log
        (docs/kafka/offsets-and-epochs.md#where-an-epoch-ends); (-1, -1) if undefined."""
        if self._epochs is None:
            return UNDEFINED
        return self._epochs.end_offset_for(epoch, self.log_end_offset)

    # -- high watermark and log start ---------------------------------------------------------

    def update_high_watermark(self, offset: int) -> int:
        """Set the high watermark, clamped to what the log holds; gives the value set."""
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
        """End (exclusive) of what READ_COMMITTED consumers see
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
        """Raise the log start; False if it is there already
        (docs/kafka/log.md#raising-the-log-start).

        ``reason`` is ``client``, ``retention`` or ``leader``: only what a leader says, and in 0.10
        retention, may go beyond the high watermark, which then follows. Raises ``KafkaError``
        OFFSET_OUT_OF_RANGE.
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
        if self.producers is not None and self.behaviour.producers_go_with_their_records:
            self.producers.remove_below(offset)
        return True

    # -- producer state -----------------------------------------------------------------------

    def take_producer_snapshot(self) -> None:
        """Save the producer state as of the log end, if there is any."""
        if self.producers is not None and self.producers.entries:
            self.storage.put_snapshot(self.log_end_offset, self.producers.snapshot())

    def remove_expired_producers(self, now_ms: int, expiration_ms: int) -> int:
        """Forget silent producers (docs/kafka/producer-state.md#forgetting); gives their number."""
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
        if state is not None and self.behaviour.producers_go_with_their_records:
            state.remove_below(self.log_start_offset)
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

    def _producer_state(self) -> ProducerStateManager:
        producers = self.producers
        if producers is None:
            producers = self.producers = ProducerStateManager()
            self.storage.has_producers = True
        return producers

    def _note_producer(self, batch: RecordBatch, segment: Segment, is_replay: bool = False) -> None:
        """Carry a stored batch with a producer id into the producer state."""
        producers = self.producers
        if producers is None:
            producers = self._producer_state()
        data = batch.data
        attributes = data[22]
        if not attributes & CONTROL_BIT:
            timestamp, producer_id, epoch, base_sequence = PRODUCER_FIELDS.unpack_from(data, 35)
            producers.append_data_batch(
                producer_id,
                epoch,
                base_sequence,
                batch.base_offset,
                batch.last_offset,
                timestamp,
                attributes & TRANSACTIONAL_BIT != 0,
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
