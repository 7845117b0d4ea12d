"""Delegation tokens, which are stored in ``/delegation_token/tokens`` and cached by every broker
(KIP-48).

Kafka: ``DelegationTokenManager``, in later releases ``DelegationTokenManagerZk``.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Coroutine
from typing import Any

from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.host import Host
from ...protocol.security.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DelegationToken,
)
from ...protocol.security.scram import ITERATIONS_MIN, ScramCredential, credential_of
from ...protocol.values import changed
from ...protocol.znode_paths import DELEGATION_TOKEN_CHANGES, DELEGATION_TOKENS, TOKEN_CHANGE_PREFIX
from ...zkfake.messages import ZooKeeperError
from ..zookeeper.change_notifications import ChangeNotifications
from ..zookeeper.client import KafkaZkClient
from ..zookeeper.errors import Log
from ..zookeeper.requests import UNGUARDED


def encode_token(token: DelegationToken) -> bytes:
    """Return the content of a token's znode, without the HMAC, which is derived from the key."""
    value = {
        "version": 1,
        "owner": token.owner,
        "tokenRequester": token.requester,
        "renewers": list(token.renewers),
        "issueTimestamp": token.issued_at_ms,
        "maxTimestamp": token.ends_at_ms,
        "expiryTimestamp": token.expires_at_ms,
        "tokenId": token.token_id,
    }
    return json.dumps(value, separators=(",", ":")).encode()


def decode_token(data: bytes) -> DelegationToken:
    """Parse the content of a token's znode; raises ``ValueError`` if it is malformed."""
    try:
        value = json.loads(data)
        owner = value["owner"]
        return DelegationToken(
            value["tokenId"],
            owner,
            value.get("tokenRequester", owner),
            tuple(value["renewers"]),
            value["issueTimestamp"],
            value["expiryTimestamp"],
            value["maxTimestamp"],
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"malformed delegation token: {error!r}") from None


