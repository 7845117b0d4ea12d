"""ConsumerGroupDescribe (key 69): groups of the new protocol (KIP-848).

Version 0, flexible. A broker with ZooKeeper advertises it, and answers UNSUPPORTED_VERSION for each
group: its coordinator has the classic protocol only. Clients ask DescribeGroups then.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....protocol.errors import ErrorCode
from ..api import Api, CodecAnswer
from ..primitives import Reader, Writer
from .api_03_metadata import NOT_ASKED


@dataclass(frozen=True, slots=True)
class NotOfNewProtocol:
    """The refusal, for the groups that were asked for."""

    group_ids: tuple[str, ...]


def decode(reader: Reader, version: int) -> CodecAnswer:
    group_ids = reader.strings()
    reader.boolean()  # whether to include authorised operations
    reader.tags()
    return CodecAnswer(NotOfNewProtocol(group_ids))


def encode(writer: Writer, version: int, response: NotOfNewProtocol, request: object) -> None:
    writer.int32(0)  # throttle time
    writer.array(len(response.group_ids))
    for group_id in response.group_ids:
        writer.int16(ErrorCode.UNSUPPORTED_VERSION)
        writer.nullable_string(None)
        writer.string(group_id)
        writer.string("")  # state
        writer.int32(0)  # group epoch
        writer.int32(0)  # assignment epoch
        writer.string("")  # assignor
        writer.array(0)  # members
        writer.int32(NOT_ASKED)
        writer.tags()
    writer.tags()


API = Api(69, "ConsumerGroupDescribe", 0, 0, flexible_from=0, decode=decode, encode=encode)
