"""JoinGroup (key 11): a consumer wants to be a member of its group.

Versions 0-9. 1: rebalance timeout. 4: a first answer with the member id (KIP-394). 5: static
members (KIP-345). 6: flexible. 7: the protocol type comes back (KIP-559). 8: a reason (KIP-800).
9: the leader may be told to keep the assignment (KIP-814).
"""

from __future__ import annotations

from ....protocol.groups import JoinGroupRequest, JoinGroupResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> JoinGroupRequest:
    group_id = reader.string()
    session_timeout_ms = reader.int32()
    rebalance_timeout_ms = reader.int32() if version >= 1 else -1
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 5 else None
    protocol_type = reader.string()
    protocols: list[tuple[str, bytes]] = []
    for _ in range(reader.array()):
        name = reader.string()
        protocols.append((name, bytes(reader.required_bytes())))
        reader.tags()
    reason = reader.nullable_string() if version >= 8 else None
    reader.tags()
    return JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        instance_id,
        protocol_type,
        tuple(protocols),
        reason,
    )


def encode(
    writer: Writer,
    version: int,
    response: JoinGroupResponse,
    request: JoinGroupRequest | None,
) -> None:
    if version >= 2:
        writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.int32(response.generation)
    if version >= 7:
        writer.nullable_string(response.protocol_type)
        writer.nullable_string(response.protocol)
    else:
        writer.string(response.protocol or "")
    writer.string(response.leader)
    if version >= 9:
        writer.boolean(response.skip_assignment)
    writer.string(response.member_id)
    writer.array(len(response.members))
    for member in response.members:
        writer.string(member.member_id)
        if version >= 5:
            writer.nullable_string(member.group_instance_id)
        writer.sized_bytes(member.metadata)
        writer.tags()
    writer.tags()


API = Api(11, "JoinGroup", 0, 9, flexible_from=6, decode=decode, encode=encode)
