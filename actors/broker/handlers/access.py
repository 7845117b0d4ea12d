"""Handlers of the requests about ACLs."""

from __future__ import annotations

from ....protocol.security.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class AccessHandlers(BrokerHandlers):
    """Any broker answers them; the others learn of changes by ZooKeeper."""

    def by_type(self) -> dict[type, Handler]:
        return {
            DescribeAclsRequest: self.describe_acls,
            CreateAclsRequest: self.create_acls,
            DeleteAclsRequest: self.delete_acls,
        }

    async def describe_acls(
        self, request: DescribeAclsRequest, _delivery: Delivery
    ) -> DescribeAclsResponse:
        return await self._security.acls.describe(request)

    async def create_acls(
        self, request: CreateAclsRequest, _delivery: Delivery
    ) -> CreateAclsResponse:
        return await self._security.acls.create(request)

    async def delete_acls(
        self, request: DeleteAclsRequest, _delivery: Delivery
    ) -> DeleteAclsResponse:
        return await self._security.acls.delete(request)
