"""Real ZooKeeper clients over TCP: joins the listeners of ``wire`` to the ZooKeeper servers.

Every connection is a port of the network, named ``zkclient-1`` and so on, on the machine that all
TCP clients share: what it exchanges with its server are messages that can be delayed, lost, held
and traced like those of the brokers' own clients.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ...protocol.names import TCP_CLIENTS, zookeeper_client_name, zookeeper_name
from ...zkfake.messages import ConnectionClosed
from ..accepting import AcceptingListener
from .connection import ZooKeeperConnection
from .service import ZooKeeperService

if TYPE_CHECKING:
    from ...actors.delivery import Delivery
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime

_FIRST_CONNECTION_ID = 1 << 62
"""Clients that are nodes number their connections below this."""


class ZooKeeperListener(AcceptingListener[ZooKeeperConnection]):
    """A server's listener on TCP."""

    __slots__ = ("service",)

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, service: ZooKeeperService
    ) -> None:
        super().__init__(loop, host, port, f"ZooKeeper server {service.server_id}")
        self.service: ZooKeeperService = service

    def _make_connection(self) -> ZooKeeperConnection:
        return ZooKeeperConnection(self, self.service)


class ZooKeeperPort:
    """A TCP connection as a member of the network; a ``wire.ZooKeeperLink``."""

    machine = TCP_CLIENTS
    is_paced_elsewhere = False
    is_carried_elsewhere = False

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
        self.blocked: bool = False
        self.stopped: bool = False
        self._runtime = runtime
        self._server_name = server_name
        self._server_told = False  # that there is a connection with this id
        self._on_message = on_message
        self._on_lost = on_lost
        runtime.network.add(self)  # type: ignore[arg-type]

    def send(self, message: Any) -> None:
        self._server_told = True
        self._runtime.network.send(self, self._server_name, message)

    def close(self) -> None:
        """Leave the network; a server that does not know yet is told."""
        if self.stopped:
            return
        if self._server_told:
            self.send(ConnectionClosed(self.connection_id))
        self.blocked = self.stopped = True
        self._runtime.network.remove(self)  # type: ignore[arg-type]

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

    @property
    def actor_ref(self) -> ZooKeeperPort:
        """The threaded runtime tells timers of nodes to their actors; a port lives on the loop."""
        return self

    def tell(self, timer: Any) -> None:
        self._runtime.loop.call_soon_threadsafe(timer.fire)


class ZooKeeperTcp:
    """A listener for each ZooKeeper server, for any client that speaks ZooKeeper's protocol.

    ``ports`` fixes the ports, in the order of ``server_ids``; without it they are free ones that
    stay the same until the end. A server that is down keeps its port and cuts whoever connects.
    """

    def __init__(
        self,
        runtime: LiveRuntime | ThreadedRuntime,
        server_ids: Iterable[int],
        *,
        host: str = "127.0.0.1",
        ports: Sequence[int] | None = None,
    ) -> None:
        ids = tuple(server_ids)
        if ports is not None and len(ports) != len(ids):
            raise UsageError(f"ports names {len(ports)} ports for {len(ids)} ZooKeeper servers")
        self.host = host
        self._runtime = runtime
        self._indices = itertools.count(1)
        self._listeners = {
            server_id: ZooKeeperListener(
                runtime.loop, host, port, ZooKeeperService(runtime.loop, server_id, self)
            )
            for server_id, port in zip(ids, ports or (0,) * len(ids), strict=True)
        }
        self._started = False

    def start(self) -> None:
        """Take the ports and serve; raises ``UsageError`` when one cannot be taken."""

        def serve() -> None:
            for listener in self._listeners.values():
                listener.serve()

        try:
            self._runtime.thread.call(serve)
        except BaseException:
            self._runtime.thread.call(self._close)
            raise
        self._started = True

    def stop(self) -> None:
        """Cut every connection and give the ports back; before the runtime stops. Idempotent."""
        if self._started:
            self._started = False
            self._runtime.thread.call(self._close)

    def _close(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    @property
    def connect_string(self) -> str:
        """``host:port`` of every server, comma-separated, as clients want it."""
        return ",".join(self.address(server_id) for server_id in self._listeners)

    def address(self, server_id: int) -> str:
        """``host:port`` of one server."""
        if not self._started:
            raise UsageError("ZooKeeper's listeners are not started")
        listener = self._listeners.get(server_id)
        if listener is None:
            raise UsageError(
                f"there is no ZooKeeper server {server_id!r}; ids are {list(self._listeners)}"
            )
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{listener.port}"

    @property
    def connection_count(self) -> int:
        """Connections that are open now, over all servers."""
        return self._runtime.thread.call(
            lambda: sum(len(listener.connections) for listener in self._listeners.values())
        )

    # The backend of the listeners.

    def open(
        self, server_id: int, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> ZooKeeperPort | None:
        """A port for one connection; None while the server is down."""
        name = zookeeper_name(server_id)
        if name not in self._runtime.network.nodes:
            return None
        return ZooKeeperPort(self._runtime, next(self._indices), name, on_message, on_lost)
