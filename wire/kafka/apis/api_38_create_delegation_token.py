"""CreateDelegationToken (key 38): a token that stands for its owner (KIP-48).

Versions 0-3. 2: flexible. 3: for another owner (KIP-373).
"""

from __future__ import annotations

from ....protocol.errors import ClientError
from ....protocol.security.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ..api import Api
from ..primitives import Reader, Writer


def read_principal(reader: Reader) -> str:
    kind, name = reader.string(), reader.string()
    reader.tags()
    return f"{kind}:{name}"


def write_principal(writer: Writer, principal: str) -> None:
    kind, _, name = principal.partition(":")
    writer.string(kind)
    writer.string(name)


def read_bytes(reader: Reader) -> bytes:
    value = reader.nullable_bytes()
    if value is None:
        raise ClientError("null where bytes are required")
    return bytes(value)


def write_bytes(writer: Writer, value: bytes) -> None:
    writer.bytes_size(len(value))
    writer.raw(value)


def decode(reader: Reader, version: int) -> CreateDelegationTokenRequest:
    owner = None
    if version >= 3:
        kind, name = reader.nullable_string(), reader.nullable_string()
        owner = f"{kind or ''}:{name}" if name else None
    renewers: list[str] = []
    for _ in range(reader.array()):
        renewers.append(read_principal(reader))
    max_lifetime_ms = reader.int64()
    reader.tags()
    return CreateDelegationTokenRequest(tuple(renewers), max_lifetime_ms, owner)


def encode(
    writer: Writer, version: int, response: CreateDelegationTokenResponse, request: object
) -> None:
    token = response.token
    writer.int16(response.error)
    write_principal(writer, token.owner)
    if version >= 3:
        write_principal(writer, token.requester)
    writer.int64(token.issued_at_ms)
    writer.int64(token.expires_at_ms)
    writer.int64(token.ends_at_ms)
    writer.string(token.token_id)
    write_bytes(writer, token.hmac)
    writer.int32(writer.throttle_ms)
    writer.tags()


API = Api(38, "CreateDelegationToken", 0, 3, flexible_from=2, decode=decode, encode=encode)
