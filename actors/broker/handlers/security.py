"""Handlers of requests about users, ACLs and quotas from clients after authentication."""

from __future__ import annotations

from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.security.acls import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from ....protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from ....protocol.security.quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest
from ....statemachines.security.quota_admin import QuotaAdmin
from ...delivery import Delivery
from ...port import Handler
from .broker_handlers import BrokerHandlers, answered_by


class SecurityHandlers(BrokerHandlers):
    """Requests that any broker answers; other brokers learn of changes through ZooKeeper.

    A listener with SASL answers handshakes itself. Handshakes that arrive here were sent to a
    listener without SASL, or after the client was authenticated.
    """

    def by_type(self) -> dict[type, Handler]:
        acls, quotas = self._broker.security.acls, QuotaAdmin(self._broker.zk)
        return {
            SaslHandshakeRequest: self.sasl_handshake,
            SaslAuthenticateRequest: self.sasl_authenticate,
            DescribeUserScramCredentialsRequest: answered_by(
                self._broker.security.scram_admin.describe
            ),
            AlterUserScramCredentialsRequest: self.alter_user_scram_credentials,
            DescribeAclsRequest: answered_by(acls.describe),
            CreateAclsRequest: answered_by(acls.create),
            DeleteAclsRequest: answered_by(acls.delete),
            DescribeClientQuotasRequest: answered_by(quotas.describe),
            AlterClientQuotasRequest: answered_by(quotas.alter),
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

    async def alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest, _delivery: Delivery
    ) -> Any:
        if not self._broker.controller.is_active:
            users = dict.fromkeys(
                [user for user, _ in request.deletions] + [u.user for u in request.upsertions]
            )
            return AlterUserScramCredentialsResponse(
                tuple((user, ErrorCode.NOT_CONTROLLER, None) for user in users)
            )
        return await self._broker.security.scram_admin.alter(request)
