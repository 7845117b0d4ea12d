"""Bytes that consumers of the classic protocol send each other and their coordinator passes on
(Kafka: ``ConsumerProtocol``). Where both protocols meet, it reads and writes them itself.

Raises ``ClientError`` for what is not of that form.
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
    """Subscription of a consumer, and the partitions it owns."""

    topics: tuple[str, ...]
    owned: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """(topic, partitions); empty in version 0."""
    rack: str | None = None


def version_of(data: bytes) -> int:
    version = Cursor(data).number(">h")
    if version < 0:
        raise ClientError(f"version {version} of the consumer protocol")
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
    """A subscription of any version."""
    version = version_of(data)
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
    """(topic, partitions) pairs; none in no bytes at all."""
    if not data:
        return ()
    version_of(data)
    cursor = Cursor(data)
    cursor.number(">h")
    return _read_partitions(cursor)


def encode_assignment(partitions: Iterable[tuple[str, tuple[int, ...]]], version: int) -> bytes:
    """An assignment in the version that the consumer speaks."""
    return struct.pack(">h", version) + _written_partitions(partitions) + _NO_USER_DATA


def encode_subscription(
    topics: Sequence[str], owned: Iterable[tuple[str, tuple[int, ...]]], version: int
) -> bytes:
    """A subscription of version 0 or 1 without user data."""
    names = b"".join(map(string, topics))
    written = struct.pack(">hi", version, len(topics)) + names + _NO_USER_DATA
    return written + _written_partitions(owned) if version >= 1 else written


def _written_partitions(partitions: Iterable[tuple[str, tuple[int, ...]]]) -> bytes:
    pairs = list(partitions)
    written = [struct.pack(">i", len(pairs))]
    for topic, numbers in pairs:
        written.append(string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(written)
