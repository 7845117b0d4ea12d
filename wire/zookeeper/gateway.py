"""Real ZooKeeper clients over TCP: connects the listeners of ``wire`` to the ZooKeeper servers.

Every connection is a port of the network, named ``zkclient-1`` and so on, on the machine that all
TCP clients share. Its messages to and from the server can be delayed, lost, held and traced like
those of the brokers' own clients.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ...protocol.names import zookeeper_name
from ..accepting import AcceptingListener
from .connection import ZooKeeperConnection
from .port import ZooKeeperPort
from .service import ZooKeeperService

if TYPE_CHECKING:
    from ...actors.runtime.live import LiveRuntime
    from ...actors.runtime.threaded import ThreadedRuntime


class ZooKeeperListener(AcceptingListener[ZooKeeperConnection]):
    """A ZooKeeper server's listener on TCP."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, host: str, port: int, service: ZooKeeperService
    ) -> None:
        super().__init__(loop, host, port, f"ZooKeeper server {service.server_id}")
        self.service: ZooKeeperService = service

    def _make_connection(self) -> ZooKeeperConnection:
        return ZooKeeperConnection(self, self.service)


class ZooKeeperTcp:
    """A listener for each ZooKeeper server, for any client that speaks ZooKeeper's protocol.

    ``ports`` fixes the ports, in the order of ``server_ids``; without it free ports are taken and
    kept until the end. A server that is down keeps its port and cuts new connections.
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
                runtime.loop, host, port, ZooKeeperService(runtime.loop, server_id, self._open)
            )
            for server_id, port in zip(ids, ports or (0,) * len(ids), strict=True)
        }
        self._started = False

    def start(self) -> None:
        """Bind the ports and serve; raise ``UsageError`` if one cannot be bound."""

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
        """Cut all connections and release the ports, before the runtime stops. Idempotent."""
        if self._started:
            self._started = False
            self._runtime.thread.call(self._close)

    def _close(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    @property
    def connect_string(self) -> str:
        """``host:port`` of every server, comma-separated, as clients expect it."""
        return ",".join(self.address(server_id) for server_id in self._listeners)

    def address(self, server_id: int) -> str:
        """Return ``host:port`` of one server."""
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
        """Number of open connections, over all servers."""
        return self._runtime.thread.call(
            lambda: sum(len(listener.connections) for listener in self._listeners.values())
        )

    def _open(
        self, server_id: int, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> ZooKeeperPort | None:
        """Return a port for one connection; None while the server is down."""
        name = zookeeper_name(server_id)
        if name not in self._runtime.network.nodes:
            return None
        return ZooKeeperPort(self._runtime, next(self._indices), name, on_message, on_lost)
