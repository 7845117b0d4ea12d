"""What the controller does around the replacement of an expired ZooKeeper session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import Expire, RegisterBrokerAndReelect

if TYPE_CHECKING:
    from .controller import KafkaController


class SessionWatcher:
    """Turns the replacement of an expired ZooKeeper session into events
    (docs/kafka/controller-failover.md#session-expiry)."""

    def __init__(self, controller: KafkaController) -> None:
        self._controller = controller

    async def before_initializing_session(self) -> None:
        """Drop what is queued and wait until the resignation begins; not so in 0.10."""
        if self._controller.behaviour.pipelined_zookeeper:
            expiring = self._controller.event_manager.clear_and_put(Expire())
            await expiring.await_processing()

    def after_initializing_session(self) -> None:
        self._controller.event_manager.put(RegisterBrokerAndReelect())

    def on_auth_failure(self) -> None:
        """There is no authentication to fail."""
