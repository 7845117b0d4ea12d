"""Fast encoders for batches of one record and of small records, the most frequent ones in a
simulation."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from .batch import build_batch
from .checksum import crc32c
from .format import (
    BODY_HEADER,
    LARGEST_SMALL_VALUE,
    MAGIC,
    NO_SEQUENCE,
    Record,
    head_of_only_record,
)

_START = struct.Struct(">qiiBI")
"""baseOffset, length, leaderEpoch, magic, crc: the fields not covered by the checksum."""
_DELTA_END = 8192
"""Timestamp and offset deltas below this are encoded in one or two bytes."""
_pack_6 = struct.Struct("6B").pack
_pack_7 = struct.Struct("7B").pack
_pack_8 = struct.Struct("8B").pack
_pack_body_header = BODY_HEADER.pack
_pack_start = _START.pack


def build_batch_of_one(
    value: bytes,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """Encode a batch of one uncompressed record without key and headers, as ``build_batch`` would.

    ``producer_id``, ``producer_epoch`` and ``base_sequence`` are -1 without idempotence.
    """
    if timestamp < 0:
        record = Record(0, timestamp, None, value, ())
        return build_batch([record], 0, -1, producer_id, producer_epoch, base_sequence)
    head = _pack_body_header(
        0, 0, timestamp, timestamp, producer_id, producer_epoch, base_sequence, 1
    )
    covered = head + head_of_only_record(len(value)) + value + b"\x00"
    return _pack_start(0, len(covered) + 9, -1, MAGIC, crc32c(covered)) + covered


def build_batch_of_small(
    records: Sequence[tuple[bytes | None, bytes | None, int, Any]],
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
) -> bytes | None:
    """Encode a batch of small records, uncompressed and without headers, as ``build_batch`` would.

    ``records`` are (key, value, timestamp, anything) tuples. They are small if they have no key and
    a short value, and if their timestamps ascend and lie within seconds of the first. Return None
    if they are not small.
    """
    base_timestamp = records[0][2]
    timestamp = previous = base_timestamp
    if base_timestamp < 0 or len(records) > _DELTA_END:
        return None
    parts = []
    offset = 0  # zig-zag encoded, as is ``time`` below: twice the delta
    for key, value, timestamp, _ in records:
        if key is not None or value is None or timestamp < previous:
            return None
        size = len(value)
        delta = timestamp - base_timestamp
        if size > LARGEST_SMALL_VALUE or delta >= _DELTA_END:
            return None
        previous = timestamp
        time = delta << 1
        if offset < 128:
            if time < 128:
                head = _pack_6(size + 6 << 1, 0, time, offset, 1, size << 1)
            else:
                head = _pack_7(size + 7 << 1, 0, time & 127 | 128, time >> 7, offset, 1, size << 1)
        elif time < 128:
            head = _pack_7(size + 7 << 1, 0, time, offset & 127 | 128, offset >> 7, 1, size << 1)
        else:
            head = _pack_8(
                size + 8 << 1, 0, time & 127 | 128, time >> 7, offset & 127 | 128, offset >> 7,
                1, size << 1,
            )  # fmt: skip
        parts.append(head + value)
        offset += 2
    count = len(parts)
    parts.append(b"")  # so that join adds the header count, a zero byte, to the last record too
    covered = BODY_HEADER.pack(
        0, count - 1, base_timestamp, timestamp, producer_id, producer_epoch, base_sequence, count
    ) + b"\x00".join(parts)
    return _pack_start(0, len(covered) + 9, -1, MAGIC, crc32c(covered)) + covered
