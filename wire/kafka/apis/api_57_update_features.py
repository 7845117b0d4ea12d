"""UpdateFeatures (key 57): change the finalised features of the cluster (KIP-584, KIP-778).

Versions 0-1, flexible. 0: whether a downgrade is permitted. 1: the kind of change, and validation
alone, which brokers with ZooKeeper do not look at.
"""

from __future__ import annotations

from ....protocol.admin import (
    SAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> UpdateFeaturesRequest:
    timeout_ms = reader.int32()
    updates: list[FeatureUpdate] = []
    for _ in range(reader.array()):
        name, level = reader.string(), reader.int16()
        if version >= 1:
            upgrade_type = reader.int8()
        else:
            upgrade_type = SAFE_DOWNGRADE if reader.boolean() else UPGRADE
        reader.tags()
        updates.append(FeatureUpdate(name, level, upgrade_type))
    validate_only = version >= 1 and reader.boolean()
    reader.tags()
    return UpdateFeaturesRequest(tuple(updates), timeout_ms, validate_only)


def encode(
    writer: Writer,
    version: int,
    response: UpdateFeaturesResponse,
    request: UpdateFeaturesRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    writer.array(len(response.results))
    for name, error, message in response.results:
        writer.string(name)
        writer.int16(error)
        writer.nullable_string(message)
        writer.tags()
    writer.tags()


API = Api(57, "UpdateFeatures", 0, 1, flexible_from=0, decode=decode, encode=encode)
