"""DescribeDelegationToken (key 41): tokens by their owners (KIP-48).

Versions 0-3. 2: flexible. 3: who asked for them (KIP-373).
"""

from __future__ import annotations

from ....protocol.security.delegation_tokens import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ..api import Api
from ..primitives import Reader, Writer
from .api_38_create_delegation_token import read_principal, write_bytes, write_principal


def decode(reader: Reader, version: int) -> DescribeDelegationTokenRequest:
    count = reader.nullable_array()
    owners: list[str] = []
    for _ in range(count):
        owners.append(read_principal(reader))
    reader.tags()
    return DescribeDelegationTokenRequest(None if count < 0 else tuple(owners))


def encode(
    writer: Writer, version: int, response: DescribeDelegationTokenResponse, request: object
) -> None:
    writer.int16(response.error)
    writer.array(len(response.tokens))
    for token in response.tokens:
        write_principal(writer, token.owner)
        if version >= 3:
            write_principal(writer, token.requester)
        writer.int64(token.issued_at_ms)
        writer.int64(token.expires_at_ms)
        writer.int64(token.ends_at_ms)
        writer.string(token.token_id)
        write_bytes(writer, token.hmac)
        writer.array(len(token.renewers))
        for renewer in token.renewers:
            write_principal(writer, renewer)
            writer.tags()
        writer.tags()
    writer.int32(writer.throttle_ms)
    writer.tags()


API = Api(41, "DescribeDelegationToken", 0, 3, flexible_from=2, decode=decode, encode=encode)
