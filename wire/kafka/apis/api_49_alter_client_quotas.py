"""AlterClientQuotas (key 49): set and remove quotas (KIP-546).

Versions 0-1. 1: flexible.
"""

from __future__ import annotations

from operator import attrgetter

from ....protocol.security.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    QuotaAlteration,
)
from ..api import Api
from ..primitives import Reader, Writer
from ..repetitions import last_of_each
from .api_48_describe_client_quotas import FLOAT64, write_entity


def decode(reader: Reader, version: int) -> AlterClientQuotasRequest:
    alterations: list[QuotaAlteration] = []
    for _ in range(reader.array()):
        entity: list[tuple[str, str | None]] = []
        for _ in range(reader.array()):
            entity.append((reader.string(), reader.nullable_string()))
            reader.tags()
        changes: list[tuple[str, float | None]] = []
        for _ in range(reader.array()):
            name = reader.string()
            (value,) = FLOAT64.unpack(reader.slice(8))
            changes.append((name, None if reader.boolean() else value))
            reader.tags()
        reader.tags()
        alterations.append(QuotaAlteration(tuple(entity), tuple(changes)))
    validate_only = reader.boolean()
    reader.tags()
    named = last_of_each(alterations, attrgetter("entity"))
    return AlterClientQuotasRequest(tuple(named), validate_only)


def encode(
    writer: Writer, version: int, response: AlterClientQuotasResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for entity, error, message in response.results:
        writer.int16(error)
        writer.nullable_string(message)
        write_entity(writer, entity)
        writer.tags()
    writer.tags()


API = Api(49, "AlterClientQuotas", 0, 1, flexible_from=1, decode=decode, encode=encode)
