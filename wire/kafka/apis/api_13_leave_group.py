"""LeaveGroup (key 13): members leave their group.

Versions 0-5. 3: several members at once, also by their instance id (KIP-345). 4: flexible.
5: a reason (KIP-800). Before version 3 the answer has the error of the only member.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.groups import LeaveGroupRequest, LeaveGroupResponse, LeavingMember
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> LeaveGroupRequest:
    group_id = reader.string()
    members: list[LeavingMember] = []
    if version < 3:
        members.append(LeavingMember(reader.string()))
    else:
        for _ in range(reader.array()):
            member_id = reader.string()
            instance_id = reader.nullable_string()
            reason = reader.nullable_string() if version >= 5 else None
            reader.tags()
            members.append(LeavingMember(member_id, instance_id, reason))
    reader.tags()
    return LeaveGroupRequest(group_id, tuple(members))


def encode(
    writer: Writer,
    version: int,
    response: LeaveGroupResponse,
    request: LeaveGroupRequest | None,
) -> None:
    if version >= 1:
        writer.int32(writer.throttle_ms)
    if version < 3:
        error = response.error
        if error is ErrorCode.NONE and response.members:
            error = response.members[0].error
        writer.int16(error)
        return
    writer.int16(response.error)
    writer.array(len(response.members))
    for member in response.members:
        writer.string(member.member_id)
        writer.nullable_string(member.group_instance_id)
        writer.int16(member.error)
        writer.tags()
    writer.tags()


API = Api(13, "LeaveGroup", 0, 5, flexible_from=4, decode=decode, encode=encode)
