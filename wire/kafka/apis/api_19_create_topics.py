"""CreateTopics (key 19): new topics, by counts or by a replica assignment.

Versions 0-7. 1: validate only, error message. 2: throttle time. 4: -1 takes the broker's default
(KIP-464). 5: flexible; partitions, replication factor and configs are answered (KIP-525). 7: topic
id.
The array of configs is empty, never null: Java's admin client fails on null.
"""

from __future__ import annotations

from ....protocol.admin import (
    ConfigEntry,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
    TopicResult,
)
from ....protocol.values import uuid_bytes
from ..api import Api
from ..primitives import Reader, Writer

_SOURCE_TOPIC = 1


def decode(reader: Reader, version: int) -> CreateTopicsRequest:
    topics = [_decode_topic(reader) for _ in range(reader.array())]
    timeout_ms = reader.int32()
    validate_only = reader.boolean() if version >= 1 else False
    reader.tags()
    return CreateTopicsRequest(tuple(topics), timeout_ms, validate_only)


def _decode_topic(reader: Reader) -> NewTopic:
    name = reader.string()
    partitions = reader.int32()
    replication_factor = reader.int16()
    assignment: list[tuple[int, tuple[int, ...]]] = []
    for _ in range(reader.array()):
        number = reader.int32()
        assignment.append((number, reader.int32s()))
        reader.tags()
    config: list[tuple[str, str | None]] = []
    for _ in range(reader.array()):
        key = reader.string()
        config.append((key, reader.nullable_string()))
        reader.tags()
    reader.tags()
    return NewTopic(name, partitions, replication_factor, tuple(assignment), tuple(config))


def encode(
    writer: Writer,
    version: int,
    response: CreateTopicsResponse,
    request: CreateTopicsRequest | None,
) -> None:
    if version >= 2:
        writer.int32(response.throttle_time_ms)
    writer.array(len(response.topics))
    for topic in response.topics:
        writer.string(topic.name)
        if version >= 7:
            writer.uuid(uuid_bytes(topic.topic_id))
        writer.int16(topic.error)
        if version >= 1:
            writer.nullable_string(topic.error_message)
        if version >= 5:
            _encode_details(writer, topic)
        writer.tags()
    writer.tags()


def _encode_details(writer: Writer, topic: TopicResult) -> None:
    writer.int32(topic.partitions)
    writer.int16(topic.replication_factor)
    entries = topic.config_entries or tuple(
        ConfigEntry(name, value, _SOURCE_TOPIC) for name, value in topic.config
    )
    writer.array(len(entries))
    for entry in entries:
        writer.string(entry.name)
        writer.nullable_string(entry.value)
        writer.boolean(entry.read_only)
        writer.int8(entry.source)
        writer.boolean(entry.is_sensitive)
        writer.tags()


API = Api(19, "CreateTopics", 0, 7, flexible_from=5, decode=decode, encode=encode)
