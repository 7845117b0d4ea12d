"""JoinGroup (key 11): a consumer wants to be a member of its group.

Versions 0-9. 1: rebalance timeout. 4: a first answer with the member id (KIP-394). 5: static
members (KIP-345). 6: flexible. 7: the protocol type comes back (KIP-559). 8: a reason (KIP-800).
9: the leader may be told to keep the assignment (KIP-814).

Groups are not there yet (docs/reference/limitations.md). The API is, because clients that miss it
ask for ever (aiokafka), and its answer is an error that all of them take as final.
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
        protocols.append((name, bytes(reader.nullable_bytes() or b"")))
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
    """No member has ever joined, so the answer has no generation, leader or members."""
    if version >= 2:
        writer.int32(0)  # throttle time
    writer.int16(response.error)
    writer.int32(-1)  # generation
    if version >= 7:
        writer.nullable_string(None)  # protocol type
        writer.nullable_string(None)  # protocol
    else:
        writer.string("")
    writer.string("")  # leader
    if version >= 9:
        writer.boolean(False)  # skip the assignment
    writer.string(response.member_id)
    writer.array(0)
    writer.tags()


API = Api(11, "JoinGroup", 0, 9, flexible_from=6, decode=decode, encode=encode)
