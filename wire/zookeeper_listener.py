"""The listening socket of one ZooKeeper server, and its connections.

As for brokers the port is taken and listens before anyone serves it, and accepting is done here,
so that closing refuses clients from the very moment on.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket

from ..protocol.errors import UsageError
from .zookeeper_connection import ZooKeeperBackend, ZooKeeperConnection

logger = logging.getLogger("fakekafka.wire")

MAX_PACKET_BYTES = 0xFFFFF
"""Default of ``jute.maxbuffer``."""
CONNECT_TIMEOUT_MS = 10_000
"""Default of ``zookeeper.nio.sessionlessCnxnTimeout``: for connections without a session."""

_BACKLOG = 128
_ACCEPTS_PER_EVENT = 64
_ACCEPT_RETRY_S = 0.2
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class ZooKeeperListener:
    """One server's listener on TCP.

    ``bind`` may be called from any thread; everything else on the loop's.
    """

    __slots__ = (
        "_accepting",
        "_connections",
        "_socket",
        "_tasks",
        "backend",
        "connect_timeout_ms",
        "host",
        "loop",
        "max_packet_bytes",
        "port",
        "server_id",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        server_id: int,
        backend: ZooKeeperBackend,
        *,
        max_packet_bytes: int = MAX_PACKET_BYTES,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    ) -> None:
        """``port`` 0 takes a free one at the first ``bind`` and keeps it from then on."""
        self.loop = loop
        self.host = host
        self.port = port
        self.server_id = server_id
        self.backend = backend
        self.max_packet_bytes = max_packet_bytes
        self.connect_timeout_ms = connect_timeout_ms
        self._socket: socket.socket | None = None
        self._accepting = False
        self._connections: dict[ZooKeeperConnection, None] = {}
        self._tasks: dict[asyncio.Task[object], socket.socket] = {}

    @property
    def connections(self) -> tuple[ZooKeeperConnection, ...]:
        """Connections that are open now, in order of arrival."""
        return tuple(self._connections)

    def bind(self) -> int:
        """Take the port and listen; clients connect from now on and wait. Returns the port.

        Raises ``UsageError`` if the address cannot be taken.
        """
        if self._socket is None:
            self._socket = self._listening_socket()
        return self.port

    def serve(self) -> None:
        """Begin to accept connections; binds first if that has not been done."""
        self.bind()
        if not self._accepting:
            assert self._socket is not None
            self._accepting = True
            self.loop.add_reader(self._socket, self._accept)

    def close(self) -> None:
        """Refuse new connections and cut all open ones, at once; ``serve`` starts anew."""
        if self._socket is not None:
            if self._accepting:
                self.loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
        self._accepting = False
        for accepted in self._tasks.values():
            # Its transport is on the way and closes as soon as it is there; the client hears now.
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        for connection in self.connections:
            connection.close()

    # Called by connections.

    def on_connection_made(self, connection: ZooKeeperConnection) -> bool:
        """Whether the connection is welcome; not if the listener closed while it was made."""
        if self._accepting:
            self._connections[connection] = None
        return self._accepting

    def on_connection_lost(self, connection: ZooKeeperConnection) -> None:
        self._connections.pop(connection, None)

    def _listening_socket(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((self.host, self.port))
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise UsageError(
                f"ZooKeeper server {self.server_id} cannot listen on {self.host}:{self.port}: "
                f"{error.strerror or error}; give a free port, or 0 for any"
            ) from error
        self.port = listening.getsockname()[1]
        return listening

    def _accept(self) -> None:
        listening = self._socket
        assert listening is not None
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
                self.loop.connect_accepted_socket(lambda: ZooKeeperConnection(self), accepted)
            )
            self._tasks[task] = accepted
            task.add_done_callback(self._on_connected)

    def _on_accept_error(self, error: OSError, listening: socket.socket) -> None:
        if error.errno not in _OUT_OF_RESOURCES:
            raise error
        logger.error("ZooKeeper server %d cannot accept: %s", self.server_id, error)
        self.loop.remove_reader(listening)
        self.loop.call_later(_ACCEPT_RETRY_S, self._accept_again, listening)

    def _accept_again(self, listening: socket.socket) -> None:
        if self._accepting and self._socket is listening:
            self.loop.add_reader(listening, self._accept)

    def _on_connected(self, task: asyncio.Task[object]) -> None:
        accepted = self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            logger.debug("ZooKeeper server %d: a client left while connecting", self.server_id)
            if accepted is not None:
                accepted.close()
