"""Handlers of the controller's requests and of those only a controller answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....protocol.control import (
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
from .broker_base import BrokerBase

if TYPE_CHECKING:
    from ...delivery import Delivery


class ControlHandlers(BrokerBase):
    """LeaderAndIsr, StopReplica, UpdateMetadata; AlterIsr and ControlledShutdown."""

    def on_leader_and_isr_request(
        self, request: LeaderAndIsrRequest, delivery: Delivery
    ) -> LeaderAndIsrResponse | None:
        """Take the roles; a topic's configuration is read first where it is not known yet.

        Kafka reads it when it creates the log. The controller sends nothing more to this broker
        before the answer, so the order of its requests is kept.
        """
        topics = dict.fromkeys(state.topic for state in request.partition_states)
        unknown = [topic for topic in topics if not self.dynamic_config.knows(topic)]
        if not unknown:
            return self.replica_manager.become_leader_or_follower(request)
        self.start_task(self._become_with_configs(request, delivery, unknown))
        return None

    async def _become_with_configs(
        self, request: LeaderAndIsrRequest, delivery: Delivery, topics: list[str]
    ) -> None:
        await self.dynamic_config.fetch(topics)
        self.reply(delivery, self.replica_manager.become_leader_or_follower(request))

    def on_stop_replica_request(
        self, request: StopReplicaRequest, _delivery: Delivery
    ) -> StopReplicaResponse:
        response = self.replica_manager.stop_replicas(request)
        for_good = {s.topic_partition: s.delete_partition for s in request.partition_states}
        self.offsets.partitions_stopped(
            partition
            for partition, error in response.partitions
            if error == ErrorCode.NONE and for_good[partition]
        )
        return response

    def on_update_metadata_request(
        self, request: UpdateMetadataRequest, _delivery: Delivery
    ) -> UpdateMetadataResponse:
        response, deleted = self.replica_manager.update_metadata(request)
        for topic in dict.fromkeys(partition.topic for partition in deleted):
            if not self.metadata_cache.contains_topic(topic):
                self.dynamic_config.forget(topic)
        if deleted:
            self.offsets.partitions_deleted(deleted)
        self.waiters.examine()
        return response

    def on_alter_isr_request(self, request: AlterIsrRequest, delivery: Delivery) -> None:
        def answer(response: AlterIsrResponse) -> None:
            self.reply(delivery, response)

        self.controller.alter_isr(request, answer)

    def on_controlled_shutdown_request(
        self, request: ControlledShutdownRequest, delivery: Delivery
    ) -> None:
        def answer(outcome: Any) -> None:
            self.reply(delivery, _controlled_shutdown_response(outcome))

        self.controller.controlled_shutdown(request.broker_id, request.broker_epoch, answer)


def _controlled_shutdown_response(outcome: Any) -> ControlledShutdownResponse:
    if isinstance(outcome, ControllerMoved):
        return ControlledShutdownResponse(ErrorCode.STALE_CONTROLLER_EPOCH)
    if isinstance(outcome, KafkaError):
        return ControlledShutdownResponse(outcome.code)
    if isinstance(outcome, BaseException):
        return ControlledShutdownResponse(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ControlledShutdownResponse(ErrorCode.NONE, tuple(outcome))
