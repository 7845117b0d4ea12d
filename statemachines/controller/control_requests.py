"""Control requests outside the transitions of the state machines, and responses to all of them."""

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
    """Sends the batch that flows fill; a batch that cannot be sent ends the tenure."""

    batch: ControllerBrokerRequestBatch
    context: ControllerContext
    trigger_controller_move: Callable[[], Awaitable[None]]

    async def send_update_metadata(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Send brokers the registered brokers and the metadata of partitions.

        If the batch cannot be sent, the controller resigns, and ``IllegalState`` is raised.
        """
        try:
            self.batch.new_batch()
            self.batch.add_update_metadata_request_for_brokers(broker_ids, partitions)
            self.batch.send_requests_to_brokers(self.context.epoch)
        except IllegalState as error:
            await self.handle_illegal_state(error)

    async def handle_illegal_state(self, error: IllegalState) -> None:
        """Resign, as requests cannot be sent, so that another broker can try; raises ``error``."""
        self.batch.clear()
        await self.trigger_controller_move()
        raise error


class ResponsesToEvents:
    """Callbacks of the request batches that turn brokers' responses into events."""

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
