"""Handlers of the requests about delegation tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ....protocol.data import INTERNAL_CONTEXT, RequestContext
from ....protocol.errors import ErrorCode
from ....protocol.security.acls import AclOperation, ResourceType
from ....protocol.security.configuration import ANONYMOUS, PLAINTEXT, SSL
from ....protocol.security.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DelegationToken,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from ...delivery import Delivery
from ...port import Handler
from .broker_handlers import BrokerHandlers

_NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


class TokenHandlers(BrokerHandlers):
    """Requests about tokens, allowed only to clients that authenticated other than by a token."""

    def by_type(self) -> dict[type, Handler]:
        return {
            CreateDelegationTokenRequest: self.create,
            RenewDelegationTokenRequest: self.renew,
            ExpireDelegationTokenRequest: self.expire,
            DescribeDelegationTokenRequest: self.describe,
        }

    def _refusal(self, context: RequestContext) -> ErrorCode | None:
        is_unknown = context.security_protocol == PLAINTEXT or (
            context.security_protocol == SSL and context.principal == ANONYMOUS
        )
        if context.is_token_authenticated or is_unknown:
            return _NOT_ALLOWED
        if not self._broker.security.tokens.is_enabled:
            return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        return None

    def _may(
        self, context: RequestContext, operation: AclOperation, kind: ResourceType, name: str
    ) -> bool:
        authorizer = self._broker.security.authorizer
        return authorizer is None or authorizer.is_allowed(
            context.principal, context.client_host, operation, kind, name
        )

    async def create(
        self, request: CreateDelegationTokenRequest, delivery: Delivery
    ) -> CreateDelegationTokenResponse:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        requester, owner = context.principal, request.owner or context.principal
        error = self._refusal(context)
        if error is not _NOT_ALLOWED:
            if owner != requester and not self._may(
                context, AclOperation.CREATE_TOKENS, ResourceType.USER, owner
            ):
                error = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
            elif any(not renewer.startswith("User:") for renewer in request.renewers):
                error = ErrorCode.INVALID_PRINCIPAL_TYPE
        if error is not None:
            nothing = DelegationToken("", owner, requester, (), -1, -1, -1)
            return CreateDelegationTokenResponse(error, nothing)
        return await self._broker.security.tokens.create(request, requester)

    async def renew(
        self, request: RenewDelegationTokenRequest, delivery: Delivery
    ) -> RenewDelegationTokenResponse:
        renew = self._broker.security.tokens.renew
        return RenewDelegationTokenResponse(*await self._change(renew, request, delivery))

    async def expire(
        self, request: ExpireDelegationTokenRequest, delivery: Delivery
    ) -> ExpireDelegationTokenResponse:
        expire = self._broker.security.tokens.expire
        return ExpireDelegationTokenResponse(*await self._change(expire, request, delivery))

    async def _change(
        self,
        change: Callable[[bytes, int, str], Awaitable[tuple[ErrorCode, int]]],
        request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
        delivery: Delivery,
    ) -> tuple[ErrorCode, int]:
        """Renew or expire a token; returns an error and the new time at which the token expires."""
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        error = self._refusal(context)
        if error is not None:
            return error, -1
        return await change(request.hmac, request.period_ms, context.principal)

    def describe(
        self, request: DescribeDelegationTokenRequest, delivery: Delivery
    ) -> DescribeDelegationTokenResponse:
        context: RequestContext = delivery.context or INTERNAL_CONTEXT
        error = self._refusal(context)
        if error is not None:
            return DescribeDelegationTokenResponse(error)
        owners = request.owners
        return DescribeDelegationTokenResponse(
            ErrorCode.NONE,
            tuple(
                token
                for token in self._broker.security.tokens.all()
                if (owners is None or any(_concerns(token, owner) for owner in owners))
                and self._may_see(context, token)
            ),
        )

    def _may_see(self, context: RequestContext, token: DelegationToken) -> bool:
        return (
            _concerns(token, context.principal)
            or self._may(
                context, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id
            )
            or self._may(context, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
        )


def _concerns(token: DelegationToken, principal: str) -> bool:
    return principal == token.owner or principal in token.renewers
