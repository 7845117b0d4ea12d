"""Look-ups in a log beyond plain reading: offsets by time, aborted transactions
(docs/kafka/producer-state.md#aborted-transactions,
docs/kafka/offsets-and-epochs.md#listoffsets)."""

from __future__ import annotations

from collections.abc import Iterable

from ...protocol.config import LONG_MAX
from ...protocol.data import MAX_TIMESTAMP, AbortedTransaction
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import MalformedRecords
from ...protocol.records.record_bytes import body_of, record_deltas
from .log import Log
from .results import TimestampOffset
from .segments import segment_index


def aborted_transactions(log: Log, start: int, end: int) -> list[AbortedTransaction]:
    """Return the aborted transactions that overlap the offsets from ``start`` to below ``end``
    (docs/kafka/producer-state.md#aborted-transactions)."""
    found: list[AbortedTransaction] = []
    if log.producers is None:
        return found
    for segment in log.segments[segment_index(log.segments, start) :]:
        for entry in segment.aborted or ():
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= end:
                return found
    return found


# -- looking up by time -------------------------------------------------------------------


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """Return the first record at or after a timestamp; for ``MAX_TIMESTAMP``, see
    ``max_timestamp_offset``.

    Only the first segment that reaches the timestamp is searched. Raises ``KafkaError``
    UNSUPPORTED_FOR_MESSAGE_FORMAT for a topic whose messages have no timestamps, CORRUPT_MESSAGE
    if the records of a stored batch cannot be read.
    """
    if log.settings.record_version < 1:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"the message format of {log.topic_partition} has no timestamps",
        )
    if timestamp == MAX_TIMESTAMP:
        return max_timestamp_offset(log)
    for segment in log.segments:
        if segment.max_timestamp >= timestamp and segment.stored:
            position = segment.first_batch_with_time(timestamp)
            return _find_time(log, segment.walk(position), timestamp)
    return None


def max_timestamp_offset(log: Log) -> TimestampOffset | None:
    """Return the first record with the greatest timestamp; None for an empty log."""
    largest = max(segment.max_timestamp for segment in log.segments)
    for segment in log.segments:
        if segment.stored and segment.max_timestamp == largest:
            batches = segment.walk(segment.max_timestamp_batch)
            return _find_time(log, batches, largest)
    return None


def _find_time(log: Log, batches: Iterable[RecordBatch], timestamp: int) -> TimestampOffset | None:
    start = log.log_start_offset
    for batch in batches:
        if batch.max_timestamp < timestamp or batch.last_offset < start:
            continue
        base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
        append_time = batch.max_timestamp if batch.timestamp_type else None
        try:
            body, position = body_of(batch)
            for delta, offset_delta, _ in record_deltas(body, position, batch.record_count):
                found = base_timestamp + delta if append_time is None else append_time
                offset = base_offset + offset_delta
                if found >= timestamp and offset >= start:
                    return TimestampOffset(found, offset, batch.partition_leader_epoch)
        except MalformedRecords as error:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{log.topic_partition}: the batch at {batch.base_offset}: {error}",
            ) from None
    return None


def legacy_fetch_offsets_before(log: Log, timestamp: int, offsets_max: int) -> list[int]:
    """Return the start offsets of segments last written by ``timestamp``, newest first.

    This is ListOffsets v0: -1 returns the log end and all starts, -2 the oldest start only.
    """
    starts = [
        (max(segment.base_offset, log.log_start_offset), segment.last_modified_ms)
        for segment in log.segments
    ]
    if log.active.size:
        starts.append((log.log_end_offset, LONG_MAX))
    if timestamp == -1:
        candidates = starts
    elif timestamp == -2:
        candidates = starts[:1]
    else:
        candidates = starts
        while candidates and candidates[-1][1] > timestamp:
            candidates = candidates[:-1]
    return [offset for offset, _ in reversed(candidates)][:offsets_max]
