"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials of users (KIP-554).

Version 0, flexible.
"""

from __future__ import annotations

from ....protocol.errors import ClientError
from ....protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramUpsertion,
)
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> AlterUserScramCredentialsRequest:
    deletions: list[tuple[str, int]] = []
    for _ in range(reader.array()):
        deletions.append((reader.string(), reader.int8()))
        reader.tags()
    upsertions: list[ScramUpsertion] = []
    for _ in range(reader.array()):
        name, mechanism, iterations = reader.string(), reader.int8(), reader.int32()
        salt, salted_password = _bytes(reader), _bytes(reader)
        reader.tags()
        upsertions.append(ScramUpsertion(name, mechanism, iterations, salt, salted_password))
    reader.tags()
    return AlterUserScramCredentialsRequest(tuple(deletions), tuple(upsertions))


def _bytes(reader: Reader) -> bytes:
    value = reader.nullable_bytes()
    if value is None:
        raise ClientError("null where bytes are required")
    return bytes(value)


def encode(
    writer: Writer, version: int, response: AlterUserScramCredentialsResponse, request: object
) -> None:
    writer.int32(writer.throttle_ms)
    writer.array(len(response.results))
    for user, error, message in response.results:
        writer.string(user)
        writer.int16(error)
        writer.nullable_string(message)
        writer.tags()
    writer.tags()


API = Api(51, "AlterUserScramCredentials", 0, 0, flexible_from=0, decode=decode, encode=encode)
