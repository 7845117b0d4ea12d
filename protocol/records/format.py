"""Message format v2 byte by byte: constants, the header's layout, and the encoding of records.

The module ``batch`` builds and reads whole batches with it (docs/kafka/log.md#batches).
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

from .checksum import crc32c

MAGIC = 2
HEADER_SIZE = 61
LENGTH_OVERHEAD = 12
"""Number of bytes at the start of a batch that its length field does not count."""
MINIMUM_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD
CRC_START = 21
"""Position of the attributes, where the bytes covered by the checksum begin."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, length, leaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
maxTimestamp, producerId, producerEpoch, baseSequence, recordCount."""
PREFIX = struct.Struct(">qii")
"""baseOffset, length, leaderEpoch: the fields that a leader sets, not covered by the checksum."""
BODY_HEADER = struct.Struct(">hiqqqhii")
LARGEST_SMALL_VALUE = 55
"""Maximum size in bytes of a value for which each length in its record is encoded in one byte."""
EPOCH = struct.Struct(">i")
SHORT = struct.Struct(">h")
LONG = struct.Struct(">q")
INT = struct.Struct(">i")
CRC = struct.Struct(">I")
OFFSETS = struct.Struct(">q15xi")
"""Base offset and last offset delta."""
PRODUCER_FIELDS = struct.Struct(">qqhi")
"""The fields from byte 35: maximum timestamp, producer id, producer epoch, base sequence."""
CONTROL_KEY = struct.Struct(">hh")
CONTROL_VALUE = struct.Struct(">hi")

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1
NO_TIMESTAMP = -1
NO_SEQUENCE = -1
SEQUENCE_MAX = 2147483647
ABORT = 0
COMMIT = 1

Readable = bytes | bytearray | memoryview

_new_tuple = tuple.__new__


class CorruptBatch(ValueError):
    """Bytes are not a valid batch: impossible size, wrong checksum or unknown magic."""


class MalformedRecords(ValueError):
    """The checksum of a batch is correct, but its records cannot be decoded."""


class Record(NamedTuple):
    """A decoded record, with absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ControlMarker(NamedTuple):
    """The content of a control batch's single record (docs/kafka/log.md#batches)."""

    is_commit: bool
    coordinator_epoch: int


def add_sequence(sequence: int, increment: int) -> int:
    """Return ``sequence + increment``, wrapped from 2147483647 to 0 as Kafka does."""
    total = sequence + increment
    return total if total <= SEQUENCE_MAX else total - SEQUENCE_MAX - 1


# -- records ---------------------------------------------------------------------------------


INT_SHIFT_MAX = 28
"""Shift of the fifth byte, the last byte of a 32-bit varint."""
LONG_SHIFT_MAX = 63
"""Shift of the tenth byte, the last byte of a 64-bit varint."""


def read_varint(data: Readable, position: int, shift_max: int = LONG_SHIFT_MAX) -> tuple[int, int]:
    """Read a zig-zag varint; return the number and the position after it.

    Raises ``MalformedRecords`` if the number has too many bytes.
    """
    shift = 0
    value = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > shift_max:
            raise MalformedRecords(f"a number has more than {shift_max // 7 + 1} bytes")


