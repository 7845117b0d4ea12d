"""DescribeGroups (key 15): state and members of groups that this broker coordinates.

Versions 0-5. 3: authorized operations (KIP-430). 4: static members (KIP-345). 5: flexible.
"""

from __future__ import annotations

from ....protocol.groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from ..api import Api
from ..primitives import Reader, Writer
from .api_03_metadata import operations

ALL_GROUP_OPERATIONS = 328
"""Bit set of all operations on a group: what a broker without an authorizer answers."""


def decode(reader: Reader, version: int) -> DescribeGroupsRequest:
    group_ids = reader.strings()
    include_operations = reader.boolean() if version >= 3 else False
    reader.tags()
    return DescribeGroupsRequest(group_ids, include_operations)


def encode(
    writer: Writer,
    version: int,
    response: DescribeGroupsResponse,
    request: DescribeGroupsRequest | None,
) -> None:
    asked = request is not None and request.include_authorized_operations
    if version >= 1:
        writer.int32(writer.throttle_ms)
    writer.array(len(response.groups))
    for group in response.groups:
        _encode_group(writer, version, group)
        if version >= 3:
            is_told = asked and not group.error
            allowed = operations(group.authorized_operations, is_told, ALL_GROUP_OPERATIONS)
            writer.int32(allowed)
        writer.tags()
    writer.tags()


def _encode_group(writer: Writer, version: int, group: DescribedGroup) -> None:
    writer.int16(group.error)
    writer.string(group.group_id)
    writer.string(group.state)
    writer.string(group.protocol_type)
    writer.string(group.protocol)
    writer.array(len(group.members))
    for member in group.members:
        writer.string(member.member_id)
        if version >= 4:
            writer.nullable_string(member.group_instance_id)
        writer.string(member.client_id)
        writer.string(member.client_host)
        writer.sized_bytes(member.metadata)
        writer.sized_bytes(member.assignment)
        writer.tags()


API = Api(15, "DescribeGroups", 0, 5, flexible_from=5, decode=decode, encode=encode)
