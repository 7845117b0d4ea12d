"""SaslAuthenticate (key 36): one token of a SASL exchange.

Versions 0-2. 1: how long the session lasts (KIP-368). 2: flexible.
"""

from __future__ import annotations

from ....protocol.errors import ClientError
from ....protocol.security.authentication import SaslAuthenticateRequest, SaslAuthenticateResponse
from ..api import Api
from ..primitives import Reader, Writer

KEY = 36


def decode(reader: Reader, version: int) -> SaslAuthenticateRequest:
    token = reader.nullable_bytes()
    if token is None:
        raise ClientError("the token of SaslAuthenticate is null")
    reader.tags()
    return SaslAuthenticateRequest(bytes(token))


def encode(
    writer: Writer, version: int, response: SaslAuthenticateResponse, request: object
) -> None:
    writer.int16(response.error)
    writer.nullable_string(response.error_message)
    writer.bytes_size(len(response.token))
    writer.raw(response.token)
    if version >= 1:
        writer.int64(response.session_lifetime_ms)
    writer.tags()


API = Api(KEY, "SaslAuthenticate", 0, 2, flexible_from=2, decode=decode, encode=encode)
