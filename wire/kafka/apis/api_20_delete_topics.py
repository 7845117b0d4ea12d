"""DeleteTopics (key 20): topics by name, or by id.

Versions 0-6. 1: throttle time. 3: TOPIC_DELETION_DISABLED, before that INVALID_REQUEST.
4: flexible. 5: error message (KIP-599). 6: topic ids (KIP-516).
"""

from __future__ import annotations

from ....protocol.admin import DeleteTopicsRequest, DeleteTopicsResponse
from ....protocol.errors import ErrorCode
from ....protocol.values import ZERO_UUID, uuid_bytes, uuid_text
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DeleteTopicsRequest:
    names: list[str] = []
    ids: list[str] = []
    both: list[tuple[str, str]] = []
    nameless = 0
    for _ in range(reader.array()):
        if version < 6:
            names.append(reader.string())
            continue
        name = reader.nullable_string()
        topic_id = reader.uuid()
        reader.tags()
        if topic_id == ZERO_UUID:
            if name is None:
                nameless += 1
            else:
                names.append(name)
        elif name is None:
            ids.append(uuid_text(topic_id))
        else:
            both.append((name, uuid_text(topic_id)))
    timeout_ms = reader.int32()
    reader.tags()
    return DeleteTopicsRequest(tuple(names), timeout_ms, tuple(ids), nameless, tuple(both))


def encode(
    writer: Writer,
    version: int,
    response: DeleteTopicsResponse,
    request: DeleteTopicsRequest | None,
) -> None:
    if version >= 1:
        writer.int32(response.throttle_time_ms)
    writer.array(len(response.topics))
    named = "" in request.topics if isinstance(request, DeleteTopicsRequest) else False
    for topic in response.topics:
        if version >= 6:
            has_name = topic.name or (named and not topic.topic_id)
            writer.nullable_string(topic.name if has_name else None)
            writer.uuid(uuid_bytes(topic.topic_id))
        else:
            writer.string(topic.name)
        error = topic.error
        if error is ErrorCode.TOPIC_DELETION_DISABLED and version < 3:
            error = ErrorCode.INVALID_REQUEST
        writer.int16(error)
        if version >= 5:
            writer.nullable_string(topic.error_message)
        writer.tags()
    writer.tags()


API = Api(20, "DeleteTopics", 0, 6, flexible_from=4, decode=decode, encode=encode)
