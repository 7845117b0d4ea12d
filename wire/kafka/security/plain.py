"""SASL PLAIN: user and password in one token (RFC 4616). Kafka: ``PlainSaslServer``."""

from __future__ import annotations

from .sasl import Credentials, SaslAuthenticationError, SaslError


class PlainServer:
    """The broker's side of PLAIN."""

    __slots__ = ("_credentials", "_tells", "expires_at_ms", "is_complete", "user")

    is_token_authenticated = False

    def __init__(self, credentials: Credentials, *, tells_malformed: bool) -> None:
        """``tells_malformed``: whether a client is told what is wrong with its token."""
        self._credentials = credentials
        self._tells = SaslAuthenticationError if tells_malformed else SaslError
        self.is_complete: bool = False
        self.user: str = ""
        self.expires_at_ms: int | None = None

    def evaluate(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", 3)
        if len(parts) != 3:
            raise self._tells(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        authorization_id, user, password = parts
        if not user:
            raise self._tells("Authentication failed: username not specified")
        if not password:
            raise self._tells("Authentication failed: password not specified")
        if self._credentials.password(user) != password:
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.user = user
        self.is_complete = True
        return b""
