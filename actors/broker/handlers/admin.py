"""Handlers of the admin APIs; the rules are in ``statemachines.admin.manager``, in
``replication.log_dirs`` (KIP-113) and in ``statemachines.controller.flows.features`` (KIP-584)."""

from __future__ import annotations

from typing import Any

from ....protocol.admin import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from ....protocol.errors import ErrorCode
from ....statemachines.controller.events import FeatureResults, UpdateFeatures
from ...delivery import Delivery
from ...port import Handler
from .broker_handlers import BrokerHandlers, answered_by


class AdminHandlers(BrokerHandlers):
    """Admin requests; most handlers may wait for ZooKeeper, the controller or the metadata."""

    def by_type(self) -> dict[type, Handler]:
        admin = self._broker.admin
        return {
            CreateTopicsRequest: self.create_topics,
            DeleteTopicsRequest: answered_by(admin.topics.delete_topics),
            CreatePartitionsRequest: answered_by(admin.topics.create_partitions),
            ElectLeadersRequest: answered_by(admin.partitions.elect_leaders),
            AlterPartitionReassignmentsRequest: answered_by(
                admin.partitions.alter_partition_reassignments
            ),
            ListPartitionReassignmentsRequest: answered_by(
                admin.partitions.list_partition_reassignments
            ),
            DescribeConfigsRequest: answered_by(admin.configs.describe_configs),
            AlterConfigsRequest: self.alter_configs,
            DescribeLogDirsRequest: self.describe_log_dirs,
            AlterReplicaLogDirsRequest: self.alter_replica_log_dirs,
            UpdateFeaturesRequest: self.update_features,
        }

    async def create_topics(self, request: CreateTopicsRequest, delivery: Delivery) -> Any:
        client_id = "" if delivery.context is None else delivery.context.client_id
        return await self._broker.admin.topics.create_topics(request, client_id)

    async def alter_configs(self, request: AlterConfigsRequest, delivery: Delivery) -> Any:
        """Alter configurations. A client that names a resource twice gets no answer, as in Kafka
        ``AlterConfigsResponse.errors``, which the metrics of the response need, throws."""
        response = await self._broker.admin.config_changes.alter_configs(request)
        if delivery.context is not None and not request.incremental:
            named = [resource for resource, _, _ in response.results]
            if len(set(named)) < len(named):
                return None
        return response

    def describe_log_dirs(
        self, request: DescribeLogDirsRequest, _delivery: Delivery
    ) -> DescribeLogDirsResponse:
        return DescribeLogDirsResponse(
            ErrorCode.NONE, self._broker.replica_manager.log_dirs.describe(request.partitions)
        )

    def alter_replica_log_dirs(
        self, request: AlterReplicaLogDirsRequest, _delivery: Delivery
    ) -> AlterReplicaLogDirsResponse:
        """Begin to move replicas, and answer without waiting for the end of the moves."""
        return AlterReplicaLogDirsResponse(
            self._broker.replica_manager.log_dirs.alter(request.moves)
        )

    def update_features(
        self, request: UpdateFeaturesRequest, delivery: Delivery
    ) -> UpdateFeaturesResponse | None:
        """Update features through the controller; any other broker refuses."""
        if not self._broker.controller.is_active:
            return UpdateFeaturesResponse(ErrorCode.NOT_CONTROLLER)

        def answer(outcome: ErrorCode | FeatureResults) -> None:
            if isinstance(outcome, ErrorCode):
                response = UpdateFeaturesResponse(outcome)
            else:
                results = ((name, error, text) for name, (error, text) in outcome.items())
                response = UpdateFeaturesResponse(ErrorCode.NONE, None, tuple(results))
            self._broker.reply(delivery, response)

        updates = {update.name: update for update in request.updates}
        self._broker.controller.put(UpdateFeatures(tuple(updates.values()), answer))
        return None
