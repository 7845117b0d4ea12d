"""Records of consumer-protocol groups in ``__consumer_offsets``, as Kafka writes them: keys in
versions 3 to 8, values in version 0 with the compact encoding."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ...protocol.errors import ClientError
from ...protocol.groups import TopicIdPartitions
from ...protocol.values import uuid_bytes, uuid_text
from ..record_fields import Cursor
from .member import ClassicMembership, ConsumerMember, MemberState


class RecordKind(IntEnum):
    """Kinds of records; the numbers are the versions of their keys."""

    GROUP_EPOCH = 3
    TOPICS = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8


_MEMBER_RECORDS = (RecordKind.MEMBER, RecordKind.TARGET, RecordKind.CURRENT)


class SubscribedTopic(NamedTuple):
    """A subscribed topic, as of the target assignment."""

    topic_id: str
    topic: str
    partition_count: int
    racks: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Racks of the replicas as (partition, racks), for partitions with known racks."""


class CurrentAssignment(NamedTuple):
    """The epochs and partitions of a member."""

    member_epoch: int
    previous_epoch: int
    state: MemberState
    assigned: TopicIdPartitions
    pending_revocation: TopicIdPartitions


class GroupRecord(NamedTuple):
    """A record; a value of None is a tombstone."""

    kind: RecordKind
    group_id: str
    member_id: str = ""
    value: Any = None
    """An epoch, ``SubscribedTopic`` values, a ``ConsumerMember`` (only its metadata is stored),
    partitions, or a ``CurrentAssignment``."""


def group_epoch(group_id: str, epoch: int) -> GroupRecord:
    return GroupRecord(RecordKind.GROUP_EPOCH, group_id, value=epoch)


def subscribed_topics(group_id: str, topics: tuple[SubscribedTopic, ...]) -> GroupRecord:
    return GroupRecord(RecordKind.TOPICS, group_id, value=topics)


def member_metadata(group_id: str, member: ConsumerMember) -> GroupRecord:
    return GroupRecord(RecordKind.MEMBER, group_id, member.member_id, member)


def target_epoch(group_id: str, epoch: int) -> GroupRecord:
    return GroupRecord(RecordKind.TARGET_EPOCH, group_id, value=epoch)


def target(group_id: str, member_id: str, partitions: TopicIdPartitions) -> GroupRecord:
    return GroupRecord(RecordKind.TARGET, group_id, member_id, partitions)


def current(group_id: str, member: ConsumerMember) -> GroupRecord:
    value = CurrentAssignment(
        member.member_epoch,
        member.previous_epoch,
        member.state,
        member.assigned,
        member.pending_revocation,
    )
    return GroupRecord(RecordKind.CURRENT, group_id, member.member_id, value)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the tombstones for a member."""
    return [
        GroupRecord(kind, group_id, member_id)
        for kind in (RecordKind.CURRENT, RecordKind.TARGET, RecordKind.MEMBER)
    ]


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> list[GroupRecord]:
    """Return the tombstones for a group and its members."""
    records = [GroupRecord(RecordKind.CURRENT, group_id, m) for m in member_ids]
    records += [GroupRecord(RecordKind.TARGET, group_id, m) for m in member_ids]
    records.append(GroupRecord(RecordKind.TARGET_EPOCH, group_id))
    records += [GroupRecord(RecordKind.MEMBER, group_id, m) for m in member_ids]
    records.append(GroupRecord(RecordKind.TOPICS, group_id))
    records.append(GroupRecord(RecordKind.GROUP_EPOCH, group_id))
    return records


# -- encoding -----------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return _varint(len(data) + 1) + data


def _partitions(partitions: TopicIdPartitions) -> bytes:
    parts = [_varint(len(partitions) + 1)]
    for topic_id, numbers in partitions.items():
        parts.append(uuid_bytes(topic_id))
        parts.append(_varint(len(numbers) + 1) + struct.pack(f">{len(numbers)}i", *numbers))
        parts.append(b"\0")
    return b"".join(parts)


def _topics(topics: tuple[SubscribedTopic, ...]) -> bytes:
    parts = [_varint(len(topics) + 1)]
    for topic in topics:
        parts += (uuid_bytes(topic.topic_id), _text(topic.topic))
        parts.append(struct.pack(">i", topic.partition_count))
        parts.append(_varint(len(topic.racks) + 1))
        for partition, racks in topic.racks:
            parts.append(struct.pack(">i", partition) + _varint(len(racks) + 1))
            parts += [_text(rack) for rack in racks]
            parts.append(b"\0")
        parts.append(b"\0")
    return b"".join((*parts, b"\0"))


def _member(member: ConsumerMember) -> bytes:
    parts = [
        _text(member.group_instance_id),
        _text(member.rack),
        _text(member.client_id),
        _text(member.client_host),
        _varint(len(member.topics) + 1),
        *(_text(topic) for topic in member.topics),
        _text(member.topic_regex),
        struct.pack(">i", member.rebalance_timeout_ms),
        _text(member.server_assignor),
    ]
    if member.classic is None:
        return b"".join((*parts, b"\0"))
    classic = [struct.pack(">i", member.classic.session_timeout_ms)]
    classic.append(_varint(len(member.classic.protocols) + 1))
    for name, metadata in member.classic.protocols:
        classic += (_text(name), _varint(len(metadata) + 1), metadata, b"\0")
    # A nullable structure is preceded by a byte, even in a tagged field.
    tagged = b"".join((b"\1", *classic, b"\0"))
    return b"".join((*parts, _varint(1), _varint(0), _varint(len(tagged)), tagged))


def _current(value: CurrentAssignment) -> bytes:
    head = struct.pack(">iib", value.member_epoch, value.previous_epoch, value.state)
    return head + _partitions(value.assigned) + _partitions(value.pending_revocation) + b"\0"


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Encode a record into its key and value."""
    kind = record.kind
    key = struct.pack(">h", kind) + _string(record.group_id)
    if kind in _MEMBER_RECORDS:
        key += _string(record.member_id)
    value = record.value
    if value is None:
        return key, None
    if kind is RecordKind.TOPICS:
        body = _topics(value)
    elif kind is RecordKind.MEMBER:
        body = _member(value)
    elif kind is RecordKind.TARGET:
        body = _partitions(value) + b"\0"
    elif kind is RecordKind.CURRENT:
        body = _current(value)
    else:
        body = struct.pack(">i", value) + b"\0"
    return key, b"\0\0" + body


