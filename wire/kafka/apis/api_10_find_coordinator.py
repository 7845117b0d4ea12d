"""FindCoordinator (key 10): the broker that coordinates a group or a transactional id.

Versions 0-6. 1: transactional ids, error message. 3: flexible. 4: several keys at once (KIP-699).
5 and 6 only add errors and key types of later releases.
"""

from __future__ import annotations

from ....protocol.data import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> FindCoordinatorRequest:
    if version >= 4:
        key_type = reader.int8()
        keys = reader.strings()
    else:
        keys = (reader.string(),)
        key_type = reader.int8() if version >= 1 else 0
    reader.tags()
    return FindCoordinatorRequest(keys, key_type)


def encode(
    writer: Writer,
    version: int,
    response: FindCoordinatorResponse,
    request: FindCoordinatorRequest | None,
) -> None:
    if version >= 1:
        writer.int32(writer.throttle_ms)
    if version < 4:
        _encode_only(writer, version, response.coordinators[0])
    else:
        writer.array(len(response.coordinators))
        for found in response.coordinators:
            writer.string(found.key)
            _encode_node(writer, found)
            writer.int16(found.error)
            writer.nullable_string(found.error_message or "")
            writer.tags()
    writer.tags()


def _encode_only(writer: Writer, version: int, found: Coordinator) -> None:
    writer.int16(found.error)
    if version >= 1:
        writer.nullable_string(found.error_message or None)
    _encode_node(writer, found)


def _encode_node(writer: Writer, found: Coordinator) -> None:
    writer.int32(found.node_id)
    writer.string(found.host)
    writer.int32(found.port)


API = Api(10, "FindCoordinator", 0, 6, flexible_from=3, decode=decode, encode=encode)
