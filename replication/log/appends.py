"""Storing batches behind the last, and what a follower appends
(docs/kafka/partitions.md#order-of-the-marks, docs/kafka/log.md#truncation)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import CONTROL_BIT, NO_TIMESTAMP, TRANSACTIONAL_BIT, RecordBatch
from .lookups import LogReads
from .results import NOTHING_APPENDED, AppendInfo, OffsetsOutOfOrder, UnexpectedAppendOffset
from .segment import RELATIVE_OFFSET_MAX, Segment

_REPLICATED = struct.Struct(">12xi5xh12xqqhi")
"""Of a batch header: leader epoch, attributes, maximum timestamp, producer id, producer epoch,
base sequence."""


class LogAppends(LogReads):
    """A log that grows; ``Log`` adds what a leader checks before."""

    __slots__ = ()

    def _store(self, batch: RecordBatch, max_timestamp: int, now_ms: int) -> Segment:
        """Put a batch behind the last, in a new segment if one is due; gives its segment."""
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
        # What ``Segment.append`` does behind another batch, without the call: every replica
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
        """``_store`` where a segment, an index entry or a file may be concerned."""
        segment = self.active
        last_offset = batch.last_offset
        if self._needs_roll(len(batch.data), max_timestamp, last_offset, now_ms):
            segment = self.roll(now_ms)
        interval = self.settings.index_interval_bytes
        indexed = segment.append(batch, max_timestamp, now_ms, interval)
        self.log_end_offset = last_offset + 1
        storage = self.storage
        if storage.is_real:
            storage.on_append(segment, batch, indexed)
        return segment

    def _flush_if_due(self) -> None:
        if self.log_end_offset - self.recovery_point >= self.settings.flush_messages:
            self.flush()

    # -- appending as follower ----------------------------------------------------------------

    def append_as_follower(
        self, batches: Sequence[RecordBatch], now_ms: int = -1, verify: bool = False
    ) -> AppendInfo:
        """Append the leader's batches as they are: the same bytes, offsets and epochs.

        ``verify`` checks their checksums, which a leader in this process has done already. Raises
        ``UnexpectedAppendOffset``, ``OffsetsOutOfOrder`` or ``KafkaError`` CORRUPT_MESSAGE before
        anything is appended.
        """
        if self.storage.directory.is_offline:
            self.storage.directory.check()
        if not batches:
            return NOTHING_APPENDED
        expected = self.log_end_offset
        first = batches[0]
        if (
            first.base_offset < expected <= first.last_offset
            and self.behaviour.messages_stand_alone
            and (not verify or first.is_intact())
        ):
            batches = (first.without_records_below(expected), *batches[1:])
        if batches[0].base_offset < expected:
            raise UnexpectedAppendOffset(self.topic_partition, batches[0], expected)
        for batch in batches:
            if batch.base_offset < expected or batch.last_offset < batch.base_offset:
                raise OffsetsOutOfOrder(self.topic_partition, batches)
            expected = batch.last_offset + 1
            if verify and not batch.is_intact():
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{self.topic_partition}: the batch at {batch.base_offset} is damaged",
                )
        largest = NO_TIMESTAMP
        for batch in batches:
            largest = max(largest, self._append_replicated(batch, now_ms))
        if self.settings.flushes_by_count:
            self._flush_if_due()
        return AppendInfo(
            batches[0].base_offset, batches[-1].last_offset, largest, -1, tuple(batches)
        )

    def append_next(self, batch: RecordBatch, now_ms: int) -> bool:
        """``append_as_follower`` of the one batch that begins at the log's end.

        False, and nothing done, if it is another one.
        """
        offset = self.log_end_offset
        if (
            batch.base_offset != offset
            or batch.last_offset < offset
            or self.storage.directory.is_offline
        ):
            return False
        summary = batch.summary
        if summary is None:
            self._append_replicated(batch, now_ms)
        else:  # the same, of what the leader knows already
            epoch, max_timestamp, producer_id, producer_epoch, noted = summary
            if self.latest_epoch != epoch and epoch >= 0:
                self.assign_epoch_start_offset(epoch, offset)
            segment = self._store(batch, max_timestamp, now_ms)
            if noted is not None:
                producers = self.producers
                entry = None if producers is None else producers.entries.get(producer_id)
                if entry is None or entry.epoch != producer_epoch:
                    self._note_producer(batch, segment)
                else:
                    entry.add(noted, max_timestamp)
        if self.settings.flushes_by_count:
            self._flush_if_due()
        return True

    def _append_replicated(self, batch: RecordBatch, now_ms: int) -> int:
        """Append a batch as it is; gives its largest timestamp."""
        epoch, attributes, max_timestamp, producer_id, producer_epoch, base_sequence = (
            _REPLICATED.unpack_from(batch.data)
        )
        if self.latest_epoch != epoch and epoch >= 0:
            self.assign_epoch_start_offset(epoch, batch.base_offset)
        if now_ms < 0:
            now_ms = max_timestamp
        segment = self._store(batch, max_timestamp, now_ms)
        if producer_id >= 0:
            if attributes & CONTROL_BIT:
                self._note_producer(batch, segment)
            else:
                producers = self.producers
                if producers is None:
                    producers = self._producer_state()
                producers.append_data_batch(
                    producer_id,
                    producer_epoch,
                    base_sequence,
                    batch.base_offset,
                    batch.last_offset,
                    max_timestamp,
                    attributes & TRANSACTIONAL_BIT != 0,
                )
        return max_timestamp  # type: ignore[no-any-return]
