"""CreatePartitions (key 37): more partitions for topics (KIP-195).

Versions 0-3. 2: flexible. 3 only adds an error of quotas.
"""

from __future__ import annotations

from ....protocol.admin import CreatePartitionsRequest, CreatePartitionsResponse, NewPartitions
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> CreatePartitionsRequest:
    topics: list[NewPartitions] = []
    for _ in range(reader.array()):
        name = reader.string()
        count = reader.int32()
        assignment: list[tuple[int, ...]] = []
        added = reader.nullable_array()
        for _ in range(added):
            assignment.append(reader.int32s())
            reader.tags()
        reader.tags()
        topics.append(NewPartitions(name, count, None if added < 0 else tuple(assignment)))
    timeout_ms = reader.int32()
    validate_only = reader.boolean()
    reader.tags()
    return CreatePartitionsRequest(tuple(topics), timeout_ms, validate_only)


def encode(
    writer: Writer,
    version: int,
    response: CreatePartitionsResponse,
    request: CreatePartitionsRequest | None,
) -> None:
    writer.int32(response.throttle_time_ms)
    writer.array(len(response.topics))
    for topic in response.topics:
        writer.string(topic.name)
        writer.int16(topic.error)
        writer.nullable_string(topic.error_message)
        writer.tags()
    writer.tags()


API = Api(37, "CreatePartitions", 0, 3, flexible_from=2, decode=decode, encode=encode)
