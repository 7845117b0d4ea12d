"""Replacement of an expired ZooKeeper session, as the controller sees it."""

from __future__ import annotations

from ...protocol.versions import Behaviour
from .events import Expire, RegisterBrokerAndReelect
from .queue import ControllerEventManager


class SessionWatcher:
    """Turns the replacement of an expired ZooKeeper session into events
    (docs/kafka/controller-failover.md#session-expiry)."""

    __slots__ = ("_behaviour", "_events")

    def __init__(self, behaviour: Behaviour, events: ControllerEventManager) -> None:
        self._behaviour = behaviour
        self._events = events

    async def before_initializing_session(self) -> None:
        """Drop what is queued and wait until the resignation begins; not so in 0.10."""
        if self._behaviour.pipelined_zookeeper:
            expiring = self._events.clear_and_put(Expire())
            await expiring.await_processing()

    def after_initializing_session(self) -> None:
        self._events.put(RegisterBrokerAndReelect())

    def on_auth_failure(self) -> None:
        """There is no authentication to fail."""
