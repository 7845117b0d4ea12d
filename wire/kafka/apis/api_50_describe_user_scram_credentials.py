"""DescribeUserScramCredentials (key 50): which SCRAM credentials users have (KIP-554).

Version 0, flexible.
"""

from __future__ import annotations

from ....protocol.security.authentication import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DescribeUserScramCredentialsRequest:
    count = reader.nullable_array()
    users: list[str] = []
    for _ in range(count):
        users.append(reader.string())
        reader.tags()
    reader.tags()
    return DescribeUserScramCredentialsRequest(None if count < 0 else tuple(users))


def encode(
    writer: Writer, version: int, response: DescribeUserScramCredentialsResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.int16(response.error)
    writer.nullable_string(response.error_message or ("" if not response.error else None))
    writer.array(len(response.results))
    for result in response.results:
        writer.string(result.user)
        writer.int16(result.error)
        writer.nullable_string(result.error_message)
        writer.array(len(result.credentials))
        for mechanism, iterations in result.credentials:
            writer.int8(mechanism)
            writer.int32(iterations)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(50, "DescribeUserScramCredentials", 0, 0, flexible_from=0, decode=decode, encode=encode)