class DelegationTokens:
    """The tokens that one broker knows, and their creation, renewal and expiry."""

    def __init__(
        self,
        host: Host,
        zk: KafkaZkClient,
        config: BrokerConfig,
        log: Log,
        is_controller: Callable[[], bool],
        start_task: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """Create the store; ``is_controller`` returns whether this is the active controller."""
        self._is_controller = is_controller
        self._start_task = start_task
        self._log = log
        self._host = host
        self._zk = zk
        self._config = config
        self._key = config.delegation_token_key.encode()
        self._tokens: dict[str, DelegationToken] = {}
        self._followed = ChangeNotifications(
            host, zk, DELEGATION_TOKEN_CHANGES, self._apply_change, log
        )

    @property
    def is_enabled(self) -> bool:
        """True if a secret key for tokens is configured."""
        return bool(self._key)

    @property
    def followed(self) -> tuple[ChangeNotifications, ...]:
        """The followed notifications of changed tokens; none without a secret key."""
        return (self._followed,) if self.is_enabled else ()

    async def start(self) -> None:
        """Start to follow changes, read all stored tokens, and schedule the check for expiry."""
        if not self.is_enabled:
            return
        await self._zk.requests.make_sure_persistent_path_exists(DELEGATION_TOKENS)
        await self._zk.requests.make_sure_persistent_path_exists(DELEGATION_TOKEN_CHANGES)
        await self._followed.start()
        children = await self._zk.requests.get_children(DELEGATION_TOKENS, register_watch=False)
        for token_id in children:
            await self._read(token_id)
        self._schedule_expiry_check()

    async def _apply_change(self, data: bytes) -> None:
        await self._read(data.decode())

    async def _read(self, token_id: str) -> None:
        data, _ = await self._zk.requests.get_data_and_version(f"{DELEGATION_TOKENS}/{token_id}")
        if data is None:
            self._tokens.pop(token_id, None)
        else:
            self._tokens[token_id] = changed(decode_token(data), hmac=self._hmac(token_id))

    def _hmac(self, token_id: str) -> bytes:
        return hmac.digest(self._key, token_id.encode(), hashlib.sha512)

    # -- looking up ----------------------------------------------------------------------------

    def credential(
        self, mechanism: str, token_id: str
    ) -> tuple[DelegationToken, ScramCredential] | None:
        """Return a valid token, with the credential that its bearer authenticates by with SCRAM."""
        token = self._tokens.get(token_id)
        if token is None or self._is_expired(token):
            return None
        password = base64.b64encode(token.hmac).decode()
        salt = hashlib.sha256(token_id.encode()).digest()[:16]
        return token, credential_of(mechanism, password, salt, ITERATIONS_MIN)

    def all(self) -> tuple[DelegationToken, ...]:
        return tuple(self._tokens.values())

    def _by_hmac(self, value: bytes) -> DelegationToken | None:
        return next((token for token in self._tokens.values() if token.hmac == value), None)

    def _is_expired(self, token: DelegationToken) -> bool:
        return min(token.ends_at_ms, token.expires_at_ms) < self._host.wall_ms()

    # -- changing ------------------------------------------------------------------------------

    async def create(
        self, request: CreateDelegationTokenRequest, requester: str
    ) -> CreateDelegationTokenResponse:
        wall_ms = self._host.wall_ms()
        limit_ms = self._config["delegation.token.max.lifetime.ms"]
        wanted_ms = request.max_lifetime_ms
        ends_at_ms = wall_ms + (limit_ms if wanted_ms <= 0 else min(wanted_ms, limit_ms))
        expires_at_ms = min(ends_at_ms, wall_ms + self._config["delegation.token.expiry.time.ms"])
        token_id = base64.urlsafe_b64encode(self._host.rng.randbytes(16)).decode().rstrip("=")
        token = DelegationToken(
            token_id,
            request.owner or requester,
            requester,
            request.renewers,
            wall_ms,
            expires_at_ms,
            ends_at_ms,
            self._hmac(token_id),
        )
        await self._store(token)
        return CreateDelegationTokenResponse(ErrorCode.NONE, token)

    async def renew(self, value: bytes, period_ms: int, principal: str) -> tuple[ErrorCode, int]:
        """Renew the token with this HMAC; returns (error, new expiry time in milliseconds)."""
        default_ms = self._config["delegation.token.expiry.time.ms"]
        return await self._extend_expiry(
            value, default_ms if period_ms < 0 else period_ms, principal
        )

    async def expire(self, value: bytes, period_ms: int, principal: str) -> tuple[ErrorCode, int]:
        """Set the expiry of the token with this HMAC, or delete it at once if the period is
        negative; returns (error, new expiry time in milliseconds)."""
        token = self._by_hmac(value)
        if period_ms >= 0 or token is None or not _may_renew(principal, token):
            return await self._extend_expiry(value, period_ms, principal)
        await self._remove(token.token_id)
        return ErrorCode.NONE, self._host.wall_ms()

    async def _extend_expiry(
        self, value: bytes, period_ms: int, principal: str
    ) -> tuple[ErrorCode, int]:
        token = self._by_hmac(value)
        if token is None:
            return ErrorCode.DELEGATION_TOKEN_NOT_FOUND, -1
        if not _may_renew(principal, token):
            return ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH, -1
        if self._is_expired(token):
            return ErrorCode.DELEGATION_TOKEN_EXPIRED, -1
        expires_at_ms = min(token.ends_at_ms, self._host.wall_ms() + period_ms)
        await self._store(changed(token, expires_at_ms=expires_at_ms))
        return ErrorCode.NONE, expires_at_ms

    async def _store(self, token: DelegationToken) -> None:
        path = f"{DELEGATION_TOKENS}/{token.token_id}"
        await self._zk.requests.set_or_create(path, encode_token(token), UNGUARDED)
        self._tokens[token.token_id] = token
        await self._notify_brokers(token.token_id)

    async def remove_all(self) -> None:
        """Delete all tokens."""
        for token in self.all():
            await self._remove(token.token_id)

    async def _remove(self, token_id: str) -> None:
        await self._zk.requests.delete_path(
            f"{DELEGATION_TOKENS}/{token_id}", recursive_delete=False
        )
        self._tokens.pop(token_id, None)
        await self._notify_brokers(token_id)

    async def _notify_brokers(self, token_id: str) -> None:
        await self._zk.requests.create_sequential(
            f"{DELEGATION_TOKEN_CHANGES}/{TOKEN_CHANGE_PREFIX}", token_id.encode()
        )

    # -- expiring ------------------------------------------------------------------------------

    def _schedule_expiry_check(self) -> None:
        interval_ms = self._config["delegation.token.expiry.check.interval.ms"]
        self._host.call_later_ms(interval_ms, self._check_expired)

    def _check_expired(self) -> None:
        """Delete expired tokens if this is the active controller, which notifies the others."""
        self._schedule_expiry_check()
        expired = [token for token in self._tokens.values() if self._is_expired(token)]
        if expired and self._is_controller():
            self._start_task(self._delete(expired))

    async def _delete(self, expired: list[DelegationToken]) -> None:
        try:
            for token in expired:
                self._log("info", f"delegation token {token.token_id} of {token.owner} expired")
                await self._remove(token.token_id)
        except ZooKeeperError as error:
            self._log("warn", f"deleting expired delegation tokens: {error}")  # retried next time


def _may_renew(principal: str, token: DelegationToken) -> bool:
    return principal == token.owner or principal in token.renewers
