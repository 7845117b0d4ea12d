"""Scanning of the records of a batch without decoding them.

This checks what Kafka's ``LogValidator`` checks by iterating over every produced batch: all
records are present and well framed, their offsets are in order, and the header has their largest
timestamp (docs/kafka/log.md).

Every record of every producer is scanned here. Numbers stay zigzag encoded, that is doubled, until
they are needed. Each byte after the first adds (byte - 1) << 7, 14, ..., because the continuation
bit of the byte before it was added with that byte.
"""

from __future__ import annotations

from ...protocol.config import INT_MAX, LONG_MAX
from ...protocol.records import compression as codecs
from ...protocol.records.format import (
    HEADER_SIZE,
    INT_SHIFT_MAX,
    LONG_SHIFT_MAX,
    NO_TIMESTAMP,
    MalformedRecords,
    read_varint,
)
from .record_runs import NO_DELTAS, RUN_SCAN_MIN_RECORDS, skip_runs

_LONG_MIN = -(1 << 63)

RecordScan = tuple[int, bool, bytes]
"""Result of ``scan_records``."""


class TooManyHeaders(MalformedRecords):
    """Raised when the records of a batch together have more headers than allowed."""


def scan_records(
    data: bytes,
    count: int,
    codec: int,
    base_timestamp: int,
    decompressed_bytes_max: int = codecs.DECOMPRESSED_BYTES_MAX,
    headers_max: int = INT_MAX,
) -> RecordScan:
    """Scan the records of a whole batch. Return their largest timestamp, whether their offsets
    can be kept, and their decompressed bytes (``body_of``), for further use.

    Kafka checks offsets in compressed batches only, as old clients are known to get them wrong
    there. Raises ``CorruptPayload`` if decompression fails, ``PayloadTooLarge`` if the size or
    the number of headers exceeds its limit, ``MalformedRecords`` for anything but ``count``
    well-formed records.
    """
    body, position = data, HEADER_SIZE
    if codec:
        body, position = (
            codecs.decompress(codec, memoryview(data)[HEADER_SIZE:], limit=decompressed_bytes_max),
            0,
        )
    try:
        largest, least, in_order = walk(body, position, count, headers_max)
    except TooManyHeaders:
        raise codecs.PayloadTooLarge(codec, headers_max, "headers") from None
    if base_timestamp + largest > LONG_MAX or base_timestamp + least < _LONG_MIN:
        raise MalformedRecords("a timestamp does not fit into 64 bits")
    return max(base_timestamp + largest, NO_TIMESTAMP), in_order or not codec, body


def walk(
    body: bytes, position: int, count: int, headers_max: int = INT_MAX
) -> tuple[int, int, bool]:
    """Scan ``count`` records (at least one) in the decompressed ``body`` from ``position`` on.

    Return the largest and the least timestamp delta in ms, and whether the offset deltas are 0, 1,
    2 and so on. Raises ``MalformedRecords`` unless well-framed records, with at most
    ``headers_max`` headers, fill the body exactly.
    """
    first, last_time, in_order, (largest, least) = 0, -1, True, NO_DELTAS
    if count >= RUN_SCAN_MIN_RECORDS:
        first, position, largest, least = skip_runs(body, position, count)
    try:
        for expected in range(2 * first, 2 * count, 2):
            size = body[position]
            position += 1
            if size > 127:
                byte = body[position]
                position += 1
                size += byte - 1 << 7
                if byte > 127:
                    size, position = _continue_varint(body, position, size)
            start = position
            time = body[position + 1]  # after the attributes, which are unused
            position += 2
            if time > 127:
                byte = body[position]
                position += 1
                time += byte - 1 << 7
                if byte > 127:
                    time, position = _continue_varint(body, position, time, LONG_SHIFT_MAX)
            if time != last_time:
                last_time, delta = time, (time >> 1) ^ -(time & 1)
                largest = delta if delta > largest else largest
                least = delta if delta < least else least
            offset = body[position]
            position += 1
            if offset > 127:
                byte = body[position]
                position += 1
                offset += byte - 1 << 7
                if byte > 127:
                    offset, position = _continue_varint(body, position, offset)
            in_order = in_order and offset == expected
            key_size = body[position]
            position += 1
            if key_size != 1:  # not null
                if key_size > 127:
                    key_size, position = _continue_size(body, position, key_size)
                if not key_size & 1:
                    position += key_size >> 1
            value_size = body[position]
            position += 1
            if value_size > 127:
                byte = body[position]
                position += 1
                value_size += byte - 1 << 7
                if byte > 127:
                    value_size, position = _continue_varint(body, position, value_size)
            if not value_size & 1:
                position += value_size >> 1
            position += 1
            if body[position - 1]:
                position, headers_max = _skip_headers(body, position - 1, headers_max)
            if position - start << 1 != size:
                raise MalformedRecords(f"record {expected >> 1} does not match its size")
    except IndexError:
        raise MalformedRecords(f"record {expected >> 1} exceeds the batch") from None
    _check_end(body, position, count)
    return largest, least, in_order


def _check_end(body: bytes, position: int, count: int) -> None:
    if position != len(body):
        raise MalformedRecords(f"{len(body) - position} bytes follow the last of {count} records")


def _continue_varint(
    body: bytes, position: int, value: int, shift_max: int = INT_SHIFT_MAX
) -> tuple[int, int]:
    """Read a number from its third byte on, with ``value`` for the first two.

    Return the number, still zigzag encoded, and the position after it.
    """
    shift = 14
    while True:
        if shift > shift_max:
            raise MalformedRecords("a varint has too many bytes")
        byte = body[position]
        position += 1
        value += byte - 1 << shift
        if byte < 128:
            return value, position
        shift += 7


def _continue_size(body: bytes, position: int, value: int) -> tuple[int, int]:
    """Read a 32-bit number from its second byte on, as ``_continue_varint`` does from the third."""
    byte = body[position]
    value += byte - 1 << 7
    if byte < 128:
        return value, position + 1
    return _continue_varint(body, position + 1, value)


def _skip_headers(body: bytes, position: int, headers_max: int) -> tuple[int, int]:
    """Skip the headers of a record, whose keys must not be null, unlike their values.

    Return the position after them and the number of headers still allowed in the batch.
    """
    count, position = read_varint(body, position, INT_SHIFT_MAX)
    if count < 0:
        raise MalformedRecords(f"a record claims {count} headers")
    if count > headers_max:
        raise TooManyHeaders(f"{count} headers, but only {headers_max} more are allowed")
    for _ in range(count):
        size = body[position]
        position += 1
        if size > 127:
            size, position = _continue_size(body, position, size)
        if size & 1:
            raise MalformedRecords("a header without a key")
        position += size >> 1
        size = body[position]
        position += 1
        if size > 127:
            size, position = _continue_size(body, position, size)
        if not size & 1:
            position += size >> 1
    return position, headers_max - count
