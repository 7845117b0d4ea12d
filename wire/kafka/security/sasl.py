"""The common part of the SASL mechanisms: an exchange of tokens, and the two ways to fail."""

from __future__ import annotations

from typing import Protocol

from ....protocol.security.scram import ScramCredential
from ....protocol.values import message


class SaslError(Exception):
    """The exchange failed; why is not told to the client (Kafka: ``SaslException``)."""


class SaslAuthenticationError(SaslError):
    """The exchange failed, and the client is told why."""


@message
class TokenCredential:
    """The credential that belongs to a delegation token."""

    owner: str
    """Name of the principal that it stands for."""
    credential: ScramCredential
    expires_at_ms: int


class Credentials(Protocol):
    """A broker's knowledge of users."""

    def password(self, user: str) -> str | None:
        """A user's password, for PLAIN; None for an unknown user."""
        ...

    def scram(self, mechanism: str, user: str) -> ScramCredential | None: ...

    def delegation_token(self, mechanism: str, token_id: str) -> TokenCredential | None: ...


class SaslServer(Protocol):
    """The broker's side of one exchange."""

    is_complete: bool
    user: str
    """Who the client is, once the exchange is complete."""
    expires_at_ms: int | None
    """When the client's credential does; None: never."""
    is_token_authenticated: bool
    """Whether it came with a delegation token."""

    def evaluate(self, token: bytes) -> bytes:
        """Answer a token of the client; raises ``SaslError``."""
        ...
