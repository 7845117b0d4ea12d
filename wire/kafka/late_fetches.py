"""Malformed fetch requests to a broker of 0.10, where Scala code parses only fetch requests.

``kafka.api.FetchRequest.readFrom`` accepts null as an empty array and as a name. A request that
ends too early throws in the processor of the socket server, which neither answers nor closes the
connection (``Processor.run``).
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from ...protocol.errors import ClientError, ErrorCode
from .api import DROPPED, Api, ApiCall, CodecAnswer
from .error_responses import error_response
from .messages.readers import Maker, Reader, reader
from .messages.table import message, with_nulls
from .messages.varints import Buffer
from .topic_names import NULL_NAME


def parsed_when_handled(api: Api, body: Buffer, call: ApiCall) -> object:
    """Return the request, the answer to a request with a null topic name, or ``DROPPED``."""
    try:
        request, _ = _reader(api, call.version)(body, call)
    except (ClientError, struct.error, ValueError):
        return DROPPED
    if not isinstance(request, CodecAnswer) and any(
        partition.topic_partition.topic == NULL_NAME for partition in request.partitions
    ):
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request


@functools.cache
def _reader(api: Api, version: int) -> Reader:
    make, selected, _ = api.reads
    makers: dict[str, Maker] = {"topics": _or_empty, "partitions": _or_empty, "topic": _named}
    return reader(with_nulls(message(api.key, "request")), version, make, selected, makers)


def _or_empty(array: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return array or ()


def _named(name: str | None) -> str:
    return NULL_NAME if name is None else name
