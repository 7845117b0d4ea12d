"""Handlers of the admin APIs; the rules are in ``statemachines.admin.manager``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....protocol.admin import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from .broker_base import BrokerBase

if TYPE_CHECKING:
    from ...delivery import Delivery


class AdminHandlers(BrokerBase):
    """Each is a coroutine: it may wait for ZooKeeper, the controller or the metadata."""

    async def on_create_topics_request(
        self, request: CreateTopicsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.create_topics(request)

    async def on_delete_topics_request(
        self, request: DeleteTopicsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.delete_topics(request)

    async def on_create_partitions_request(
        self, request: CreatePartitionsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.create_partitions(request)

    async def on_elect_leaders_request(
        self, request: ElectLeadersRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.elect_leaders(request)

    async def on_alter_partition_reassignments_request(
        self, request: AlterPartitionReassignmentsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.alter_partition_reassignments(request)

    async def on_list_partition_reassignments_request(
        self, request: ListPartitionReassignmentsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.list_partition_reassignments(request)

    async def on_describe_configs_request(
        self, request: DescribeConfigsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.describe_configs(request)

    async def on_alter_configs_request(
        self, request: AlterConfigsRequest, _delivery: Delivery
    ) -> Any:
        return await self.admin.alter_configs(request)
