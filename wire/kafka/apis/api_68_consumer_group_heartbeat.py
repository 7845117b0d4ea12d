"""ConsumerGroupHeartbeat (key 68): a member of a group of the new protocol (KIP-848).

Version 0, flexible. A broker with ZooKeeper advertises it, and answers UNSUPPORTED_VERSION: its
coordinator has the classic protocol only.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....protocol.errors import ErrorCode
from ..api import Api, CodecAnswer
from ..primitives import Reader, Writer

_NULL_STRUCTURE = -1


@dataclass(frozen=True, slots=True)
class NewProtocolIsOff:
    """The refusal; it names nothing of the request."""


def decode(reader: Reader, version: int) -> CodecAnswer:
    reader.string()  # group id
    reader.string()  # member id
    reader.int32()  # member epoch
    reader.nullable_string()  # instance id
    reader.nullable_string()  # rack
    reader.int32()  # rebalance timeout
    for _ in range(reader.nullable_array()):
        reader.string()  # subscribed topic
    reader.nullable_string()  # assignor
    for _ in range(reader.nullable_array()):
        reader.uuid()
        reader.int32s()
        reader.tags()
    reader.tags()
    return CodecAnswer(NewProtocolIsOff())


def encode(writer: Writer, version: int, response: NewProtocolIsOff, request: object) -> None:
    writer.int32(0)  # throttle time
    writer.int16(ErrorCode.UNSUPPORTED_VERSION)
    writer.nullable_string(None)
    writer.nullable_string(None)  # member id
    writer.int32(0)  # member epoch
    writer.int32(0)  # heartbeat interval
    writer.int8(_NULL_STRUCTURE)  # assignment
    writer.tags()


API = Api(68, "ConsumerGroupHeartbeat", 0, 0, flexible_from=0, decode=decode, encode=encode)
