"""DescribeConfigs (key 32): the configuration in force for topics and brokers.

Versions 0-4. 1: source and synonyms instead of "is default" (KIP-226). 3: type and documentation
(KIP-569). 4: flexible.
"""

from __future__ import annotations

from ....protocol.admin import (
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DescribeConfigsRequest:
    resources: list[tuple[ConfigResource, tuple[str, ...] | None]] = []
    for _ in range(reader.array()):
        resource = ConfigResource(reader.int8(), reader.string())
        count = reader.nullable_array()
        names = None if count < 0 else tuple([reader.string() for _ in range(count)])
        reader.tags()
        resources.append((resource, names))
    synonyms = reader.boolean() if version >= 1 else False
    documentation = reader.boolean() if version >= 3 else False
    reader.tags()
    return DescribeConfigsRequest(tuple(resources), synonyms, documentation)


def encode(
    writer: Writer,
    version: int,
    response: DescribeConfigsResponse,
    request: DescribeConfigsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for result in response.results:
        writer.int16(result.error)
        writer.nullable_string(result.error_message)
        writer.int8(result.resource.type)
        writer.string(result.resource.name)
        writer.array(len(result.entries))
        for entry in result.entries:
            _encode_entry(writer, version, entry)
        writer.tags()
    writer.tags()


def _encode_entry(writer: Writer, version: int, entry: ConfigEntry) -> None:
    writer.string(entry.name)
    writer.nullable_string(None if entry.is_sensitive else entry.value)
    writer.boolean(entry.read_only)
    if version == 0:
        writer.boolean(entry.is_default)
    else:
        writer.int8(entry.source)
    writer.boolean(entry.is_sensitive)
    if version >= 1:
        writer.array(len(entry.synonyms))
        for name, value, source in entry.synonyms:
            writer.string(name)
            writer.nullable_string(None if entry.is_sensitive else value)
            writer.int8(source)
            writer.tags()
    if version >= 3:
        writer.int8(entry.config_type)
        writer.nullable_string(entry.documentation)
    writer.tags()


API = Api(32, "DescribeConfigs", 0, 4, flexible_from=4, decode=decode, encode=encode)
