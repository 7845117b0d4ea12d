"""DescribeClientQuotas (key 48): quotas that a filter matches (KIP-546).

Versions 0-1. 1: flexible.
"""

from __future__ import annotations

from struct import Struct

from ....protocol.errors import ErrorCode
from ....protocol.security.quotas import (
    ANY,
    DEFAULT,
    EXACT,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    Entity,
    QuotaFilterComponent,
)
from ..api import Api, CodecAnswer
from ..primitives import Reader, Writer

FLOAT64 = Struct(">d")
_MATCH_TYPES = (EXACT, DEFAULT, ANY)


def decode(reader: Reader, version: int) -> DescribeClientQuotasRequest | CodecAnswer:
    components: list[QuotaFilterComponent] = []
    for _ in range(reader.array()):
        entity_type, match_type = reader.string(), reader.int8()
        components.append(QuotaFilterComponent(entity_type, match_type, reader.nullable_string()))
        reader.tags()
    is_strict = reader.boolean()
    reader.tags()
    if any(
        one.match_type not in _MATCH_TYPES or (one.match_type == EXACT and one.match is None)
        for one in components
    ):  # ClientQuotaFilterComponent and DescribeClientQuotasRequest throw
        return CodecAnswer(DescribeClientQuotasResponse(ErrorCode.UNKNOWN_SERVER_ERROR, None, ()))
    return DescribeClientQuotasRequest(tuple(components), is_strict)


def encode(
    writer: Writer, version: int, response: DescribeClientQuotasResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    if response.error is not ErrorCode.NONE:
        writer.nullable_string(response.error_message)
        writer.array(-1)
        writer.tags()
        return
    writer.nullable_string(response.error_message or "")
    writer.array(len(response.entries))
    for entity, values in response.entries:
        write_entity(writer, entity)
        writer.array(len(values))
        for name, value in values:
            writer.string(name)
            writer.raw(FLOAT64.pack(value))
            writer.tags()
        writer.tags()
    writer.tags()


def write_entity(writer: Writer, entity: Entity) -> None:
    writer.array(len(entity))
    for entity_type, name in entity:
        writer.string(entity_type)
        writer.nullable_string(name)
        writer.tags()


API = Api(48, "DescribeClientQuotas", 0, 1, flexible_from=1, decode=decode, encode=encode)
