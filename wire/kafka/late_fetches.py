"""Fetch requests of 0.10 that are broken: Scala code reads them beside all others.

``kafka.api.FetchRequest.readFrom`` takes null for an empty array and for a name. What ends too
early throws in the processor of the socket server, which neither answers nor closes the connection
(``Processor.run``).
"""

from __future__ import annotations

import struct

from ...protocol.errors import ClientError, ErrorCode
from .api import DROPPED, Api, CodecAnswer
from .primitives import Reader
from .topic_names import NULL_NAME


class _ScalaReader(Reader):
    """Reads null as Scala does."""

    __slots__ = ()

    def array(self) -> int:
        return max(self.nullable_array(), 0)

    def string(self) -> str:
        name = self.nullable_string()
        return NULL_NAME if name is None else name


def parsed_when_handled(api: Api, body: memoryview, version: int) -> object:
    """The request, an answer to one without a name, or ``DROPPED``."""
    from .error_responses import error_response  # few clusters need it

    try:
        request = api.decode(_ScalaReader(body), version)
    except (ClientError, struct.error, ValueError):
        return DROPPED
    if not isinstance(request, CodecAnswer) and any(
        partition.topic_partition.topic == NULL_NAME for partition in request.partitions
    ):
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request
