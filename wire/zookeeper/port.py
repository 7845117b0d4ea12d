"""The path of messages between one connection and its ZooKeeper server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...actors.interfaces import AbstractNode
from ...protocol.names import TCP_CLIENTS, zookeeper_client_name
from ...zkfake.messages import ConnectionClosed

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime

_FIRST_CONNECTION_ID = 1 << 62
"""Id above which TCP connections are numbered; connections of clients that are nodes have lower
ids."""


class ZooKeeperPort(AbstractNode):
    """A TCP connection as a member of the network of the runtime."""

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
        """Id that is unique among all connections to the server, even after its restarts."""
        self.machine: str = TCP_CLIENTS
        self.blocked: bool = False
        self.stopped: bool = False
        self.has_byte_delays = self.has_byte_faults = False
        self._runtime = runtime
        self._server_name = server_name
        self._is_known_to_server = False  # True if the server knows of this connection
        self._on_message = on_message
        self._on_lost = on_lost
        runtime.network.add(self)

    def send(self, message: Any) -> None:
        """Send the server a message of ``zkfake.messages``."""
        self._is_known_to_server = True
        self._runtime.network.send(self, self._server_name, message)

    def close(self) -> None:
        """Leave the network, and notify the server if it knows of the connection. Idempotent."""
        if self.stopped:
            return
        if self._is_known_to_server:
            self.send(ConnectionClosed(self.connection_id))
        self.blocked = self.stopped = True
        self._runtime.network.remove(self)

    # Called by the network and the runtime.

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, ConnectionClosed):
            self._is_known_to_server = False
        self._on_message(message)

    def peer_lost(self, machine: str, names: frozenset[str]) -> None:
        """Handle the death of a process; if it was the server, the connection is lost."""
        if self._server_name in names and not self.stopped:
            self._is_known_to_server = False
            self._on_lost()

    def hand_over(self, item: Any) -> None:
        """Fire a timer on the event loop, to which the port belongs."""
        self._runtime.loop.call_soon_threadsafe(item.fire)
