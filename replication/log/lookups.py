"""Reading a log: by offset, by time, and what of it was aborted
(docs/kafka/fetch.md#positions, docs/kafka/producer-state.md#aborted-transactions,
docs/kafka/offsets-and-epochs.md#listoffsets)."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.config import LONG_MAX
from ...protocol.data import MAX_TIMESTAMP, AbortedTransaction
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import MalformedRecords, PartialBatch, Record, RecordBatch
from .results import NOTHING_READ, ReadInfo, TimestampOffset
from .segments import LogSegments


class LogReads(LogSegments):
    """The reading half of ``Log``."""

    __slots__ = ()

    def read(
        self,
        offset: int,
        max_bytes: int,
        upper_bound_offset: int,
        minimum_one_batch: bool = True,
        cuts_first_batch: bool = False,
    ) -> ReadInfo:
        """Batches from the one that holds ``offset`` on, out of one segment.

        They end below ``upper_bound_offset`` and within ``max_bytes``; of a batch that does not
        fit behind others, the bytes that do fit come last, as a ``PartialBatch``. A larger first
        batch is whole with ``minimum_one_batch``, else left out, or cut with
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
            # Who reads the tail mostly lacks the one batch that was just appended.
            size = len(last.data)
            if size > max_bytes and not minimum_one_batch:
                return _cut(last.data, max_bytes) if cuts_first_batch else NOTHING_READ
            return ReadInfo((last,), size)
        if offset > self.log_end_offset or offset < self.log_start_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{self.topic_partition} holds {self.log_start_offset} to "
                f"{self.log_end_offset}, not {offset}",
            )
        if offset >= upper_bound_offset or offset == self.log_end_offset:
            return NOTHING_READ
        segments = self.segments
        for index in range(self._segment_index(offset), len(segments)):
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

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch offsets ``start`` up to ``end``
        (docs/kafka/producer-state.md#aborted-transactions)."""
        found: list[AbortedTransaction] = []
        if self.producers is None:
            return found
        for segment in self.segments[self._segment_index(start) :]:
            for entry in segment.aborted or ():
                if entry.last_offset >= start and entry.first_offset < end:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= end:
                    return found
        return found

    # -- looking up by time -------------------------------------------------------------------

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """The first record at or after a time (or of ``MAX_TIMESTAMP``), from the log start on.

        Only the first segment that reaches the time is searched. Raises ``KafkaError``
        UNSUPPORTED_FOR_MESSAGE_FORMAT for a topic whose messages carry no time, CORRUPT_MESSAGE
        where the records of a stored batch cannot be read.
        """
        if self.settings.record_version < 1:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                f"the message format of {self.topic_partition} has no timestamps",
            )
        if timestamp == MAX_TIMESTAMP:
            return self.max_timestamp_offset()
        for segment in self.segments:
            if segment.max_timestamp >= timestamp and segment.stored:
                position = segment.first_batch_with_time(timestamp)
                return self._find_time(segment.walk(position), timestamp)
        return None

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the greatest timestamp; None in an empty log."""
        largest = max(segment.max_timestamp for segment in self.segments)
        for segment in self.segments:
            if segment.stored and segment.max_timestamp == largest:
                batches = segment.walk(segment.max_timestamp_batch)
                return self._find_time(batches, largest)
        return None

    def _find_time(self, batches: Iterable[RecordBatch], timestamp: int) -> TimestampOffset | None:
        start = self.log_start_offset
        for batch in batches:
            if batch.max_timestamp < timestamp or batch.last_offset < start:
                continue
            try:
                records = batch.records()
            except MalformedRecords as error:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{self.topic_partition}: the batch at {batch.base_offset}: {error}",
                ) from None
            for record in records:
                if record.timestamp >= timestamp and record.offset >= start:
                    return TimestampOffset(
                        record.timestamp, record.offset, batch.partition_leader_epoch
                    )
        return None

    def legacy_fetch_offsets_before(self, timestamp: int, offsets_max: int) -> list[int]:
        """ListOffsets v0: starts of segments last written by ``timestamp``, newest first.

        -1 begins with the log end, -2 with the oldest segment.
        """
        starts = [
            (max(segment.base_offset, self.log_start_offset), segment.last_modified_ms)
            for segment in self.segments
        ]
        if self.active.size:
            starts.append((self.log_end_offset, LONG_MAX))
        if timestamp == -1:
            candidates = starts
        elif timestamp == -2:
            candidates = starts[:1]
        else:
            candidates = starts
            while candidates and candidates[-1][1] > timestamp:
                candidates = candidates[:-1]
        return [offset for offset, _ in reversed(candidates)][:offsets_max]

    def records(self) -> list[Record]:
        """Every record from the log start on, markers included; for tests and views."""
        return [
            record
            for batch in self.batches(self.log_start_offset)
            for record in batch.records()
            if record.offset >= self.log_start_offset
        ]


def _cut(data: bytes, max_bytes: int) -> ReadInfo:
    """As much of a first batch as a limit lets through."""
    return ReadInfo((PartialBatch(data[:max_bytes]),), max_bytes) if max_bytes else NOTHING_READ
