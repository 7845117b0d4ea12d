"""Handlers of what clients ask about authentication once they are in."""

from __future__ import annotations

from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class AuthenticationHandlers(BrokerHandlers):
    """SASL requests out of place, and SCRAM credentials.

    A listener with SASL answers handshakes itself. What comes here was sent to one without, or
    after the client was known.
    """

    def by_type(self) -> dict[type, Handler]:
        return {
            SaslHandshakeRequest: self.sasl_handshake,
            SaslAuthenticateRequest: self.sasl_authenticate,
            DescribeUserScramCredentialsRequest: self.describe_user_scram_credentials,
            AlterUserScramCredentialsRequest: self.alter_user_scram_credentials,
        }

    def sasl_handshake(
        self, _request: SaslHandshakeRequest, _delivery: Delivery
    ) -> SaslHandshakeResponse:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)

    def sasl_authenticate(
        self, _request: SaslAuthenticateRequest, _delivery: Delivery
    ) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(
            ErrorCode.ILLEGAL_SASL_STATE,
            "SaslAuthenticate request received after successful authentication",
        )

    async def describe_user_scram_credentials(
        self, request: DescribeUserScramCredentialsRequest, _delivery: Delivery
    ) -> DescribeUserScramCredentialsResponse:
        return await self._security.scram_admin.describe(request)

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest, _delivery: Delivery
    ) -> Any:
        if not self._controller.is_active:
            users = dict.fromkeys(
                [user for user, _ in request.deletions] + [u.user for u in request.upsertions]
            )
            return AlterUserScramCredentialsResponse(
                tuple((user, ErrorCode.NOT_CONTROLLER, None) for user in users)
            )
        return await self._security.scram_admin.alter(request)
