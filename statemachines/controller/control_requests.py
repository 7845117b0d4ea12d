"""Requests to brokers that belong to no transition of a state machine, and the responses to all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from ...protocol.control import LeaderAndIsrResponse, UpdateMetadataResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition, assembled
from ..machines.context import ControllerContext
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.errors import IllegalState
from .events import (
    LeaderAndIsrResponseReceived,
    TopicDeletionStopReplicaResponseReceived,
    UpdateMetadataResponseReceived,
)
from .queue import ControllerEventManager


@assembled
class ControlRequests:
    """Sender of the batch that flows fill; one that is broken ends the tenure."""

    batch: ControllerBrokerRequestBatch
    context: ControllerContext
    trigger_controller_move: Callable[[], Awaitable[None]]

    async def send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Tell brokers of the registered brokers and of partitions.

        Raises ``IllegalState`` after giving up the controllership if the batch is broken.
        """
        try:
            self.batch.new_batch()
            self.batch.add_update_metadata_request_for_brokers(broker_ids, partitions)
            self.batch.send_requests_to_brokers(self.context.epoch)
        except IllegalState as error:
            await self.handle_illegal_state(error)

    async def handle_illegal_state(self, error: IllegalState) -> None:
        """Requests cannot be sent as they should: let another broker try; raises ``error``."""
        self.batch.clear()
        await self.trigger_controller_move()
        raise error


class ResponsesToEvents:
    """The callbacks of the request batches: responses of brokers become events."""

    def __init__(self, events: ControllerEventManager) -> None:
        self._events = events

    def on_leader_and_isr_response(self, response: LeaderAndIsrResponse, broker_id: int) -> None:
        self._events.put(LeaderAndIsrResponseReceived(response, broker_id))

    def on_update_metadata_response(self, response: UpdateMetadataResponse, broker_id: int) -> None:
        self._events.put(UpdateMetadataResponseReceived(response, broker_id))

    def on_stop_replica_deletion_response(
        self, broker_id: int, error: ErrorCode, partition_errors: dict[TopicPartition, ErrorCode]
    ) -> None:
        self._events.put(
            TopicDeletionStopReplicaResponseReceived(
                broker_id, error, tuple(partition_errors.items())
            )
        )
