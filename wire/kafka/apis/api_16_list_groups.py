"""ListGroups (key 16): the groups that this broker coordinates.

Versions 0-5. 3: flexible. 4: the states wanted, and each group's state (KIP-518). 5: the same for
types of groups (KIP-848).
"""

from __future__ import annotations

from ....protocol.groups import ListGroupsRequest, ListGroupsResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> ListGroupsRequest:
    states = reader.strings() if version >= 4 else ()
    types = reader.strings() if version >= 5 else ()
    reader.tags()
    return ListGroupsRequest(states, types)


def encode(
    writer: Writer,
    version: int,
    response: ListGroupsResponse,
    request: ListGroupsRequest | None,
) -> None:
    if version >= 1:
        writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.array(len(response.groups))
    for group in response.groups:
        writer.string(group.group_id)
        writer.string(group.protocol_type)
        if version >= 4:
            writer.string(group.state)
        if version >= 5:
            writer.string(group.group_type)
        writer.tags()
    writer.tags()


API = Api(16, "ListGroups", 0, 5, flexible_from=3, decode=decode, encode=encode)
