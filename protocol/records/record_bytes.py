"""Operations on the encoded records of a batch, without creating a ``Record`` for each.

Creating records takes several times as long, and thousands of them burden the garbage collector.
``renumbered`` trusts the sizes of produced records, as the leader has validated them before
(``replication/log/record_walk.py``).

``record_deltas`` and ``record_contents`` repeat the code that parses the start of a record. Moving
it into a function would cost a call per record: ``record_deltas`` took 15 % longer.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import compression as codecs
from .batch import RecordBatch
from .format import HEADER_SIZE, MalformedRecords, encoded_varint, read_varint, write_varint


def body_of(
    batch: RecordBatch, decompressed_bytes_max: int = codecs.DECOMPRESSED_BYTES_MAX
) -> tuple[bytes, int]:
    """Return the bytes with a batch's decompressed records, and the position of the first record.

    Raises ``MalformedRecords`` if the records cannot be decompressed.
    """
    codec = batch.compression
    if not codec:
        return batch.data, HEADER_SIZE
    packed = memoryview(batch.data)[HEADER_SIZE:]
    try:
        return codecs.decompress(codec, packed, limit=decompressed_bytes_max), 0
    except codecs.CorruptPayload as error:
        raise MalformedRecords(str(error)) from None


def record_deltas(body: bytes, position: int, count: int) -> Iterator[tuple[int, int, bool]]:
    """Yield (timestamp delta, offset delta, True if the record has a key) for each record.

    Raises ``MalformedRecords`` if there are fewer records, or if one exceeds the batch.
    """
    limit = len(body)
    try:
        for _ in range(count):
            size = body[position]
            if size < 128:
                end = position + 1 + (size >> 1)
                position += 2
            else:
                size, position = read_varint(body, position)
                end = position + size
                position += 1
            time = body[position]
            if time < 128:
                time = (time >> 1) ^ -(time & 1)
                position += 1
            else:
                time, position = read_varint(body, position)
            offset = body[position]
            if offset < 128:
                offset = (offset >> 1) ^ -(offset & 1)
                position += 1
            else:
                offset, position = read_varint(body, position)
            if not position < end <= limit:
                raise MalformedRecords("a record in the batch has an impossible length")
            yield time, offset, not body[position] & 1
            position = end
    except IndexError:
        raise MalformedRecords("the batch has fewer records than its header says") from None


def record_contents(
    body: bytes, position: int, count: int
) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yield (timestamp delta, offset delta, key, value) for each record; headers are skipped.

    Raises ``MalformedRecords`` if there are fewer records, or if more bytes follow them.
    """
    try:
        for _ in range(count):
            size = body[position]
            if size < 128:
                size = (size >> 1) ^ -(size & 1)
                position += 1
            else:
                size, position = read_varint(body, position)
            end = position + size
            position += 1
            time = body[position]
            if time < 128:
                time = (time >> 1) ^ -(time & 1)
                position += 1
            else:
                time, position = read_varint(body, position)
            offset = body[position]
            if offset < 128:
                offset = (offset >> 1) ^ -(offset & 1)
                position += 1
            else:
                offset, position = read_varint(body, position)
            size = body[position]
            position += 1
            if size > 127:
                size, position = read_varint(body, position - 1)
                key = body[position : position + size] if size >= 0 else None
                position += max(size, 0)
            elif size & 1:
                key = None
            else:
                key = body[position : position + (size >> 1)]
                position += size >> 1
            size = body[position]
            position += 1
            if size > 127:
                size, position = read_varint(body, position - 1)
                value = body[position : position + size] if size >= 0 else None
                position += max(size, 0)
            elif size & 1:
                value = None
            else:
                value = body[position : position + (size >> 1)]
                position += size >> 1
            if position >= end:
                raise MalformedRecords("a record exceeds the length that it declares")
            yield time, offset, key, value
            position = end
    except IndexError:
        raise MalformedRecords("the batch has fewer records than its header says") from None
    if position != len(body):
        raise MalformedRecords(f"{len(body) - position} bytes follow the last of {count} records")


def renumbered(body: bytes, position: int, count: int, subtracted_ms: int = 0) -> bytearray:
    """Return the records with offset deltas 0, 1, 2 and so on, and with timestamp deltas reduced by
    ``subtracted_ms``.

    Raises ``MalformedRecords`` if a timestamp delta no longer fits into 64 bits.
    """
    out = bytearray()
    for index in range(count):
        record_start = position
        size = body[position]
        position += 1
        if size < 128:
            size >>= 1
        else:
            size, position = read_varint(body, record_start)
        start = position
        end = start + size
        time_start = position = position + 1  # after the attributes
        while body[position] > 127:
            position += 1
        position += 1
        offset_start = position
        while body[position] > 127:
            position += 1
        position += 1
        delta = _offset_delta(index)
        if subtracted_ms:
            delta = encoded_delta(read_varint(body, time_start)[0] - subtracted_ms) + delta
            unchanged_end = time_start
        else:
            unchanged_end = offset_start
        change = len(delta) - (position - unchanged_end)
        if change:
            write_varint(out, size + change)
            out += body[start:unchanged_end]
        else:
            out += body[record_start:unchanged_end]
        out += delta
        out += body[position:end]
        position = end
    return out


def _offset_delta(index: int) -> bytes:
    if index < 64:
        return bytes((index << 1,))
    if index < 8192:
        return bytes((index << 1 & 127 | 128, index >> 6))
    if index < 1 << 20:
        return bytes((index << 1 & 127 | 128, index >> 6 & 127 | 128, index >> 13))
    return encoded_varint(index)


def encoded_delta(delta: int) -> bytes:
    """Encode a timestamp delta; raises ``MalformedRecords`` if it does not fit into 64 bits."""
    if not -(1 << 63) <= delta < 1 << 63:
        raise MalformedRecords("a timestamp delta does not fit into 64 bits")
    return encoded_varint(delta)
