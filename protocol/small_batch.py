"""Batches of one small record: most of what a simulation sends, so made in few steps."""

from __future__ import annotations

import struct

from crc32c import crc32c

from .record_batch import build_batch
from .record_format import LARGEST_SMALL_VALUE, MAGIC, NO_SEQUENCE, Record

_START = struct.Struct(">qiiBI")
"""baseOffset, length, leaderEpoch, magic, crc: all before what the checksum covers."""
_ONE_RECORD = struct.Struct(">hiqqqhii6B")
"""What the checksum covers of a batch of one small record without key, up to its value."""


def build_batch_of_one(
    value: bytes,
    timestamp: int,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """``build_batch`` of one uncompressed record without key and headers, in fewer steps.

    ``producer_id``, ``producer_epoch`` and ``base_sequence`` are -1 without idempotence.
    """
    size = len(value)
    if size > LARGEST_SMALL_VALUE or timestamp < 0:
        record = Record(0, timestamp, None, value, ())
        return build_batch([record], 0, -1, producer_id, producer_epoch, base_sequence)
    covered = (
        _ONE_RECORD.pack(
            0, 0, timestamp, timestamp, producer_id, producer_epoch, base_sequence, 1,
            size + 6 << 1, 0, 0, 0, 1, size << 1,
        )
        + value
        + b"\x00"
    )  # fmt: skip
    return _START.pack(0, len(covered) + 9, -1, MAGIC, crc32c(covered)) + covered
