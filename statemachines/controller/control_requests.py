"""Requests to brokers that belong to no transition of a state machine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from ...protocol.values import TopicPartition
from ..machines.context import ControllerContext
from ..machines.request_batch import ControllerBrokerRequestBatch
from ..zookeeper.errors import IllegalState


@dataclass(eq=False)
class ControlRequests:
    """Sends what flows put into their batch; a batch that is broken ends the tenure."""

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
