"""ApiVersions: the APIs that a broker supports, with their versions.

``wire.kafka.codec`` answers the request from cached bytes; the backend never sees it. The response
always has a header of version 0. A request in a version that is not offered is answered in the
layout of version 0 with error 35 and the range of this API, so that the client can ask again
(KIP-511; before 2.4 without the range).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ....protocol.api_versions import VersionRange
from ....protocol.errors import ErrorCode
from ....protocol.values import frozen
from ..api import Api, ApiCall, CodecAnswer, reads, writes

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@frozen
class ApiVersionsResponse:
    """Error, and the ranges of versions offered by API key."""

    error: ErrorCode
    ranges: Mapping[int, VersionRange] | None
    """None for the ranges that the codec offers."""
    features_epoch: int | None = None
    """Epoch of the finalised features, from version 3 on; None without features (KIP-584)."""


def _api_versions_request(call: ApiCall, *software: str) -> CodecAnswer:
    if call.version >= 3 and not all(map(_SOFTWARE.fullmatch, software)):
        return CodecAnswer(ApiVersionsResponse(ErrorCode.INVALID_REQUEST, {}))
    return CodecAnswer(ApiVersionsResponse(ErrorCode.NONE, None))


API_VERSIONS = Api(
    18,
    reads(_api_versions_request, "call clientSoftwareName clientSoftwareVersion"),
    writes(
        "errorCode=error apiKeys=ranges[apiKey minVersion maxVersion] "
        "finalizedFeaturesEpoch=features_epoch",
        apiKeys=lambda ranges: [(key, *versions) for key, versions in (ranges or {}).items()],
    ),
)
"""Version 3 adds the client's software name and version (KIP-511)."""
