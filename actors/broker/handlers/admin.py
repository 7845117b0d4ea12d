"""Handlers of the admin APIs; the rules are in ``statemachines.admin.manager``."""

from __future__ import annotations

from typing import Any

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
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class AdminHandlers(BrokerHandlers):
    """Each is a coroutine: it may wait for ZooKeeper, the controller or the metadata."""

    def by_type(self) -> dict[type, Handler]:
        return {
            CreateTopicsRequest: self.create_topics,
            DeleteTopicsRequest: self.delete_topics,
            CreatePartitionsRequest: self.create_partitions,
            ElectLeadersRequest: self.elect_leaders,
            AlterPartitionReassignmentsRequest: self.alter_partition_reassignments,
            ListPartitionReassignmentsRequest: self.list_partition_reassignments,
            DescribeConfigsRequest: self.describe_configs,
            AlterConfigsRequest: self.alter_configs,
        }

    async def create_topics(self, request: CreateTopicsRequest, delivery: Delivery) -> Any:
        client_id = "" if delivery.context is None else delivery.context.client_id
        return await self._admin.topics.create_topics(request, client_id)

    async def delete_topics(self, request: DeleteTopicsRequest, _delivery: Delivery) -> Any:
        return await self._admin.topics.delete_topics(request)

    async def create_partitions(self, request: CreatePartitionsRequest, _delivery: Delivery) -> Any:
        return await self._admin.topics.create_partitions(request)

    async def elect_leaders(self, request: ElectLeadersRequest, _delivery: Delivery) -> Any:
        return await self._admin.partitions.elect_leaders(request)

    async def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest, _delivery: Delivery
    ) -> Any:
        return await self._admin.partitions.alter_partition_reassignments(request)

    async def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest, _delivery: Delivery
    ) -> Any:
        return await self._admin.partitions.list_partition_reassignments(request)

    async def describe_configs(self, request: DescribeConfigsRequest, _delivery: Delivery) -> Any:
        return await self._admin.configs.describe_configs(request)

    async def alter_configs(self, request: AlterConfigsRequest, delivery: Delivery) -> Any:
        """No client is answered that names a resource twice: ``AlterConfigsResponse.errors``, which
        the metrics of the response need, throws."""
        response = await self._admin.config_changes.alter_configs(request)
        if delivery.context is not None and not request.incremental:
            named = [resource for resource, _, _ in response.results]
            if len(set(named)) < len(named):
                return None
        return response
