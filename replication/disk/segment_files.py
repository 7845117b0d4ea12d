"""Kafka's on-disk formats of a segment: batches, and offset, time and transaction index.

These are pure functions on bytes; ``FileStorage`` reads and writes the files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from ...protocol.records.batch import RecordBatch
from ...protocol.records.checksum import crc32c
from ...protocol.records.format import (
    CRC_START,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    MINIMUM_LENGTH,
    NO_TIMESTAMP,
    Readable,
)
from ..log.segment import RELATIVE_OFFSET_MAX, AbortedEntry, Segment

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
DELETED_DIRECTORY = "-delete"
"""Suffix of the name of a partition's directory that is being deleted."""

_BATCH_START = struct.Struct(">qiibI")
_LAST_DELTA_AT = 23
_INDEX_ENTRY = struct.Struct(">ii")
_TIME_INDEX_ENTRY = struct.Struct(">qi")
_ABORTED_ENTRY = struct.Struct(">hqqqq")
_INT = struct.Struct(">i")


def file_stem(offset: int) -> str:
    """Return an offset as twenty digits, so that files sort by offset."""
    return f"{offset:020d}"


def index_entry(segment: Segment, batch: RecordBatch) -> bytes:
    """Return the offset index entry of the batch just appended to ``segment``."""
    return _INDEX_ENTRY.pack(
        batch.last_offset - segment.base_offset, segment.size - len(batch.data)
    )


def time_index_entry(segment: Segment) -> bytes:
    """Return the time index entry for the largest timestamp so far."""
    (batch,) = segment.views(segment.max_timestamp_batch, segment.max_timestamp_batch + 1)
    return _TIME_INDEX_ENTRY.pack(segment.max_timestamp, batch.last_offset - segment.base_offset)


def build_indexes(segment: Segment, interval_bytes: int, is_active: bool) -> tuple[bytes, bytes]:
    """Return the offset and time index of a whole segment, as written by appends of its batches.

    The time index of a segment that is not active ends with its largest timestamp.
    """
    index, times = bytearray(), bytearray()
    position = unindexed = 0
    largest = last_noted = NO_TIMESTAMP
    offset_of_largest = 0
    for batch in segment.walk():
        timestamp = batch.max_timestamp
        if timestamp > largest:
            largest, offset_of_largest = timestamp, batch.last_offset - segment.base_offset
        if unindexed > interval_bytes:
            index += _INDEX_ENTRY.pack(batch.last_offset - segment.base_offset, position)
            if largest > last_noted:
                times += _TIME_INDEX_ENTRY.pack(largest, offset_of_largest)
                last_noted = largest
            unindexed = 0
        unindexed += len(batch.data)
        position += len(batch.data)
    if not is_active and largest > last_noted:
        times += _TIME_INDEX_ENTRY.pack(largest, offset_of_largest)
    return bytes(index), bytes(times)


def format_aborted(entries: Iterable[AbortedEntry]) -> bytes:
    """Return the content of a ``.txnindex`` file."""
    return b"".join(_ABORTED_ENTRY.pack(0, *entry) for entry in entries)


def parse_aborted(data: bytes) -> list[AbortedEntry] | None:
    """Return the entries of a ``.txnindex`` file; None if it is damaged.

    A torn last entry is ignored.
    """
    found: list[AbortedEntry] = []
    whole = len(data) - len(data) % _ABORTED_ENTRY.size
    for version, *fields in _ABORTED_ENTRY.iter_unpack(data[:whole]):
        entry = AbortedEntry(*fields)
        if version != 0 or entry.first_offset > entry.last_offset:
            return None
        if found and entry.last_offset <= found[-1].last_offset:
            return None
        found.append(entry)
    return found


def scan_batches(data: Readable, base_offset: int, verify: bool) -> tuple[list[RecordBatch], int]:
    """Return the valid batches at the start of a segment file, and their size in bytes.

    The scan ends at the first batch that is torn, has another magic, is out of order or (with
    ``verify``) has a wrong checksum (docs/kafka/log.md#restart).
    """
    batches: list[RecordBatch] = []
    view = memoryview(data)
    total = len(view)
    position = 0
    next_offset = base_offset
    while total - position >= HEADER_SIZE:
        offset, length, _, magic, checksum = _BATCH_START.unpack_from(view, position)
        end = position + LENGTH_OVERHEAD + length
        if length < MINIMUM_LENGTH or end > total or magic != MAGIC or offset < next_offset:
            break
        if offset - base_offset > RELATIVE_OFFSET_MAX:
            break  # no index can point to the batch
        (last_delta,) = _INT.unpack_from(view, position + _LAST_DELTA_AT)
        if last_delta < 0 or (verify and crc32c(view[position + CRC_START : end]) != checksum):
            break
        last_offset = offset + last_delta
        batches.append(RecordBatch(bytes(view[position:end]), offset, last_offset))
        next_offset = last_offset + 1
        position = end
    return batches, position
