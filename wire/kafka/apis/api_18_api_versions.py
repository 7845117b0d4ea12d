"""ApiVersions (key 18): which versions of which APIs the broker speaks.

Versions 0-4. 1: throttle time. 3: flexible, the client's software name and version (KIP-511).
The response header is always v0. A version that is not offered is answered in the layout of
version 0 with error 35 and the range of this API, so that the client can ask again (KIP-511; before
2.4 without the range).
Answered by ``wire.kafka.codec`` from cached bytes; the backend never sees it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct

from ....protocol.api_versions import VersionRange
from ....protocol.errors import ErrorCode
from ....protocol.values import frozen
from ..api import Api, CodecAnswer
from ..primitives import Reader, Writer

KEY = 18
_RANGE = Struct(">hhh")
_EPOCH = Struct(">q")
_FEATURES_EPOCH_TAG = 1
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@frozen
class ApiVersionsResponse:
    """Error and the ranges offered, by key."""

    error: ErrorCode
    ranges: Mapping[int, VersionRange] | None
    """None stands for what the codec offers."""
    features_epoch: int | None = None
    """Version of the finalised features, from version 3 on; None where there are none (KIP-584)."""


def decode(reader: Reader, version: int) -> CodecAnswer:
    error = ErrorCode.NONE
    if version >= 3:
        name, software_version = reader.string(), reader.string()
        reader.tags()
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(software_version):
            error = ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE:
        return CodecAnswer(ApiVersionsResponse(error, None))
    return CodecAnswer(ApiVersionsResponse(error, {}))


def encode(writer: Writer, version: int, response: ApiVersionsResponse, request: object) -> None:
    ranges = response.ranges or {}
    writer.int16(response.error)
    writer.array(len(ranges))
    for key, (minimum, maximum) in ranges.items():
        writer.pack(_RANGE, key, minimum, maximum)
        writer.tags()
    if version >= 1:
        writer.int32(0)  # throttle time
    epoch = response.features_epoch
    writer.tags(*() if epoch is None else ((_FEATURES_EPOCH_TAG, _EPOCH.pack(epoch)),))


API = Api(KEY, "ApiVersions", 0, 4, flexible_from=3, decode=decode, encode=encode)
