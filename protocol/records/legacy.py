"""Message sets of formats v0 and v1: parsed for up-conversion, built for old consumers.

A message set is a sequence of (offset, size, message) entries; a compressed message wraps a message
set (docs/kafka/log.md#batches). Message sets are not stored, as logs hold batches of format v2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from . import compression as codecs
from .batch import RecordBatch
from .format import (
    CODEC_MASK,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    CorruptBatch,
    MalformedRecords,
    Readable,
    Record,
)
from .record_bytes import body_of, record_contents

MINIMUM_MESSAGE_SIZE = 14
_ENTRY = struct.Struct(">qi")
_START = struct.Struct(">Ibb")
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_LONG_INT = struct.Struct(">qi")
_START_OF_MESSAGE = struct.Struct(">qiI")
_KEYLESS_V0 = struct.Struct(">bbii")
_KEYLESS_V1 = struct.Struct(">bbqii")
"""Magic, attributes, in v1 the timestamp, -1 for no key, and the size of the value in bytes."""
_KEYED_V0 = struct.Struct(">bbi")
_KEYED_V1 = struct.Struct(">bbqi")


class LegacyMessage(NamedTuple):
    """A message, or a wrapper message around compressed messages."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    """Timestamp in milliseconds; -1 in format v0."""
    key: bytes | None
    value: bytes | None
    size: int
    """Size of the entry in bytes, including its offset and size fields."""

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK


def parse_message(records: Readable, position: int) -> LegacyMessage | None:
    """Parse the entry at a position; None if it is truncated.

    Raises ``CorruptBatch`` if the entry is invalid.
    """
    total = len(records)
    if total - position < _ENTRY.size:
        return None
    offset, size = _ENTRY.unpack_from(records, position)
    if size < MINIMUM_MESSAGE_SIZE:
        raise CorruptBatch(f"message size {size} is below the minimum of {MINIMUM_MESSAGE_SIZE}")
    start = position + _ENTRY.size
    end = start + size
    if end > total:
        return None
    checksum, magic, attributes = _START.unpack_from(records, start)
    if magic not in (0, 1):
        raise CorruptBatch(f"magic {magic} of a message is neither 0 nor 1")
    if zlib.crc32(records[start + 4 : end]) != checksum:
        raise CorruptBatch(f"the checksum of the message at offset {offset} is wrong")
    field_start = start + _START.size
    timestamp = NO_TIMESTAMP
    key = value = None
    try:
        if magic == 1:
            timestamp, length = _LONG_INT.unpack_from(records, field_start)
            field_start += 12
        else:
            (length,) = _INT.unpack_from(records, field_start)
            field_start += 4
        if length >= 0:
            key = bytes(records[field_start : field_start + length])
            field_start += length
        (length,) = _INT.unpack_from(records, field_start)
        field_start += 4
        if length >= 0:
            value = bytes(records[field_start : field_start + length])
            field_start += length
    except struct.error:
        field_start = end + 1
    if field_start > end:
        raise CorruptBatch("a message exceeds its size")
    return LegacyMessage(offset, magic, attributes, timestamp, key, value, size + _ENTRY.size)


def unwrap(message: LegacyMessage) -> list[LegacyMessage]:
    """Return the messages in a compressed message, with absolute offsets.

    For an uncompressed message, return ``[message]``.
    """
    inner = list(messages_in(message))
    if not message.compression or message.magic == 0 or not inner:
        return inner
    shift = message.offset - inner[-1].offset
    return [inner_message._replace(offset=inner_message.offset + shift) for inner_message in inner]


def messages_in(message: LegacyMessage) -> Iterator[LegacyMessage]:
    """Yield the messages in a compressed message, with their offsets as written.

    An uncompressed message yields itself. Raises ``MalformedRecords`` for an invalid message set.
    """
    if not message.compression:
        yield message
        return
    payload = inner_message_set(message)
    has_append_time = message.magic != 0 and message.attributes & TIMESTAMP_TYPE_BIT
    position = 0
    while position < len(payload):
        inner = parse_inner_message(payload, position)
        position += inner.size
        yield inner._replace(timestamp=message.timestamp) if has_append_time else inner


def inner_message_set(
    message: LegacyMessage,
    decompressed_bytes_max: int = codecs.DECOMPRESSED_BYTES_MAX,
    messages_max: int | None = None,
) -> bytes:
    """Return the message set in a compressed message.

    Raises ``PayloadTooLarge`` if it would have more than ``decompressed_bytes_max`` bytes or
    ``messages_max`` messages, and ``MalformedRecords`` if it cannot be decompressed.
    """
    codec, packed = message.compression, message.value or b""
    try:
        payload = codecs.decompress(codec, packed, message.magic, decompressed_bytes_max)
    except codecs.PayloadTooLarge:
        raise
    except codecs.CorruptPayload as error:
        raise MalformedRecords(str(error)) from None
    if messages_max is not None and _has_more_messages(payload, messages_max):
        raise codecs.PayloadTooLarge(codec, messages_max, "messages")
    return payload


def parse_inner_message(payload: bytes, position: int) -> LegacyMessage:
    """Parse the message at a position of a decompressed message set.

    Raises ``MalformedRecords`` if the message is invalid or truncated.
    """
    try:
        message = parse_message(payload, position)
    except CorruptBatch as error:
        raise MalformedRecords(str(error)) from None
    if message is None:
        raise MalformedRecords("a compressed message set is truncated")
    return message


def _has_more_messages(payload: bytes, messages_max: int) -> bool:
    """Return True if a message set has more than ``messages_max`` entries.

    Only sizes are read, as each parsed message takes hundreds of bytes of memory.
    """
    position = count = 0
    last = len(payload) - _ENTRY.size
    while position <= last and count <= messages_max:
        (size,) = _INT.unpack_from(payload, position + 8)
        if size < 0:
            return False
        position += _ENTRY.size + size
        count += 1
    return count > messages_max


def build_message(
    offset: int,
    magic: int,
    key: bytes | None,
    value: bytes | None,
    timestamp: int = NO_TIMESTAMP,
    attributes: int = 0,
) -> bytes:
    """Encode one entry of a message set."""
    body = bytearray((magic, attributes))
    if magic == 1:
        body += _LONG.pack(timestamp)
    for part in (key, value):
        body += _INT.pack(-1) if part is None else _INT.pack(len(part)) + part
    return _ENTRY.pack(offset, len(body) + 4) + zlib.crc32(body).to_bytes(4, "big") + body


class LegacyMessageSet(RecordBatch):
    """A message set of an old format, used in place of a batch in responses to old consumers.

    Only its bytes and offsets are meaningful. ``last_offset`` is that of the converted batches.
    """

    __slots__ = ()

    @property
    def partition_leader_epoch(self) -> int:
        return -1  # the old formats have no leader epoch

    def records(self) -> list[Record]:
        """Decode the messages, without a truncated one at the end."""
        records = []
        position = 0
        while (message := parse_message(self.data, position)) is not None:
            records += [Record(m.offset, m.timestamp, m.key, m.value) for m in unwrap(message)]
            position += message.size
        return records


def down_converted_batch(batch: RecordBatch, magic: int, from_offset: int) -> tuple[bytes, int]:
    """Return a batch in an old format, and its number of bytes before compression.

    As in Kafka's ``RecordsUtil.downConvert``, uncompressed messages begin exactly at
    ``from_offset``, and a compressed batch remains whole. Control batches and headers do not exist
    in the old formats and are omitted. Raises ``ValueError`` for zstd, which no consumer of old
    formats can decompress, and ``MalformedRecords`` for records that cannot be decoded.
    """
    if batch.is_control:
        return b"", 0
    codec = batch.compression
    if codec == codecs.ZSTD:
        raise ValueError("zstd cannot be down-converted")
    if not batch.record_count:
        return b"", 0
    kind = TIMESTAMP_TYPE_BIT if magic == 1 and batch.timestamp_type else 0
    if not codec:
        plain = _messages_of(batch, magic, kind, 0, from_offset)[0]
        return bytes(plain), len(plain)
    inner, last_offset = _messages_of(batch, magic, kind, -1 if magic else 0)
    packed = codecs.compress(codec, inner)
    wrapper = build_message(last_offset, magic, None, packed, batch.max_timestamp, kind | codec)
    return wrapper, len(inner)


def _messages_of(
    batch: RecordBatch, magic: int, kind: int, base: int, from_offset: int = 0
) -> tuple[bytearray, int]:
    """Return a batch's records from an offset on as messages, and the offset of the last one.

    Offsets are written relative to ``base`` or, if it is -1, to the first offset. No ``Record`` is
    created, as a fetch may return hundreds of thousands of records.
    """
    body, position = body_of(batch)
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    append_time = batch.max_timestamp if batch.timestamp_type else None
    checksum, pack_start = zlib.crc32, _START_OF_MESSAGE.pack
    v0, v1 = _KEYLESS_V0.pack, _KEYLESS_V1.pack
    out = bytearray()
    offset = from_offset
    for time, delta, key, value in record_contents(body, position, batch.record_count):
        offset = base_offset + delta
        if offset < from_offset:
            continue
        if base < 0:
            base = offset
        timestamp = base_timestamp + time if append_time is None else append_time
        size = -1 if value is None else len(value)
        if key is None:
            message = v1(1, kind, timestamp, -1, size) if magic else v0(0, kind, -1, size)
        else:
            message = _keyed_message_start(magic, kind, timestamp, key, size)
        if value:
            message += value
        out += pack_start(offset - base, len(message) + 4, checksum(message))
        out += message
    return out, offset


def _keyed_message_start(magic: int, kind: int, timestamp: int, key: bytes, size: int) -> bytes:
    """Return a message with a key, up to its value, which has ``size`` bytes (-1 for null)."""
    if magic:
        start = _KEYED_V1.pack(1, kind, timestamp, len(key))
    else:
        start = _KEYED_V0.pack(0, kind, len(key))
    return start + key + _INT.pack(size)
