"""The way from one connection to its ZooKeeper server and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...actors.surroundings import Resident
from ...protocol.names import TCP_CLIENTS, zookeeper_client_name
from ...zkfake.messages import ConnectionClosed

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime

_FIRST_CONNECTION_ID = 1 << 62
"""Clients that are nodes number their connections below this."""


class ZooKeeperPort(Resident):
    """A TCP connection as a member of the network."""

    def __init__(
        self,
        runtime: LiveRuntime | ThreadedRuntime,
        index: int,
        server_name: str,
        on_message: Callable[[Any], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.name: str = zookeeper_client_name(index)
        self.connection_id: int = _FIRST_CONNECTION_ID + index
        """Unique among all connections to the server, over its restarts."""
        self.machine: str = TCP_CLIENTS
        self.blocked: bool = False
        self.stopped: bool = False
        self.is_paced_elsewhere = self.is_carried_elsewhere = False
        self._runtime = runtime
        self._server_name = server_name
        self._server_told = False  # that there is a connection with this id
        self._on_message = on_message
        self._on_lost = on_lost
        runtime.network.add(self)

    def send(self, message: Any) -> None:
        """Hand the server a packet of ``zkfake.messages``."""
        self._server_told = True
        self._runtime.network.send(self, self._server_name, message)

    def close(self) -> None:
        """Leave the network; a server that does not know yet is told. Idempotent."""
        if self.stopped:
            return
        if self._server_told:
            self.send(ConnectionClosed(self.connection_id))
        self.blocked = self.stopped = True
        self._runtime.network.remove(self)

    # Called by the network and the runtime.

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, ConnectionClosed):
            self._server_told = False
        self._on_message(message)

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """A process was killed; if it was the server, so is the connection."""
        if self._server_name in names and not self.stopped:
            self._server_told = False
            self._on_lost()

    def hand_over(self, item: Any) -> None:
        """Let a timer fire on the loop, where a port lives."""
        self._runtime.loop.call_soon_threadsafe(item.fire)