# -- decoding -----------------------------------------------------------------------------------


def decode(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Decode a record; return None if it is not of a consumer-protocol group.

    Raises ``ClientError`` for malformed bytes or an unknown version.
    """
    cursor = Cursor(key)
    version = cursor.number(">h")
    if not RecordKind.GROUP_EPOCH <= version <= RecordKind.CURRENT:
        return None
    kind = RecordKind(version)
    group_id = cursor.string()
    member_id = cursor.string() if kind in _MEMBER_RECORDS else ""
    if value is None:
        return GroupRecord(kind, group_id, member_id)
    body = Cursor(value)
    version = body.number(">h")
    if version != 0:
        raise ClientError(f"unknown value version {version} of a {kind.name} record")
    read: Any
    if kind is RecordKind.TOPICS:
        read = _read_topics(body)
    elif kind is RecordKind.MEMBER:
        read = _read_member(body, member_id)
    elif kind is RecordKind.TARGET:
        read = _read_partitions(body)
    elif kind is RecordKind.CURRENT:
        epochs = body.number(">i"), body.number(">i"), _state(body.number(">b"))
        read = CurrentAssignment(*epochs, _read_partitions(body), _read_partitions(body))
    else:
        read = body.number(">i")
    return GroupRecord(kind, group_id, member_id, read)


def _state(number: int) -> MemberState:
    try:
        return MemberState(number)
    except ValueError:
        raise ClientError(f"unknown member state {number}") from None


def _read_partitions(body: Cursor) -> TopicIdPartitions:
    partitions: TopicIdPartitions = {}
    for _ in range(body.compact_length()):
        topic_id = uuid_text(body.slice(16, "a topic id"))
        numbers = tuple([body.number(">i") for _ in range(body.compact_length())])
        partitions[topic_id] = numbers
        body.tags()
    return partitions


def _read_topics(body: Cursor) -> tuple[SubscribedTopic, ...]:
    topics = []
    for _ in range(body.compact_length()):
        topic_id, name = uuid_text(body.slice(16, "a topic id")), body.compact_string()
        count = body.number(">i")
        racks = []
        for _ in range(body.compact_length()):
            partition = body.number(">i")
            names = tuple([body.compact_string() for _ in range(body.compact_length())])
            racks.append((partition, names))
            body.tags()
        body.tags()
        topics.append(SubscribedTopic(topic_id, name, count, tuple(racks)))
    return tuple(topics)


def _read_member(body: Cursor, member_id: str) -> ConsumerMember:
    instance_id, rack = body.nullable_compact_string(), body.nullable_compact_string()
    client_id, client_host = body.compact_string(), body.compact_string()
    topics = tuple([body.compact_string() for _ in range(body.compact_length())])
    topic_regex = body.nullable_compact_string() or ""
    rebalance_timeout_ms = body.number(">i")
    assignor = body.nullable_compact_string()
    classic = None
    tagged = body.tags().get(0)
    if tagged is not None and tagged[:1] == b"\1":
        inner = Cursor(tagged[1:])
        session_timeout_ms = inner.number(">i")
        protocols = []
        for _ in range(inner.compact_length()):
            name = inner.compact_string()
            protocols.append((name, inner.slice(inner.compact_length(), "metadata")))
            inner.tags()
        classic = ClassicMembership(session_timeout_ms, tuple(protocols))
    return ConsumerMember(
        member_id,
        group_instance_id=instance_id,
        rack=rack,
        rebalance_timeout_ms=rebalance_timeout_ms,
        client_id=client_id,
        client_host=client_host,
        topics=topics,
        topic_regex=topic_regex,
        server_assignor=assignor,
        classic=classic,
    )
