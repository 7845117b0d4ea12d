"""Handlers of requests from the controller, and of requests that only the controller answers."""

from __future__ import annotations

from functools import partial
from typing import Any

from ....protocol.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterIsrRequest,
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
from ....statemachines.controller.events import (
    AllocateProducerIds,
    AlterIsrReceived,
    ControlledShutdown,
)
from ....statemachines.zookeeper.errors import ControllerMoved
from ...delivery import Delivery
from ...port import Handler
from .broker_handlers import BrokerHandlers


class ControlHandlers(BrokerHandlers):
    """LeaderAndIsr, StopReplica and UpdateMetadata, and other brokers' requests to the
    controller."""

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
        """Take the roles, after reading the configurations of topics that are not known yet.

        Kafka reads a configuration when it creates the log. The controller sends nothing more to
        this broker before the answer, so the order of its requests is kept.
        """
        topics = dict.fromkeys(state.topic for state in request.partition_states)
        unknown = [topic for topic in topics if not self._broker.dynamic_config.knows(topic)]
        if not unknown:
            return self._broker.replica_manager.roles.become_leader_or_follower(request)
        self._broker.start_task(self._become_with_configs(request, delivery, unknown))
        return None

    async def _become_with_configs(
        self, request: LeaderAndIsrRequest, delivery: Delivery, topics: list[str]
    ) -> None:
        await self._broker.dynamic_config.fetch(topics)
        self._broker.reply(
            delivery, self._broker.replica_manager.roles.become_leader_or_follower(request)
        )

    def stop_replica(self, request: StopReplicaRequest, _delivery: Delivery) -> StopReplicaResponse:
        response = self._broker.replica_manager.roles.stop_replicas(request)
        for_good = {s.topic_partition: s.delete_partition for s in request.partition_states}
        stopped = [
            partition
            for partition, error in response.partitions
            if error == ErrorCode.NONE and for_good[partition]
        ]
        self._broker.coordinators.partitions_stopped(stopped)
        return response

    def update_metadata(
        self, request: UpdateMetadataRequest, _delivery: Delivery
    ) -> UpdateMetadataResponse:
        response, deleted = self._broker.replica_manager.roles.update_metadata(request)
        for topic in dict.fromkeys(partition.topic for partition in deleted):
            if not self._broker.metadata_cache.contains_topic(topic):
                self._broker.dynamic_config.forget(topic)
        if deleted:
            self._broker.coordinators.partitions_deleted(deleted)
        topics = dict.fromkeys(state.topic for state in request.partition_states)
        self._broker.coordinators.metadata_changed(topics)
        for channel in self._broker.controller_channels:
            channel.look_up()
        self._broker.waiters.examine()
        return response

    def alter_isr(self, request: AlterIsrRequest, delivery: Delivery) -> None:
        self._broker.controller.put(
            AlterIsrReceived(request, partial(self._broker.answer, delivery))
        )

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, delivery: Delivery
    ) -> AllocateProducerIdsResponse | None:
        if not self._broker.controller.is_active:
            return AllocateProducerIdsResponse(ErrorCode.NOT_CONTROLLER)
        answer = partial(self._broker.answer, delivery)
        self._broker.controller.put(AllocateProducerIds(request, answer))
        return None

    def controlled_shutdown(self, request: ControlledShutdownRequest, delivery: Delivery) -> None:
        def answer(outcome: Any) -> None:
            self._broker.reply(delivery, _controlled_shutdown_response(outcome))

        event = ControlledShutdown(request.broker_id, request.broker_epoch, answer)
        self._broker.controller.put(event)


def _controlled_shutdown_response(outcome: Any) -> ControlledShutdownResponse:
    if isinstance(outcome, ControllerMoved):
        return ControlledShutdownResponse(ErrorCode.STALE_CONTROLLER_EPOCH)
    if isinstance(outcome, KafkaError):
        return ControlledShutdownResponse(outcome.code)
    if isinstance(outcome, BaseException):
        return ControlledShutdownResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ControlledShutdownResponse(ErrorCode.NONE, tuple(outcome))
