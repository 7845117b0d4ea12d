"""ConsumerGroupDescribe (key 69): groups of the consumer protocol (KIP-848).

Version 0, flexible. A broker with ZooKeeper advertises it, and answers UNSUPPORTED_VERSION for each
group unless the protocol is switched on. Clients ask DescribeGroups then.
"""

from __future__ import annotations

from ....protocol.groups import (
    AssignedTopic,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupMemberDescription,
)
from ....protocol.values import uuid_bytes
from ..api import Api
from ..primitives import Reader, Writer
from .api_03_metadata import NOT_ASKED


def decode(reader: Reader, version: int) -> ConsumerGroupDescribeRequest:
    group_ids = reader.strings()
    include_authorized_operations = reader.boolean()
    reader.tags()
    return ConsumerGroupDescribeRequest(group_ids, include_authorized_operations)


def encode(
    writer: Writer, version: int, response: ConsumerGroupDescribeResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.groups))
    for group in response.groups:
        writer.int16(group.error)
        writer.nullable_string(group.error_message)
        writer.string(group.group_id)
        writer.string(group.state)
        writer.int32(group.group_epoch)
        writer.int32(group.assignment_epoch)
        writer.string(group.assignor)
        writer.array(len(group.members))
        for member in group.members:
            _encode_member(writer, member)
        operations = group.authorized_operations
        writer.int32(NOT_ASKED if operations is None else operations)
        writer.tags()
    writer.tags()


def _encode_member(writer: Writer, member: ConsumerGroupMemberDescription) -> None:
    writer.string(member.member_id)
    writer.nullable_string(member.group_instance_id)
    writer.nullable_string(member.rack)
    writer.int32(member.member_epoch)
    writer.string(member.client_id)
    writer.string(member.client_host)
    writer.array(len(member.topics))
    for topic in member.topics:
        writer.string(topic)
    writer.nullable_string(member.topic_regex)
    _encode_assignment(writer, member.assignment)
    _encode_assignment(writer, member.target_assignment)
    writer.tags()


def _encode_assignment(writer: Writer, topics: tuple[AssignedTopic, ...]) -> None:
    writer.array(len(topics))
    for topic in topics:
        writer.uuid(uuid_bytes(topic.topic_id))
        writer.string(topic.topic)
        writer.int32s(topic.partitions)
        writer.tags()
    writer.tags()


API = Api(69, "ConsumerGroupDescribe", 0, 0, flexible_from=0, decode=decode, encode=encode)
