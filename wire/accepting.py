"""A listening socket and its connections, common to brokers and ZooKeeper servers.

The socket is bound and listens before connections are accepted: the port is known at once, and
early clients queue in the kernel. Connections are accepted here and not by asyncio's servers,
because a killed server must refuse connections from that very moment on every event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
from typing import Generic, Protocol, TypeVar

from ..protocol.errors import AddressUnavailable

logger: logging.Logger = logging.getLogger("fakekafka.wire")

_BACKLOG = 128
_ACCEPTS_PER_EVENT = 64
_ACCEPT_RETRY_S = 0.2
LINES_MAX = 100
PERIOD_S = 10.0
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Closable(Protocol):
    def close(self) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=_Closable)


def cut(transport: asyncio.Transport) -> None:
    """Close a connection at once, discarding data that is not sent yet."""
    accepted = transport.get_extra_info("socket")
    if accepted is not None:
        with contextlib.suppress(OSError):
            # Not every event loop's transports allow their own socket to be shut down.
            duplicate = socket.socket(fileno=os.dup(accepted.fileno()))
            _shut_down(duplicate)
            duplicate.close()
    transport.abort()


def _shut_down(target: socket.socket) -> None:
    """End the connection for its peer, too; closing does not while a forked process has a copy."""
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)


class BoundedLog:
    """Logs lines about clients at a limited rate: a client connecting in a loop must not fill the
    disk.

    At most ``LINES_MAX`` lines are logged in a period of ``PERIOD_S`` seconds; at its end, another
    line says how many were suppressed.
    """

    __slots__ = ("_lines", "_logger", "_loop", "_owner", "_suppressed", "_timer")

    def __init__(self, logger: logging.Logger, loop: asyncio.AbstractEventLoop, owner: str) -> None:
        self._logger = logger
        self._loop = loop
        self._owner = owner
        self._lines = 0
        self._suppressed = 0
        self._timer: asyncio.TimerHandle | None = None

    def log(
        self, level: int, text: str, *args: object, exc_info: BaseException | None = None
    ) -> None:
        """Log a line, or count it as suppressed if there were too many in this period."""
        if self._timer is None:
            self._timer = self._loop.call_later(PERIOD_S, self.end_period)
        if self._lines >= LINES_MAX:
            self._suppressed += 1
            return
        self._lines += 1
        self._logger.log(level, text, *args, exc_info=exc_info)

    def end_period(self) -> None:
        """Log the number of suppressed lines; from now on lines are logged again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        suppressed, self._suppressed, self._lines = self._suppressed, 0, 0
        if suppressed:
            self._logger.warning(
                "%s: %d more lines like the last ones were suppressed", self._owner, suppressed
            )


