"""Handlers of the controller's requests and of those only a controller answers."""

from __future__ import annotations

from typing import Any

from ....protocol.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterIsrRequest,
    AlterIsrResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from ....protocol.errors import ErrorCode, KafkaError
from ....statemachines.zookeeper.errors import ControllerMoved
from ...delivery import Delivery
from ...port import Handler
from ..parts import BrokerHandlers


class ControlHandlers(BrokerHandlers):
    """LeaderAndIsr, StopReplica, UpdateMetadata; what other brokers ask the controller for."""

    def by_type(self) -> dict[type, Handler]:
        return {
            LeaderAndIsrRequest: self.leader_and_isr,
            StopReplicaRequest: self.stop_replica,
            UpdateMetadataRequest: self.update_metadata,
            AlterIsrRequest: self.alter_isr,
            AllocateProducerIdsRequest: self.allocate_producer_ids,
            ControlledShutdownRequest: self.controlled_shutdown,
        }

    def leader_and_isr(
        self, request: LeaderAndIsrRequest, delivery: Delivery
    ) -> LeaderAndIsrResponse | None:
        """Take the roles; a topic's configuration is read first where it is not known yet.

        Kafka reads it when it creates the log. The controller sends nothing more to this broker
        before the answer, so the order of its requests is kept.
        """
        topics = dict.fromkeys(state.topic for state in request.partition_states)
        unknown = [topic for topic in topics if not self._dynamic_config.knows(topic)]
        if not unknown:
            return self._replica_manager.roles.become_leader_or_follower(request)
        self._node.start_task(self._become_with_configs(request, delivery, unknown))
        return None

    async def _become_with_configs(
        self, request: LeaderAndIsrRequest, delivery: Delivery, topics: list[str]
    ) -> None:
        await self._dynamic_config.fetch(topics)
        self._node.reply(delivery, self._replica_manager.roles.become_leader_or_follower(request))

    def stop_replica(self, request: StopReplicaRequest, _delivery: Delivery) -> StopReplicaResponse:
        response = self._replica_manager.roles.stop_replicas(request)
        for_good = {s.topic_partition: s.delete_partition for s in request.partition_states}
        stopped = [
            partition
            for partition, error in response.partitions
            if error == ErrorCode.NONE and for_good[partition]
        ]
        self._coordinators.partitions_stopped(stopped)
        return response

    def update_metadata(
        self, request: UpdateMetadataRequest, _delivery: Delivery
    ) -> UpdateMetadataResponse:
        response, deleted = self._replica_manager.roles.update_metadata(request)
        for topic in dict.fromkeys(partition.topic for partition in deleted):
            if not self._metadata_cache.contains_topic(topic):
                self._dynamic_config.forget(topic)
        if deleted:
            self._coordinators.partitions_deleted(deleted)
        topics = dict.fromkeys(state.topic for state in request.partition_states)
        self._coordinators.metadata_changed(topics)
        for channel in self._controller_channels:
            channel.look_up()
        self._waiters.examine()
        return response

    def alter_isr(self, request: AlterIsrRequest, delivery: Delivery) -> None:
        def answer(response: AlterIsrResponse) -> None:
            self._node.reply(delivery, response)

        self._controller.alter_isr(request, answer)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, delivery: Delivery
    ) -> AllocateProducerIdsResponse | None:
        if not self._controller.is_active:
            return AllocateProducerIdsResponse(ErrorCode.NOT_CONTROLLER)

        def answer(response: AllocateProducerIdsResponse) -> None:
            self._node.reply(delivery, response)

        self._controller.allocate_producer_ids(request, answer)
        return None

    def controlled_shutdown(self, request: ControlledShutdownRequest, delivery: Delivery) -> None:
        def answer(outcome: Any) -> None:
            self._node.reply(delivery, _controlled_shutdown_response(outcome))

        self._controller.controlled_shutdown(request.broker_id, request.broker_epoch, answer)


def _controlled_shutdown_response(outcome: Any) -> ControlledShutdownResponse:
    if isinstance(outcome, ControllerMoved):
        return ControlledShutdownResponse(ErrorCode.STALE_CONTROLLER_EPOCH)
    if isinstance(outcome, KafkaError):
        return ControlledShutdownResponse(outcome.code)
    if isinstance(outcome, BaseException):
        return ControlledShutdownResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ControlledShutdownResponse(ErrorCode.NONE, tuple(outcome))