def decode_records(
    body: Readable,
    position: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> list[Record]:
    """Decode ``count`` records from the decompressed ``body``, beginning at ``position``.

    Raises ``MalformedRecords`` unless the records end exactly at the end of the body.
    """
    found = []
    try:
        for _ in range(count):
            record, position = _decode_record(
                body, position, base_offset, base_timestamp, append_time
            )
            found.append(record)
    except IndexError:
        raise MalformedRecords(f"record {len(found)} exceeds the batch") from None
    if position != len(body):
        raise MalformedRecords(f"{len(body) - position} bytes follow the last of {count} records")
    return found


def _decode_record(
    body: Readable, position: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[Record, int]:
    """Decode one record; return it and the position after it.

    One-byte varints are decoded inline, for speed.
    """
    byte = body[position]
    if byte < 0x80:
        size, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        size, position = read_varint(body, position)
    end = position + size
    if size < 0 or end > len(body):
        raise IndexError
    position += 1  # attributes, unused
    byte = body[position]
    if byte < 0x80:
        timestamp, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        timestamp, position = read_varint(body, position)
    byte = body[position]
    if byte < 0x80:
        delta, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        delta, position = read_varint(body, position)
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    byte = body[position]
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if byte == 0:
        position += 1
    else:
        headers, position = _read_headers(body, position, end)
    if position != end:
        raise MalformedRecords(f"a record of {size} bytes ends {end - position} bytes early")
    time = base_timestamp + timestamp if append_time is None else append_time
    # Calling ``Record`` itself would be slower, and this runs for every record.
    return _new_tuple(Record, (base_offset + delta, time, key, value, headers)), end


def _read_bytes(body: Readable, position: int, end: int) -> tuple[bytes | None, int]:
    byte = body[position]
    if byte < 0x80:
        size, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        size, position = read_varint(body, position)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise IndexError
    found = body[position:stop]
    return found if type(found) is bytes else bytes(found), stop


def _read_headers(
    body: Readable, position: int, end: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = read_varint(body, position)
    if count < 0 or count > end - position:
        raise MalformedRecords(f"a record claims {count} headers")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(body, position, end)
        if key is None:
            raise MalformedRecords("a header without a key")
        value, position = _read_bytes(body, position, end)
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), position


def write_varint(out: bytearray, value: int) -> None:
    """Append a zig-zag varint (of up to 64 bits)."""
    if 0 <= value < 64:
        out.append(value << 1)
        return
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def encoded_varint(value: int) -> bytes:
    """Return a number encoded as a zig-zag varint."""
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


@functools.lru_cache(1 << 14)
def head_of_only_record(value_size: int) -> bytes:
    """Return the bytes before the value in a batch's only record, which has no key or headers."""
    size_of_value = encoded_varint(value_size)
    return encoded_varint(value_size + 5 + len(size_of_value)) + b"\x00\x00\x00\x01" + size_of_value


def write_record(out: bytearray, record: Record, offset_delta: int, time_delta: int) -> None:
    key, value = record.key, record.value
    if key is None and value is not None and not record.headers:
        size = len(value)
        if size <= LARGEST_SMALL_VALUE and 0 <= time_delta < 8192 and 0 <= offset_delta < 8192:
            # Most records of a simulation: both deltas take one or two bytes, other numbers one.
            time, offset = time_delta << 1, offset_delta << 1
            if offset < 128:
                if time < 128:
                    out += bytes((size + 6 << 1, 0, time, offset, 1, size << 1))
                else:
                    low, high = time & 127 | 128, time >> 7
                    out += bytes((size + 7 << 1, 0, low, high, offset, 1, size << 1))
            else:
                out += bytes((size + (7 if time < 128 else 8) << 1, 0))
                write_varint(out, time_delta)
                out += bytes((offset & 127 | 128, offset >> 7, 1, size << 1))
            out += value
            out.append(0)
            return
    body = bytearray(1)
    write_varint(body, time_delta)
    write_varint(body, offset_delta)
    for part in (key, value):
        if part is None:
            body.append(1)
        else:
            write_varint(body, len(part))
            body += part
    if not record.headers:
        body.append(0)
        write_varint(out, len(body))
        out += body
        return
    write_varint(body, len(record.headers))
    for name, content in record.headers:
        encoded = name.encode()
        write_varint(body, len(encoded))
        body += encoded
        if content is None:
            body.append(1)
        else:
            write_varint(body, len(content))
            body += content
    write_varint(out, len(body))
    out += body


# -- batches ---------------------------------------------------------------------------------


def assemble(
    body: bytes,
    count: int,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """Return a batch of ``count`` records; ``body`` holds them encoded and compressed."""
    covered = (
        BODY_HEADER.pack(
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + body
    )
    return (
        PREFIX.pack(base_offset, len(covered) + 9, leader_epoch)
        + b"\x02"
        + CRC.pack(crc32c(covered))
        + covered
    )
