"""SyncGroup (key 14): the leader of a group hands out the assignments, the others ask for theirs.

Versions 0-5. 3: static members (KIP-345). 4: flexible. 5: protocol type and name are checked and
come back (KIP-559).
"""

from __future__ import annotations

from ....protocol.groups import SyncGroupRequest, SyncGroupResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> SyncGroupRequest:
    group_id = reader.string()
    generation = reader.int32()
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    protocol_type = reader.nullable_string() if version >= 5 else None
    protocol = reader.nullable_string() if version >= 5 else None
    assignments: list[tuple[str, bytes]] = []
    for _ in range(reader.array()):
        member = reader.string()
        assignments.append((member, bytes(reader.required_bytes())))
        reader.tags()
    reader.tags()
    return SyncGroupRequest(
        group_id, generation, member_id, instance_id, protocol_type, protocol, tuple(assignments)
    )


def encode(
    writer: Writer,
    version: int,
    response: SyncGroupResponse,
    request: SyncGroupRequest | None,
) -> None:
    if version >= 1:
        writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    if version >= 5:
        writer.nullable_string(response.protocol_type)
        writer.nullable_string(response.protocol)
    writer.sized_bytes(response.assignment)
    writer.tags()


API = Api(14, "SyncGroup", 0, 5, flexible_from=4, decode=decode, encode=encode)
