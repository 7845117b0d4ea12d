"""Heartbeat (key 12): a member of a group is alive, and learns of rebalances.

Versions 0-4. 3: static members (KIP-345). 4: flexible.
"""

from __future__ import annotations

from ....protocol.groups import HeartbeatRequest, HeartbeatResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> HeartbeatRequest:
    group_id = reader.string()
    generation = reader.int32()
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    reader.tags()
    return HeartbeatRequest(group_id, generation, member_id, instance_id)


def encode(
    writer: Writer,
    version: int,
    response: HeartbeatResponse,
    request: HeartbeatRequest | None,
) -> None:
    if version >= 1:
        writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.tags()


API = Api(12, "Heartbeat", 0, 4, flexible_from=4, decode=decode, encode=encode)
