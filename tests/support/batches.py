"""Parsing of record batches, and moving them to other offsets."""

from __future__ import annotations

from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.records.format import (
    INT,
    LENGTH_OVERHEAD,
    MAGIC,
    MINIMUM_LENGTH,
    PREFIX,
    CorruptBatch,
    Readable,
)


def parse_batches(records: Readable | None, verify: bool = False) -> list[RecordBatch]:
    """Return views of the whole v2 batches in ``records``, ignoring a partial batch at the end.

    ``verify`` also checks every checksum. Raises ``CorruptBatch``.
    """
    if not records:
        return []
    total = len(records)
    found = []
    position = 0
    while total - position >= LENGTH_OVERHEAD:
        (length,) = INT.unpack_from(records, position + 8)
        if length < MINIMUM_LENGTH:
            raise CorruptBatch(f"batch length {length} is below the minimum of {MINIMUM_LENGTH}")
        end = position + LENGTH_OVERHEAD + length
        if end > total:
            break
        if records[position + 16] != MAGIC:
            raise CorruptBatch(f"magic {records[position + 16]} is not that of a v2 batch")
        if position == 0 and end == total and isinstance(records, bytes):
            batch = RecordBatch.from_bytes(records)
        else:
            batch = RecordBatch.from_bytes(bytes(records[position:end]))
        if verify and not batch.is_intact():
            raise CorruptBatch(f"the checksum of the batch at byte {position} is wrong")
        found.append(batch)
        position = end
    return found


def with_base_offset(data: Readable, base_offset: int, leader_epoch: int) -> bytes:
    """Return the batch with another base offset and epoch, whose checksum stays valid."""
    return (
        PREFIX.pack(base_offset, len(data) - LENGTH_OVERHEAD, leader_epoch)
        + (memoryview(data)[16:])
    )
