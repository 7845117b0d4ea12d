"""The listening socket of one broker, and its connections.

The socket is bound and listens before anyone serves it: the port is known at once and early
clients queue in the kernel. Accepting is done here and not by the loop's servers, because a
killed broker must refuse connections from the very moment on, on every loop implementation.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket

from ..protocol.errors import UsageError
from .backend import Backend, BrokerTopicNames
from .codec import Codec
from .connection import Connection

logger = logging.getLogger("fakekafka.wire")

_BACKLOG = 128
_ACCEPTS_PER_EVENT = 64
_ACCEPT_RETRY_S = 0.2
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class BrokerListener:
    """One broker's listener on TCP.

    ``bind`` may be called from any thread; everything else on the loop's.
    """

    __slots__ = (
        "_accepting",
        "_connection_count",
        "_connections",
        "_socket",
        "_tasks",
        "backend",
        "broker_id",
        "codec",
        "host",
        "idle_ms",
        "listener_name",
        "loop",
        "max_request_bytes",
        "port",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        broker_id: int,
        backend: Backend,
        *,
        listener_name: str = "PLAINTEXT",
        max_request_bytes: int = 104857600,
        idle_ms: int = 600000,
    ) -> None:
        """``port`` 0 takes a free one at the first ``bind`` and keeps it from then on.

        ``max_request_bytes`` is ``socket.request.max.bytes``, ``idle_ms`` is
        ``connections.max.idle.ms`` (0 or less: never).
        """
        self.loop = loop
        self.host = host
        self.port = port
        self.broker_id = broker_id
        self.backend = backend
        self.listener_name = listener_name
        self.max_request_bytes = max_request_bytes
        self.idle_ms = idle_ms
        self.codec = Codec(
            backend.kafka_version, BrokerTopicNames(backend, broker_id), listener_name
        )
        self._socket: socket.socket | None = None
        """Listening, or only bound to keep the port, or None."""
        self._accepting = False
        self._connections: dict[Connection, None] = {}
        self._connection_count = 0
        self._tasks: dict[asyncio.Task[object], socket.socket] = {}

    @property
    def is_serving(self) -> bool:
        return self._accepting

    @property
    def connections(self) -> tuple[Connection, ...]:
        """Connections that are open now, in order of arrival."""
        return tuple(self._connections)

    def bind(self) -> int:
        """Take the port and listen; clients connect from now on and wait. Returns the port.

        Raises ``UsageError`` if the address cannot be taken.
        """
        if self._socket is None:
            self._socket = self._bound_socket()
        self._socket.listen(_BACKLOG)
        return self.port

    def serve(self) -> None:
        """Begin to accept connections; binds first if that has not been done."""
        if self._accepting:
            return
        self.bind()
        self._accepting = True
        self._await_clients()

    def close(self, *, keep_port: bool = False) -> None:
        """Refuse new connections and cut all open ones, at once; ``serve`` starts anew.

        ``keep_port`` leaves the port bound without listening: clients are refused and nobody
        else can be given it. A broker that is down keeps its port; a stopped cluster must not.
        """
        if self._socket is not None:
            if self._accepting:
                self.loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._accepting = False
        if keep_port:
            self._socket = self._bound_socket()
        for accepted in self._tasks.values():
            # Its transport is on the way and closes as soon as it is there; the client hears now.
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        self.disconnect_all()

    def disconnect_all(self) -> None:
        """Cut all open connections; new ones are still accepted."""
        for connection in self.connections:
            connection.close()

    # Called by connections.

    def next_connection_index(self) -> int:
        self._connection_count += 1
        return self._connection_count - 1

    def on_connection_made(self, connection: Connection) -> bool:
        """Whether the connection is welcome; not if the listener closed while it was made."""
        if self._accepting:
            self._connections[connection] = None
        return self._accepting

    def on_connection_lost(self, connection: Connection) -> None:
        self._connections.pop(connection, None)

    def _bound_socket(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self.host, self.port))
        except OSError as error:
            bound.close()
            raise UsageError(
                f"broker {self.broker_id} cannot listen on {self.host}:{self.port}: "
                f"{error.strerror or error}; give a free port, or 0 for any"
            ) from error
        self.port = bound.getsockname()[1]
        return bound

    def _accept(self) -> None:
        listening = self._socket
        if listening is None:
            return
        for _ in range(_ACCEPTS_PER_EVENT):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_accept_error(error, listening)
                return
            accepted.setblocking(False)
            task: asyncio.Task[object] = self.loop.create_task(
                self.loop.connect_accepted_socket(lambda: Connection(self), accepted)
            )
            self._tasks[task] = accepted
            task.add_done_callback(self._on_connected)

    def _on_accept_error(self, error: OSError, listening: socket.socket) -> None:
        if error.errno not in _OUT_OF_RESOURCES:
            raise error
        logger.error("broker %d cannot accept a connection: %s", self.broker_id, error)
        self.loop.remove_reader(listening)
        self.loop.call_later(_ACCEPT_RETRY_S, self._await_clients)

    def _await_clients(self) -> None:
        if self._accepting and self._socket is not None:
            self.loop.add_reader(self._socket, self._accept)

    def _on_connected(self, task: asyncio.Task[object]) -> None:
        accepted = self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            logger.debug("broker %d: a client left while connecting", self.broker_id)
            if accepted is not None:
                accepted.close()
