"""ConsumerGroupHeartbeat (key 68): a member of a group of the consumer protocol (KIP-848).

Versions 0-1, flexible. A broker with ZooKeeper advertises version 0, and answers
UNSUPPORTED_VERSION unless the protocol is switched on. Version 1 is Kafka's since 4.0, and offered
only where the protocol is switched on: a regular expression for topics, ids made by members
(KIP-1082).
"""

from __future__ import annotations

from ....protocol.groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ....protocol.values import uuid_bytes, uuid_text
from ..api import Api
from ..primitives import Reader, Writer

_NULL_STRUCTURE = -1
_STRUCTURE = 1


def decode(reader: Reader, version: int) -> ConsumerGroupHeartbeatRequest:
    group_id, member_id, epoch = reader.string(), reader.string(), reader.int32()
    instance_id, rack = reader.nullable_string(), reader.nullable_string()
    rebalance_timeout_ms = reader.int32()
    count = reader.nullable_array()
    topics = None if count < 0 else tuple([reader.string() for _ in range(count)])
    regex = reader.nullable_string() if version >= 1 else None
    assignor = reader.nullable_string()
    count = reader.nullable_array()
    owned = None if count < 0 else tuple([_partitions(reader) for _ in range(count)])
    reader.tags()
    return ConsumerGroupHeartbeatRequest(
        group_id,
        member_id,
        epoch,
        instance_id,
        rack,
        rebalance_timeout_ms,
        topics,
        regex,
        assignor,
        owned,
    )


def _partitions(reader: Reader) -> tuple[str, tuple[int, ...]]:
    topic_id, numbers = uuid_text(reader.uuid()), reader.int32s()
    reader.tags()
    return topic_id, numbers


def encode(
    writer: Writer, version: int, response: ConsumerGroupHeartbeatResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    writer.nullable_string(response.member_id)
    writer.int32(response.member_epoch)
    writer.int32(response.heartbeat_interval_ms)
    if response.assignment is None:
        writer.int8(_NULL_STRUCTURE)
    else:
        writer.int8(_STRUCTURE)
        writer.array(len(response.assignment))
        for topic_id, numbers in response.assignment:
            writer.uuid(uuid_bytes(topic_id))
            writer.int32s(numbers)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(68, "ConsumerGroupHeartbeat", 0, 1, flexible_from=0, decode=decode, encode=encode)
