"""Delegation tokens and the messages about them (KIP-48, KIP-373)."""

from __future__ import annotations

from ..errors import ErrorCode
from ..values import Request, message


@message
class DelegationToken:
    token_id: str
    owner: str
    """A principal, such as ``User:alice``."""
    requester: str
    renewers: tuple[str, ...]
    issued_at_ms: int
    expires_at_ms: int
    ends_at_ms: int
    """Time in milliseconds beyond which the token cannot be renewed."""
    hmac: bytes = b""


@message
class CreateDelegationTokenRequest(Request["CreateDelegationTokenResponse"]):
    renewers: tuple[str, ...]
    max_lifetime_ms: int = -1
    owner: str | None = None
    """Principal that will own the token; None for the requester."""


@message
class CreateDelegationTokenResponse:
    error: ErrorCode
    token: DelegationToken


@message
class RenewDelegationTokenRequest(Request["RenewDelegationTokenResponse"]):
    hmac: bytes
    period_ms: int


@message
class RenewDelegationTokenResponse:
    error: ErrorCode
    expires_at_ms: int = -1


@message
class ExpireDelegationTokenRequest(Request["ExpireDelegationTokenResponse"]):
    hmac: bytes
    period_ms: int
    """Milliseconds until the token expires; below 0 the token expires immediately."""


@message
class ExpireDelegationTokenResponse:
    error: ErrorCode
    expires_at_ms: int = -1


@message
class DescribeDelegationTokenRequest(Request["DescribeDelegationTokenResponse"]):
    owners: tuple[str, ...] | None
    """Owners of the tokens to describe; None for all owners."""


@message
class DescribeDelegationTokenResponse:
    error: ErrorCode
    tokens: tuple[DelegationToken, ...] = ()
