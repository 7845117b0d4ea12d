"""Encoding of the subscriptions and assignments that classic consumers exchange (Kafka:
``ConsumerProtocol``). A classic coordinator only passes these bytes on; in a group with members of
both protocols the coordinator decodes and encodes them.

Malformed bytes raise ``ClientError``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...protocol.errors import ClientError
from ..record_fields import Cursor, string

_NEWEST = 3
_NO_USER_DATA = b"\xff\xff\xff\xff"


class EmbeddedSubscription(NamedTuple):
    """A subscription of a consumer, and the partitions that it owns."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Owned partitions as (topic, partitions); empty in version 0."""
    rack: str | None = None


def protocol_version(data: bytes) -> int:
    version = Cursor(data).number(">h")
    if version < 0:
        raise ClientError(f"the consumer protocol has no version {version}")
    return min(version, _NEWEST)


def _skip_user_data(cursor: Cursor) -> None:
    size = cursor.number(">i")
    cursor.slice(max(size, 0), "user data")


def _read_partitions(cursor: Cursor) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(
        [
            (cursor.string(), tuple([cursor.number(">i") for _ in range(cursor.number(">i"))]))
            for _ in range(cursor.number(">i"))
        ]
    )


def decode_subscription(data: bytes) -> EmbeddedSubscription:
    """Decode a subscription of any version."""
    version = protocol_version(data)
    cursor = Cursor(data)
    cursor.number(">h")
    topics = tuple([cursor.string() for _ in range(cursor.number(">i"))])
    _skip_user_data(cursor)
    owned = _read_partitions(cursor) if version >= 1 else ()
    if version >= 2:
        cursor.number(">i")  # the generation
    rack = cursor.nullable_string() if version >= 3 else None
    return EmbeddedSubscription(topics, owned, rack)


def decode_assignment(data: bytes) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Decode an assignment into (topic, partitions) pairs; empty bytes have none."""
    if not data:
        return ()
    protocol_version(data)
    cursor = Cursor(data)
    cursor.number(">h")
    return _read_partitions(cursor)


def encode_assignment(partitions: Iterable[tuple[str, tuple[int, ...]]], version: int) -> bytes:
    """Encode an assignment in the version that the consumer uses."""
    return struct.pack(">h", version) + _written_partitions(partitions) + _NO_USER_DATA


def encode_subscription(
    topics: Sequence[str], owned: Iterable[tuple[str, tuple[int, ...]]], version: int
) -> bytes:
    """Encode a subscription in version 0 or 1, without user data."""
    names = b"".join(map(string, topics))
    written = struct.pack(">hi", version, len(topics)) + names + _NO_USER_DATA
    return written + _written_partitions(owned) if version >= 1 else written


def _written_partitions(partitions: Iterable[tuple[str, tuple[int, ...]]]) -> bytes:
    pairs = list(partitions)
    written = [struct.pack(">i", len(pairs))]
    for topic, numbers in pairs:
        written.append(string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(written)
