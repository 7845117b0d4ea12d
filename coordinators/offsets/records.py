"""Keys and values of ``__consumer_offsets``
(docs/kafka/groups-and-transactions.md#committed-offsets), as Kafka writes them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...protocol.errors import ClientError
from ...protocol.internal_topics import OFFSETS_TOPIC

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


def _read(form: str, data: bytes, at: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, data, at)
    except struct.error:
        raise ClientError(f"a record of {len(data)} bytes ends too early, at byte {at}") from None


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = _read(">h", data, at)
    end = at + 2 + length
    if length < 0 or end > len(data):
        raise ClientError(f"a string of {length} bytes does not fit at byte {at}")
    try:
        return data[at + 2 : end].decode(), end
    except UnicodeDecodeError as error:
        raise ClientError(f"the string at byte {at} is no UTF-8: {error.reason}") from None


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
    (version,) = _read(">h", data, 0)
    if version == _GROUP_KEY_VERSION:
        return None
    if version not in _OFFSET_KEY_VERSIONS:
        raise ClientError(f"key version {version} of {OFFSETS_TOPIC} is unknown")
    group_id, at = _read_string(data, 2)
    topic, at = _read_string(data, at)
    (partition,) = _read(">i", data, at)
    return OffsetKey(group_id, topic, partition)


def decode_value(data: bytes) -> OffsetValue:
    """A committed offset of any value version."""
    (version,) = _read(">h", data, 0)
    if version == 3:
        offset, leader_epoch = _read(">qi", data, 2)
        metadata, at = _read_string(data, 14)
        (timestamp,) = _read(">q", data, at)
        return OffsetValue(offset, leader_epoch, metadata, timestamp)
    if version not in (0, 1, 2):
        raise ClientError(f"value version {version} of {OFFSETS_TOPIC} is unknown")
    (offset,) = _read(">q", data, 2)
    metadata, at = _read_string(data, 10)
    (timestamp,) = _read(">q", data, at)
    return OffsetValue(offset, -1, metadata, timestamp)
