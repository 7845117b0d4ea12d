"""Keys and values of ``__consumer_offsets`` (data_plane 14.6), as Kafka writes them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ..protocol.errors import ClientError

OFFSETS_TOPIC = "__consumer_offsets"
_OFFSET_KEY_VERSIONS = (0, 1)
_GROUP_KEY_VERSION = 2


class OffsetKey(NamedTuple):
    """Whose offset of which partition."""

    group_id: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise ClientError(f"a string of {length} bytes does not fit at byte {at}")
    return data[at + 2 : end].decode(), end


def encode_key(key: OffsetKey) -> bytes:
    """Key version 1."""
    return (
        struct.pack(">h", 1)
        + _string(key.group_id)
        + _string(key.topic)
        + struct.pack(">i", key.partition)
    )


def encode_value(value: OffsetValue) -> bytes:
    """Value version 3."""
    return (
        struct.pack(">hqi", 3, value.offset, value.leader_epoch)
        + _string(value.metadata)
        + struct.pack(">q", value.commit_timestamp_ms)
    )


def decode_key(data: bytes) -> OffsetKey | None:
    """The key of an offset record; None for a group's own record.

    Raises ``ClientError`` for anything else.
    """
    (version,) = struct.unpack_from(">h", data)
    if version == _GROUP_KEY_VERSION:
        return None
    if version not in _OFFSET_KEY_VERSIONS:
        raise ClientError(f"key version {version} of {OFFSETS_TOPIC} is unknown")
    group_id, at = _read_string(data, 2)
    topic, at = _read_string(data, at)
    (partition,) = struct.unpack_from(">i", data, at)
    return OffsetKey(group_id, topic, partition)


def decode_value(data: bytes) -> OffsetValue:
    """A committed offset of any value version."""
    (version,) = struct.unpack_from(">h", data)
    if version == 3:
        offset, leader_epoch = struct.unpack_from(">qi", data, 2)
        metadata, at = _read_string(data, 14)
        (timestamp,) = struct.unpack_from(">q", data, at)
        return OffsetValue(offset, leader_epoch, metadata, timestamp)
    if version not in (0, 1, 2):
        raise ClientError(f"value version {version} of {OFFSETS_TOPIC} is unknown")
    (offset,) = struct.unpack_from(">q", data, 2)
    metadata, at = _read_string(data, 10)
    (timestamp,) = struct.unpack_from(">q", data, at)
    return OffsetValue(offset, -1, metadata, timestamp)
