"""Message sets of the formats v0 and v1: read for up-conversion, written for old consumers.

A set is a row of entries (offset, size, message); a compressed message wraps a set of its own
(docs/kafka/log.md#batches). Nothing of this is stored: logs hold batches of format v2.
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
from .record_bytes import body_of, contents

MINIMUM_MESSAGE_SIZE = 14
_ENTRY = struct.Struct(">qi")
_START = struct.Struct(">Ibb")
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_LONG_INT = struct.Struct(">qi")
_START_OF_MESSAGE = struct.Struct(">qiI")
_KEYLESS_V0 = struct.Struct(">bbii")
_KEYLESS_V1 = struct.Struct(">bbqii")
"""Magic, attributes, in v1 the timestamp, -1 for no key, and the size of the value."""
_KEYED_V0 = struct.Struct(">bbi")
_KEYED_V1 = struct.Struct(">bbqi")


class LegacyMessage(NamedTuple):
    """A message, or a wrapper around compressed messages."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    """-1 in format v0."""
    key: bytes | None
    value: bytes | None
    size: int
    """Bytes of the entry, offset and size fields included."""

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK


def parse_message(records: Readable, position: int) -> LegacyMessage | None:
    """The entry at a position; None if it is cut off. Raises ``CorruptBatch``."""
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
        raise CorruptBatch(f"magic {magic} is not that of a v0 or v1 message")
    if zlib.crc32(records[start + 4 : end]) != checksum:
        raise CorruptBatch(f"the checksum of the message at offset {offset} is wrong")
    at = start + _START.size
    timestamp = NO_TIMESTAMP
    key = value = None
    try:
        if magic == 1:
            timestamp, length = _LONG_INT.unpack_from(records, at)
            at += 12
        else:
            (length,) = _INT.unpack_from(records, at)
            at += 4
        if length >= 0:
            key = bytes(records[at : at + length])
            at += length
        (length,) = _INT.unpack_from(records, at)
        at += 4
        if length >= 0:
            value = bytes(records[at : at + length])
            at += length
    except struct.error:
        at = end + 1
    if at > end:
        raise CorruptBatch("a message exceeds its size")
    return LegacyMessage(offset, magic, attributes, timestamp, key, value, size + _ENTRY.size)


def unwrap(message: LegacyMessage) -> list[LegacyMessage]:
    """The messages inside a compressed one, with absolute offsets; ``[message]`` if it is none."""
    inner = list(messages_in(message))
    if not message.compression or message.magic == 0 or not inner:
        return inner
    shift = message.offset - inner[-1].offset
    return [one._replace(offset=one.offset + shift) for one in inner]


def messages_in(message: LegacyMessage) -> Iterator[LegacyMessage]:
    """The messages inside a compressed one, one by one, with the offsets written in them.

    What is not compressed is inside itself. Raises ``MalformedRecords`` for what cannot be read.
    """
    if not message.compression:
        yield message
        return
    payload = payload_of(message)
    has_append_time = message.magic != 0 and message.attributes & TIMESTAMP_TYPE_BIT
    position = 0
    while position < len(payload):
        found = parse_inside(payload, position)
        position += found.size
        yield found._replace(timestamp=message.timestamp) if has_append_time else found


def payload_of(
    message: LegacyMessage,
    decompressed_bytes_max: int = codecs.DECOMPRESSED_BYTES_MAX,
    messages_max: int | None = None,
) -> bytes:
    """The message set inside a compressed message.

    Raises ``PayloadTooLarge`` when it would have more than ``decompressed_bytes_max`` bytes or
    ``messages_max`` messages, ``MalformedRecords`` when it cannot be decompressed.
    """
    codec, packed = message.compression, message.value or b""
    try:
        payload = codecs.decompress(codec, packed, message.magic, decompressed_bytes_max)
    except codecs.PayloadTooLarge:
        raise
    except codecs.CorruptPayload as error:
        raise MalformedRecords(str(error)) from None
    if messages_max is not None and _holds_more(payload, messages_max):
        raise codecs.PayloadTooLarge(codec, messages_max, "messages")
    return payload


def parse_inside(payload: bytes, position: int) -> LegacyMessage:
    """The message at a position of what another wraps; raises ``MalformedRecords``."""
    try:
        found = parse_message(payload, position)
    except CorruptBatch as error:
        raise MalformedRecords(str(error)) from None
    if found is None:
        raise MalformedRecords("a compressed message set is cut off")
    return found


def _holds_more(payload: bytes, messages_max: int) -> bool:
    """Return whether a message set has more entries than that, by their sizes alone: each message
    that is read takes hundreds of bytes."""
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


class OldMessages(RecordBatch):
    """A message set of an old format in the place of a batch, in answers to old consumers.

    Only its bytes and offsets have a meaning; ``last_offset`` is that of the batches converted.
    """

    __slots__ = ()

    @property
    def partition_leader_epoch(self) -> int:
        return -1  # these formats have none

    def records(self) -> list[Record]:
        """Decode the whole messages; one cut off at the end is left out."""
        found = []
        position = 0
        while (message := parse_message(self.data, position)) is not None:
            found += [Record(m.offset, m.timestamp, m.key, m.value) for m in unwrap(message)]
            position += message.size
        return found


def down_converted_batch(batch: RecordBatch, magic: int, from_offset: int) -> tuple[bytes, int]:
    """The batch in an old format, and how many bytes it was before it was compressed.

    As Kafka's ``RecordsUtil.downConvert``: uncompressed messages begin exactly at ``from_offset``,
    a compressed batch stays whole. Control batches and headers do not exist in these formats and
    are left out. Raises ``ValueError`` for zstd, which no consumer of them can read,
    ``MalformedRecords`` for what cannot be read.
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
    """The records of a batch as messages, from an offset on, and the offset of the last.

    Their offsets count from ``base``; from the first one's if that is -1. Records are not decoded:
    a fetch brings hundreds of thousands of them.
    """
    body, position = body_of(batch)
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    append_time = batch.max_timestamp if batch.timestamp_type else None
    checksum, pack_start = zlib.crc32, _START_OF_MESSAGE.pack
    v0, v1 = _KEYLESS_V0.pack, _KEYLESS_V1.pack
    out = bytearray()
    offset = from_offset
    for time, delta, key, value in contents(body, position, batch.record_count):
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
            message = _with_key(magic, kind, timestamp, key, size)
        if value:
            message += value
        out += pack_start(offset - base, len(message) + 4, checksum(message))
        out += message
    return out, offset


def _with_key(magic: int, kind: int, timestamp: int, key: bytes, size: int) -> bytes:
    """A message up to its value, of which ``size`` tells."""
    if magic:
        start = _KEYED_V1.pack(1, kind, timestamp, len(key))
    else:
        start = _KEYED_V0.pack(0, kind, len(key))
    return start + key + _INT.pack(size)