class AcceptingListener(Generic[ConnectionT]):
    """A server's listener on TCP.

    ``bind`` may be called from any thread, everything else only on the event loop's.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        host: str,
        port: int,
        owner: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """With ``port`` 0, the first ``bind`` takes a free port, which is kept from then on.

        ``owner`` names the server in errors and log lines; ``tls`` is the context for TLS
        handshakes, None for plain TCP.
        """
        self.loop: asyncio.AbstractEventLoop = loop
        self.host: str = host
        self.port: int = port
        self._owner = owner
        self._tls = tls
        self.bounded_log: BoundedLog = BoundedLog(logger, loop, owner)
        self._socket: socket.socket | None = None
        """The socket that listens, or is only bound to keep the port; None if there is none."""
        self._accepting = False
        self._connections: dict[ConnectionT, None] = {}
        self._tasks: dict[asyncio.Task[object], socket.socket] = {}

    @property
    def is_serving(self) -> bool:
        return self._accepting

    @property
    def connections(self) -> tuple[ConnectionT, ...]:
        """Connections that are open now, in order of arrival."""
        return tuple(self._connections)

    def bind(self) -> int:
        """Bind the port, listen, and return the port; clients can connect from now on, and wait.

        Raises ``AddressUnavailable`` if the address cannot be bound.
        """
        if self._socket is None:
            self._socket = self._bound_socket()
        self._socket.listen(_BACKLOG)
        return self.port

    def serve(self) -> None:
        """Begin to accept connections, after binding the port if necessary."""
        if self._accepting:
            return
        self.bind()
        self._accepting = True
        self._await_clients()

    def close(self, *, keep_port: bool = False) -> None:
        """Refuse new connections and cut all open ones, at once; ``serve`` starts again.

        ``keep_port`` leaves the port bound without listening: clients are refused, and no other
        process can get the port. A server that is down keeps its port; a stopped cluster must not.
        """
        listening, self._socket = self._socket, None
        if listening is not None and self._accepting:
            self.loop.remove_reader(listening)
        self._accepting = False
        if keep_port:
            self._socket = self._successor(listening)
        if listening is not None:
            _shut_down(listening)
            listening.close()
        for accepted in self._tasks.values():
            # The transport is still being made, and closes then; this notifies the client now.
            _shut_down(accepted)
        self.disconnect_all()
        self.bounded_log.end_period()

    def disconnect_all(self) -> None:
        """Cut all open connections; new ones are still accepted."""
        for connection in self.connections:
            connection.close()

    def _make_connection(self) -> asyncio.BaseProtocol:
        """Return the asyncio protocol for one accepted connection."""
        raise NotImplementedError

    # Called by connections.

    def log_refusal(self, peer: str, reason: str) -> None:
        """Log one line for a connection that is closed because of its client's mistake."""
        self.bounded_log.log(
            logging.WARNING, "%s closed the connection from %s: %s", self._owner, peer, reason
        )

    def on_connection_made(self, connection: ConnectionT) -> bool:
        """Add a connection; return False if the listener closed while the connection was made."""
        if self._accepting:
            self._connections[connection] = None
        return self._accepting

    def on_connection_lost(self, connection: ConnectionT) -> None:
        self._connections.pop(connection, None)

    # Accepting.

    def _successor(self, listening: socket.socket | None) -> socket.socket:
        """Return a socket that keeps the port, bound before the old socket is closed.

        In between, the kernel could give the port to a client's outgoing connection.
        """
        if listening is None:
            return self._bound_socket()
        if hasattr(socket, "SO_REUSEPORT"):
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with contextlib.suppress(AddressUnavailable):  # not every system lets two sockets share
                bound = self._bound_socket(shares_port=True)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
                return bound
        listening.close()
        return self._bound_socket()

    def _bound_socket(self, *, shares_port: bool = False) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setblocking(False)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shares_port:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind((self.host, self.port))
        except OSError as error:
            bound.close()
            raise AddressUnavailable(
                f"{self._owner} cannot listen on {self.host}:{self.port}: "
                f"{error.strerror or error}; give a free port, or 0 for any",
                error.errno,
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
                self.loop.connect_accepted_socket(self._make_connection, accepted, ssl=self._tls)
            )
            self._tasks[task] = accepted
            task.add_done_callback(self._on_connected)

    def _on_accept_error(self, error: OSError, listening: socket.socket) -> None:
        if error.errno not in _OUT_OF_RESOURCES:
            raise error
        self.bounded_log.log(logging.ERROR, "%s cannot accept a connection: %s", self._owner, error)
        self.loop.remove_reader(listening)
        self.loop.call_later(_ACCEPT_RETRY_S, self._await_clients)

    def _await_clients(self) -> None:
        if self._accepting and self._socket is not None:
            self.loop.add_reader(self._socket, self._accept)

    def _on_connected(self, task: asyncio.Task[object]) -> None:
        accepted = self._tasks.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if self._tls is None:
            logger.debug("%s: a client disconnected while connecting", self._owner)
        else:
            self.bounded_log.log(
                logging.WARNING, "%s: the TLS handshake failed: %s", self._owner, error
            )
        if accepted is not None:
            accepted.close()
