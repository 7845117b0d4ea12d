"""SaslHandshake (key 17): the mechanism that a client wants to authenticate with.

Versions 0-1. After 1 the tokens come in SaslAuthenticate requests (KIP-152), after 0 bare.
"""

from __future__ import annotations

from ....protocol.security.authentication import SaslHandshakeRequest, SaslHandshakeResponse
from ..api import Api
from ..primitives import Reader, Writer

KEY = 17


def decode(reader: Reader, version: int) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(reader.string())


def encode(writer: Writer, version: int, response: SaslHandshakeResponse, request: object) -> None:
    writer.int16(response.error)
    writer.array(len(response.mechanisms))
    for mechanism in response.mechanisms:
        writer.string(mechanism)


API = Api(KEY, "SaslHandshake", 0, 1, flexible_from=99, decode=decode, encode=encode)
