"""Delegation tokens, which stand for their owners (KIP-48)."""

from __future__ import annotations

from typing import Any

from ....protocol.security.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DelegationToken,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from ..api import Api, ApiCall, each, reads, writes


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}"


def _parts(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _create(
    owner_type: str | None, owner_name: str | None, renewers: tuple[str, ...], lifetime_ms: int
) -> CreateDelegationTokenRequest:
    owner = f"{owner_type or ''}:{owner_name}" if owner_name else None
    return CreateDelegationTokenRequest(renewers, lifetime_ms, owner)


def _token(token: DelegationToken) -> tuple[Any, ...]:
    times = (token.issued_at_ms, token.expires_at_ms, token.ends_at_ms)
    return *_parts(token.owner), *_parts(token.requester), *times, token.token_id, token.hmac


def _created(response: CreateDelegationTokenResponse, _call: ApiCall) -> tuple[Any, ...]:
    return response.error, *_token(response.token)


_PRINCIPALS = "principalType principalName tokenRequesterPrincipalType tokenRequesterPrincipalName"
CREATE_DELEGATION_TOKEN = Api(
    38,
    reads(
        _create,
        "ownerPrincipalType ownerPrincipalName renewers(principalType principalName) maxLifetimeMs",
        renewers=each(_principal),
    ),
    writes(
        f"[errorCode {_PRINCIPALS} issueTimestampMs expiryTimestampMs maxTimestampMs tokenId hmac]",
        convert=_created,
    ),
)
"""Create a token. Version 3 adds tokens for another owner (KIP-373)."""

_EXPIRY = writes("errorCode=error expiryTimestampMs=expires_at_ms")
RENEW_DELEGATION_TOKEN = Api(39, reads(RenewDelegationTokenRequest, "hmac renewPeriodMs"), _EXPIRY)
"""Extend the life of a token."""

EXPIRE_DELEGATION_TOKEN = Api(
    40, reads(ExpireDelegationTokenRequest, "hmac expiryTimePeriodMs"), _EXPIRY
)
"""Make a token expire sooner, or at once."""

DESCRIBE_DELEGATION_TOKEN = Api(
    41,
    reads(
        DescribeDelegationTokenRequest,
        "owners(principalType principalName)",
        owners=lambda owners: None if owners is None else each(_principal)(owners),
    ),
    writes(
        f"errorCode=error tokens[{_PRINCIPALS} issueTimestamp expiryTimestamp maxTimestamp tokenId "
        "hmac renewers[principalType principalName]]",
        tokens=lambda tokens: [(*_token(token), token.renewers) for token in tokens],
        renewers=lambda renewers: [_parts(renewer) for renewer in renewers],
    ),
)
"""List tokens by their owners. Version 3 adds the principals that requested them (KIP-373)."""
