"""ExpireDelegationToken (key 40): let a token end sooner, or at once (KIP-48).

Versions 0-2. 2: flexible.
"""

from __future__ import annotations

from ....protocol.security.delegation_tokens import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from ..api import Api
from ..primitives import Reader, Writer
from .api_38_create_delegation_token import read_bytes


def decode(reader: Reader, version: int) -> ExpireDelegationTokenRequest:
    hmac, period_ms = read_bytes(reader), reader.int64()
    reader.tags()
    return ExpireDelegationTokenRequest(hmac, period_ms)


def encode(
    writer: Writer, version: int, response: ExpireDelegationTokenResponse, request: object
) -> None:
    writer.int16(response.error)
    writer.int64(response.expires_at_ms)
    writer.int32(writer.throttle_ms)
    writer.tags()


API = Api(40, "ExpireDelegationToken", 0, 2, flexible_from=2, decode=decode, encode=encode)
