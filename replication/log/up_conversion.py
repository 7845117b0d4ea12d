"""Conversion of messages of the formats v0 and v1 to records of format v2.

Kafka's ``LogValidator``, for producers that send an older format than the log's
(docs/kafka/log.md#validation). Records are built directly from the bytes of the messages, as a few
kilobytes of gzip can hold 150,000 messages.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

from ...protocol.records.format import (
    CODEC_MASK,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    Record,
    encoded_varint,
    write_record,
)
from ...protocol.records.legacy import LegacyMessage, inner_message_set, parse_inner_message
from ...protocol.records.record_bytes import encoded_delta
from .results import RecordErrors
from .settings import LogSettings

_SPECIAL = CODEC_MASK | TIMESTAMP_TYPE_BIT
_unpack_v0 = struct.Struct(">iIbbi").unpack_from
_unpack_v1 = struct.Struct(">iIbbqi").unpack_from
"""Unpacks the size, checksum, magic, attributes, timestamp (v1 only) and key size of a message."""
_unpack_int = struct.Struct(">i").unpack_from
_SMALL = tuple(bytes((number << 1,)) for number in range(64))
"""Varints of one byte, by number."""

_Check = Callable[[int, int, int, bool], None]
"""Checks a message, given its index, attributes, timestamp, and whether it has a key."""


class UpConverted(NamedTuple):
    """The records of a batch before compression."""

    body: bytearray
    record_count: int
    base_timestamp: int
    max_timestamp: int


def up_converted(messages: list[LegacyMessage], settings: LogSettings, now_ms: int) -> UpConverted:
    """Convert plain messages, or the messages in a single compressed one, to records.

    Raises ``KafkaError`` with the refused records, ``PayloadTooLarge`` if a compressed message
    holds more than allowed, ``MalformedRecords`` if messages cannot be read.
    """
    errors = RecordErrors(settings, now_ms)
    by_kind = {kind: errors.checker(kind) for kind in (CREATE_TIME, LOG_APPEND_TIME)}

    def check(index: int, attributes: int, timestamp: int, has_key: bool) -> None:
        if attributes & CODEC_MASK:
            errors.add(index, "a compressed message inside a compressed one")
        else:
            kind = LOG_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else CREATE_TIME
            by_kind[kind](index, timestamp, has_key)

    if messages[0].compression:
        found = _convert_compressed(messages[0], settings, check)
    else:
        found = _convert_uncompressed(messages, check)
    errors.raise_if_any()
    return found


def _convert_uncompressed(messages: list[LegacyMessage], check: _Check) -> UpConverted:
    body = bytearray()
    base_timestamp, largest = messages[0].timestamp, NO_TIMESTAMP
    for index, (_, _, attributes, timestamp, key, value, _) in enumerate(messages):
        check(index, attributes, timestamp, key is not None)
        largest = max(largest, timestamp)
        encoded_delta(timestamp - base_timestamp)  # raises if the delta is too large
        record = Record(index, timestamp, key, value)
        write_record(body, record, index, timestamp - base_timestamp)
    return UpConverted(body, len(messages), base_timestamp, largest)


def _convert_compressed(
    message: LegacyMessage, settings: LogSettings, check: _Check
) -> UpConverted:
    """Convert the messages in a compressed one, in one loop that takes 2 microseconds for each."""
    payload = inner_message_set(message, settings.decompressed_bytes_max, settings.records_max)
    has_append_time = message.magic != 0 and message.attributes & TIMESTAMP_TYPE_BIT
    checks_all = settings.checks_records
    unpack_v0, unpack_v1, unpack_int = _unpack_v0, _unpack_v1, _unpack_int
    checksum_of, small, varint = zlib.crc32, _SMALL, encoded_varint
    body = bytearray()
    base_timestamp = largest = NO_TIMESTAMP
    last_timestamp = None
    start_of_record = b""
    index = position = 0
    total = len(payload)
    while position < total:
        try:
            if payload[position + 16] == 1:
                size, checksum, _, attributes, timestamp, part = unpack_v1(payload, position + 8)
                at = position + 30
            else:
                size, checksum, magic, attributes, part = unpack_v0(payload, position + 8)
                timestamp, at = NO_TIMESTAMP, position + (22 if magic == 0 else total)
            key = value = None
            if part >= 0:
                key = payload[at : at + part]
                at += part
            (part,) = unpack_int(payload, at)
            at += 4
            if part >= 0:
                value = payload[at : at + part]
                at += part
            end = position + 12 + size
            if at > end or end > total or checksum_of(payload[position + 16 : end]) != checksum:
                raise IndexError
            position = end
        except (IndexError, struct.error):
            found = parse_inner_message(
                payload, position
            )  # raises an error that says what is wrong
            attributes, timestamp, key, value = found[2:6]
            position += found.size
        if has_append_time:
            timestamp = message.timestamp
        if checks_all or attributes & _SPECIAL:
            check(index, attributes, timestamp, key is not None)
        if timestamp != last_timestamp:
            if last_timestamp is None:
                base_timestamp = timestamp
            last_timestamp = timestamp
            largest = max(largest, timestamp)
            start_of_record = b"\0" + encoded_delta(timestamp - base_timestamp)
        if index < 64:
            record = start_of_record + small[index]
        elif index < 8192:
            record = start_of_record + bytes((index << 1 & 127 | 128, index >> 6))
        else:
            record = start_of_record + varint(index)
        if key is None:
            record += b"\1"
        else:
            size = len(key)
            record += (small[size] if size < 64 else varint(size)) + key
        if value:
            size = len(value)
            record += (small[size] if size < 64 else varint(size)) + value + b"\0"
        else:
            record += b"\1\0" if value is None else b"\0\0"
        size = len(record)
        body += small[size] if size < 64 else varint(size)
        body += record
        index += 1
    return UpConverted(body, index, base_timestamp, largest)
