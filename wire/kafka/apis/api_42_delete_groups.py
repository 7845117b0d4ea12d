"""DeleteGroups (key 42): delete groups without members, with their offsets (KIP-229).

Versions 0-2. 2: flexible.
"""

from __future__ import annotations

from ....protocol.groups import DeleteGroupsRequest, DeleteGroupsResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DeleteGroupsRequest:
    group_ids = reader.strings()
    reader.tags()
    return DeleteGroupsRequest(group_ids)


def encode(
    writer: Writer,
    version: int,
    response: DeleteGroupsResponse,
    request: DeleteGroupsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.groups))
    for group_id, error in response.groups:
        writer.string(group_id)
        writer.int16(error)
        writer.tags()
    writer.tags()


API = Api(42, "DeleteGroups", 0, 2, flexible_from=2, decode=decode, encode=encode)
