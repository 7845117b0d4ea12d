"""The server of the control API and the page of a cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import socket
from typing import TYPE_CHECKING

from ..actors.runtime.live import LoopThread
from ..protocol.errors import AddressUnavailable, UsageError
from .faults import active_faults
from .operation import ServedCluster
from .watching.events import EventFeed

if TYPE_CHECKING:
    from ..testing.cluster import Cluster

_BACKLOG = 128
_CLOSE_S = 5


class ControlServer:
    """Serves the control API of a cluster in an event loop and a thread of its own.

    So clients of the API do not keep the cluster's own loop busy. Raises ``UsageError`` for an
    invalid port number or if the extra ``control`` is not installed, and ``AddressUnavailable`` for
    a port in use.
    """

    def __init__(
        self,
        cluster: Cluster,
        port: int = 0,
        host: str = "127.0.0.1",
        feed: EventFeed | None = None,
    ) -> None:
        """``feed`` must have been started, and stays open when the server closes."""
        if not 0 <= port <= 65535:
            raise UsageError(f"the control port must be between 0 and 65535, not {port}")
        try:
            import uvicorn

            from .application import Application
            from .guards import Guard, GuardedProtocol
        except ImportError as error:
            raise UsageError(
                f"the control API needs {error.name}: pip install 'fakekafka[control]'"
            ) from None
        self._host = host
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._own_feed: EventFeed | None = None
        if feed is None:
            feed = self._own_feed = EventFeed(cluster)
            feed.start()
        self._thread = LoopThread("fakekafka-control")
        served = ServedCluster(cluster, feed)
        feed.watch_faults(lambda: [fault.text for fault in active_faults(served)])
        self._application = self._thread.call(lambda: Application(served))
        guarded = Guard(self._application.asgi, frozenset((host, "localhost")))
        config = uvicorn.Config(
            guarded,
            http=GuardedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=_CLOSE_S,
        )
        self._server = uvicorn.Server(config)
        self._serving: concurrent.futures.Future[None] = asyncio.run_coroutine_threadsafe(
            self._server.serve(sockets=[self._socket]), self._thread.loop
        )

    @property
    def url(self) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    def close(self) -> None:
        """End every stream and connection, and release the port."""
        if self._own_feed is not None:
            self._own_feed.close()
        self._thread.call(self._application.closing.set)
        self._server.should_exit = True
        with contextlib.suppress(concurrent.futures.TimeoutError):
            self._serving.result(2 * _CLOSE_S)
        self._thread.stop()
        self._socket.close()


def _listen(host: str, port: int) -> socket.socket:
    listener = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise AddressUnavailable(
            f"the control API cannot listen on {host}:{port}: {error.strerror}; "
            "give a free port, or 0 for any",
            error.errno,
        ) from None
    return listener
