"""Keys and values of ``__consumer_offsets``
(docs/kafka/groups-and-transactions.md#committed-offsets), as Kafka writes them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ...protocol.errors import ClientError
from ...protocol.internal_topics import OFFSETS_TOPIC
from ..record_fields import Cursor, sized_bytes, string

_OFFSET_KEY_VERSIONS = (0, 1)
_GROUP_KEY_VERSION = 2
_GROUP_VALUE_VERSION_MAX = 3


class OffsetKey(NamedTuple):
    """Key of a committed offset."""

    group_id: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """Key of a group's own record, with its members and generation."""

    group_id: str


class OffsetValue(NamedTuple):
    """A committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """Time of expiry; -1 if expiry depends on the state of the group (KIP-211)."""


class MemberValue(NamedTuple):
    """A member of a stored group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    """A generation of a group."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberValue, ...]


# -- encoding -----------------------------------------------------------------------------------


def encode_key(key: OffsetKey) -> bytes:
    """Encode the key of an offset in version 1."""
    return (
        struct.pack(">h", 1)
        + string(key.group_id)
        + string(key.topic)
        + struct.pack(">i", key.partition)
    )


def encode_group_key(key: GroupKey) -> bytes:
    """Encode the key of a group in version 2."""
    return struct.pack(">h", _GROUP_KEY_VERSION) + string(key.group_id)


def encode_value(value: OffsetValue, version: int = 3) -> bytes:
    """Encode an offset in version 3; in version 1 if requested or if it has its own expiry."""
    if version == 1 or value.expire_timestamp_ms >= 0:
        return (
            struct.pack(">hq", 1, value.offset)
            + string(value.metadata)
            + struct.pack(">qq", value.commit_timestamp_ms, value.expire_timestamp_ms)
        )
    return (
        struct.pack(">hqi", 3, value.offset, value.leader_epoch)
        + string(value.metadata)
        + struct.pack(">q", value.commit_timestamp_ms)
    )


def encode_group_value(value: GroupValue, version: int = 3) -> bytes:
    """Encode a group in version 3; version 2 lacks instance ids, and version 1 also the time of
    the state."""
    parts = [
        struct.pack(">h", version),
        string(value.protocol_type),
        struct.pack(">i", value.generation),
        string(value.protocol),
        string(value.leader),
    ]
    if version >= 2:
        parts.append(struct.pack(">q", value.state_timestamp_ms))
    parts.append(struct.pack(">i", len(value.members)))
    for member in value.members:
        parts.append(string(member.member_id))
        if version >= 3:
            parts.append(string(member.group_instance_id))
        parts += (string(member.client_id), string(member.client_host))
        if version >= 1:
            parts.append(struct.pack(">i", member.rebalance_timeout_ms))
        parts.append(struct.pack(">i", member.session_timeout_ms))
        parts += (sized_bytes(member.subscription), sized_bytes(member.assignment))
    return b"".join(parts)


# -- decoding -----------------------------------------------------------------------------------


def decode_key(data: bytes) -> OffsetKey | GroupKey:
    """Decode the key of an offset or of a group.

    Raises ``ClientError`` for any other key.
    """
    cursor = Cursor(data)
    version = cursor.number(">h")
    if version == _GROUP_KEY_VERSION:
        return GroupKey(cursor.string())
    if version not in _OFFSET_KEY_VERSIONS:
        raise ClientError(f"unknown key version {version} in {OFFSETS_TOPIC}")
    return OffsetKey(cursor.string(), cursor.string(), cursor.number(">i"))


def decode_value(data: bytes) -> OffsetValue:
    """Decode a committed offset of any version."""
    cursor = Cursor(data)
    version = cursor.number(">h")
    if version not in (0, 1, 2, 3):
        raise ClientError(f"unknown value version {version} of an offset in {OFFSETS_TOPIC}")
    offset = cursor.number(">q")
    leader_epoch = cursor.number(">i") if version == 3 else -1
    metadata = cursor.string()
    timestamp_ms = cursor.number(">q")
    expire_timestamp_ms = cursor.number(">q") if version == 1 else -1
    return OffsetValue(offset, leader_epoch, metadata, timestamp_ms, expire_timestamp_ms)


def decode_group_value(data: bytes) -> GroupValue:
    """Decode a generation of a group, of any version."""
    cursor = Cursor(data)
    version = cursor.number(">h")
    if not 0 <= version <= _GROUP_VALUE_VERSION_MAX:
        raise ClientError(f"unknown value version {version} of a group in {OFFSETS_TOPIC}")
    protocol_type = cursor.string()
    generation = cursor.number(">i")
    protocol = cursor.nullable_string()
    leader = cursor.nullable_string()
    state_timestamp_ms = cursor.number(">q") if version >= 2 else -1
    members = []
    for _ in range(cursor.number(">i")):
        member_id = cursor.string()
        instance_id = cursor.nullable_string() if version >= 3 else None
        client_id, client_host = cursor.string(), cursor.string()
        rebalance_timeout_ms = cursor.number(">i") if version >= 1 else -1
        session_timeout_ms = cursor.number(">i")
        members.append(
            MemberValue(
                member_id,
                instance_id,
                client_id,
                client_host,
                session_timeout_ms if version == 0 else rebalance_timeout_ms,
                session_timeout_ms,
                cursor.sized_bytes(),
                cursor.sized_bytes(),
            )
        )
    return GroupValue(
        protocol_type, generation, protocol, leader, state_timestamp_ms, tuple(members)
    )


def subscribed_topics(metadata: bytes) -> tuple[str, ...]:
    """Return the topics of a consumer's subscription, of any version of the consumer protocol.

    Raises ``ClientError`` if the bytes are not a subscription.
    """
    cursor = Cursor(metadata)
    version = cursor.number(">h")
    if version < 0:
        raise ClientError(f"subscription has the negative version {version}")
    return tuple([cursor.string() for _ in range(cursor.number(">i"))])
