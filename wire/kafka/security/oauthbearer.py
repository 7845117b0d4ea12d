"""SASL OAUTHBEARER: the client brings a JSON Web Token (RFC 7628, KIP-255).

Kafka: ``OAuthBearerSaslServer``, ``OAuthBearerClientInitialResponse``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .sasl import SaslAuthenticationError, SaslError
from .tokens import TokenRefused, Validator

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS = r"(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*"
_INITIAL = re.compile(rf"n,(?:a=(?P<authzid>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class OAuthBearerServer:
    """The broker's side of OAUTHBEARER."""

    __slots__ = ("_refusal", "_validate", "_wall_ms", "expires_at_ms", "is_complete", "user")

    is_token_authenticated = False

    def __init__(self, validate: Validator, wall_ms: Callable[[], int]) -> None:
        self._validate = validate
        self._wall_ms = wall_ms
        self._refusal = ""
        """What the client was told; it acknowledges it with a single byte, and then it fails."""
        self.is_complete: bool = False
        self.user: str = ""
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        if token == b"\1" and self._refusal:
            raise SaslAuthenticationError(self._refusal)
        authorization_id, value = _parse(token.decode("utf-8", "replace"))
        try:
            found = self._validate(value, self._wall_ms())
        except TokenRefused as refused:
            scope = f', "scope":"{refused.scope}"' if refused.scope is not None else ""
            self._refusal = f'{{"status":"{refused.status}"{scope}}}'
            return self._refusal.encode()
        if authorization_id not in ("", found.user):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({found.user})"
            )
        self.user, self.expires_at_ms = found.user, found.expires_at_ms
        self.is_complete = True
        return b""


def _parse(text: str) -> tuple[str, str]:
    """Authorization id and token of a client's first message; raises ``SaslError``."""
    match = _INITIAL.fullmatch(text)
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in match["pairs"].split("\1") if pair)
    auth = pairs.get("auth")
    if auth is None:
        raise SaslError("Invalid OAUTHBEARER client first message: 'auth' not specified")
    found = _AUTH.fullmatch(auth)
    if found is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if found["scheme"].lower() != "bearer":
        raise SaslError(f"Invalid scheme in OAUTHBEARER client first message: {found['scheme']}")
    return match["authzid"] or "", found["token"]
