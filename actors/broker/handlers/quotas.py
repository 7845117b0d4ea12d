"""Handlers of the requests about quotas."""

from __future__ import annotations

from ....protocol.security.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ....statemachines.security.quota_admin import QuotaAdmin
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers, BrokerParts


class QuotaHandlers(BrokerHandlers):
    """Quotas are in ZooKeeper, from where every broker learns of them."""

    def __init__(self, parts: BrokerParts) -> None:
        super().__init__(parts)
        self._quotas = QuotaAdmin(parts.zk)

    def by_type(self) -> dict[type, Handler]:
        return {
            DescribeClientQuotasRequest: self.describe_client_quotas,
            AlterClientQuotasRequest: self.alter_client_quotas,
        }

    async def describe_client_quotas(
        self, request: DescribeClientQuotasRequest, _delivery: Delivery
    ) -> DescribeClientQuotasResponse:
        return await self._quotas.describe(request)

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, _delivery: Delivery
    ) -> AlterClientQuotasResponse:
        return await self._quotas.alter(request)
