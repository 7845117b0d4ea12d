"""Messages for SASL authentication, and for the administration of SCRAM credentials."""

from __future__ import annotations

from ..errors import ErrorCode
from ..values import Request, message


@message
class SaslHandshakeRequest(Request["SaslHandshakeResponse"]):
    mechanism: str


@message
class SaslHandshakeResponse:
    error: ErrorCode
    mechanisms: tuple[str, ...] = ()
    """The enabled mechanisms."""


@message
class SaslAuthenticateRequest(Request["SaslAuthenticateResponse"]):
    token: bytes


@message
class SaslAuthenticateResponse:
    error: ErrorCode
    error_message: str | None = None
    token: bytes = b""
    session_lifetime_ms: int = 0


@message
class DescribeUserScramCredentialsRequest(Request["DescribeUserScramCredentialsResponse"]):
    users: tuple[str, ...] | None
    """Users to describe; None or empty for all users."""


@message
class UserScramCredentials:
    user: str
    error: ErrorCode
    error_message: str | None = None
    credentials: tuple[tuple[int, int], ...] = ()
    """(number of the mechanism, iterations) pairs."""


@message
class DescribeUserScramCredentialsResponse:
    error: ErrorCode
    error_message: str | None = None
    results: tuple[UserScramCredentials, ...] = ()


@message
class ScramUpsertion:
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


@message
class AlterUserScramCredentialsRequest(Request["AlterUserScramCredentialsResponse"]):
    deletions: tuple[tuple[str, int], ...] = ()
    """(user, number of the mechanism) pairs."""
    upsertions: tuple[ScramUpsertion, ...] = ()


@message
class AlterUserScramCredentialsResponse:
    results: tuple[tuple[str, ErrorCode, str | None], ...]
    """(user, error, message) triples."""
