"""DescribeCluster (key 60): cluster id, controller and brokers (KIP-700).

Versions 0-1, flexible. 1: the kind of endpoint (KIP-919). To the backend it is a Metadata request
for no topic.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....protocol.data import MetadataRequest, MetadataResponse
from ....protocol.errors import ErrorCode
from ..api import Api, CodecAnswer
from ..endpoints import write_address
from ..primitives import Reader, Writer
from .api_03_metadata import ALL_CLUSTER_OPERATIONS, NOT_ASKED, operations

_BROKERS, _CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True)
class WrongEndpointType:
    """The client asked a broker for controllers."""

    endpoint_type: int


def decode(reader: Reader, version: int) -> MetadataRequest | CodecAnswer:
    include_operations = reader.boolean()
    endpoint_type = reader.int8() if version >= 1 else _BROKERS
    reader.tags()
    if endpoint_type != _BROKERS:
        return CodecAnswer(WrongEndpointType(endpoint_type))
    return MetadataRequest((), False, include_cluster_authorized_operations=include_operations)


def encode(
    writer: Writer,
    version: int,
    response: MetadataResponse | WrongEndpointType,
    request: MetadataRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    if isinstance(response, WrongEndpointType):
        _encode_refusal(writer, version, response)
        return
    writer.int16(ErrorCode.NONE)
    writer.nullable_string(None)
    if version >= 1:
        writer.int8(_BROKERS)
    writer.string(response.cluster_id)
    writer.int32(response.controller_id)
    writer.array(len(response.brokers))
    for broker in response.brokers:
        write_address(writer, broker)
        writer.nullable_string(broker.rack)
        writer.tags()
    asked = request is not None and request.include_cluster_authorized_operations
    writer.int32(operations(response.authorized_operations, asked, ALL_CLUSTER_OPERATIONS))
    writer.tags()


def _encode_refusal(writer: Writer, version: int, refusal: WrongEndpointType) -> None:
    if refusal.endpoint_type == _CONTROLLERS:
        writer.int16(ErrorCode.MISMATCHED_ENDPOINT_TYPE)
        writer.nullable_string(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER"
        )
    else:
        writer.int16(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)
        writer.nullable_string(f"Unsupported endpoint type {refusal.endpoint_type}")
    writer.int8(_BROKERS)
    writer.string("")
    writer.int32(-1)
    writer.array(0)
    writer.int32(NOT_ASKED)
    writer.tags()


API = Api(60, "DescribeCluster", 0, 1, flexible_from=0, decode=decode, encode=encode)
