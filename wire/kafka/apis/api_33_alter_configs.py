"""AlterConfigs (key 33): replace all overrides of topics or brokers.

Versions 0-2. 2: flexible. Superseded by IncrementalAlterConfigs (KIP-339).
"""

from __future__ import annotations

from ....protocol.admin import SET, AlterConfigsRequest, AlterConfigsResponse, ConfigResource
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> AlterConfigsRequest:
    return decode_resources(reader, incremental=False)


def decode_resources(reader: Reader, *, incremental: bool) -> AlterConfigsRequest:
    """The body of either API that alters configs; only one names an operation per entry."""
    resources: list[tuple[ConfigResource, tuple[tuple[str, int, str | None], ...]]] = []
    for _ in range(reader.array()):
        resource = ConfigResource(reader.int8(), reader.string())
        entries: list[tuple[str, int, str | None]] = []
        for _ in range(reader.array()):
            name = reader.string()
            operation = reader.int8() if incremental else SET
            entries.append((name, operation, reader.nullable_string()))
            reader.tags()
        reader.tags()
        resources.append((resource, tuple(entries)))
    validate_only = reader.boolean()
    reader.tags()
    return AlterConfigsRequest(tuple(resources), incremental, validate_only)


def encode(
    writer: Writer,
    version: int,
    response: AlterConfigsResponse,
    request: AlterConfigsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for resource, error, message in response.results:
        writer.int16(error)
        writer.nullable_string(message)
        writer.int8(resource.type)
        writer.string(resource.name)
        writer.tags()
    writer.tags()


API = Api(33, "AlterConfigs", 0, 2, flexible_from=2, decode=decode, encode=encode)
