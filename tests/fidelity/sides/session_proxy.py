"""A proxy between a broker and ZooKeeper, which can end the broker's session at once.

The session of a dead or frozen broker lasts until it expires. That takes seconds, and under load a
short session also expires by itself. So brokers have long sessions, and the proxy ends the session
of a broker that is killed: it knows the session's id and password from the response that it passed
on, takes over the session and closes it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

_CLOSE_SESSION = -11
_CONNECT_TIMEOUT_MS = 10_000
_PATIENCE_S = 10.0


class SessionProxy:
    """Passes on the bytes between one broker and ZooKeeper."""

    def __init__(self, zookeeper_port: int) -> None:
        self._zookeeper = ("127.0.0.1", zookeeper_port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._session: tuple[int, bytes] | None = None
        self._open: list[socket.socket] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                broker, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._zookeeper, _PATIENCE_S)
            except OSError:
                broker.close()
                continue
            server.settimeout(None)
            for one in (broker, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open += [broker, server]
            for source, target, answers in ((broker, server, False), (server, broker, True)):
                threading.Thread(
                    target=self._pass_on, args=(source, target, answers), daemon=True
                ).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            if answers:
                frame = _frame(source)
                self._remember(frame)
                target.sendall(struct.pack(">i", len(frame)) + frame)
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for one in (source, target):
                if one in self._open:
                    self._open.remove(one)
        source.close()

    def _remember(self, answer: bytes) -> None:
        """Keep the id and password of a session; the id 0 is that of an expired one."""
        _version, _timeout, session, length = struct.unpack_from(">iiqi", answer)
        if session:
            self._session = (session, answer[20 : 20 + length])

    def end_session(self) -> None:
        """Cut the broker off, and close its session."""
        with self._lock:
            cut = list(self._open)
        for one in cut:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        if self._session is None:
            return
        session, password = self._session
        self._session = None
        with socket.create_connection(self._zookeeper, _PATIENCE_S) as own:
            request = struct.pack(">iqiq", 0, 0, _CONNECT_TIMEOUT_MS, session)
            request += struct.pack(">i", len(password)) + password + b"\0"
            _send(own, request)
            (found,) = struct.unpack_from(">q", _frame(own), 8)
            if found == session:
                _send(own, struct.pack(">ii", 1, _CLOSE_SESSION))
                _frame(own)

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            left = list(self._open)
        for one in left:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def _send(to: socket.socket, frame: bytes) -> None:
    to.sendall(struct.pack(">i", len(frame)) + frame)


def _frame(source: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", _exactly(source, 4))
    return _exactly(source, size)


def _exactly(source: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = source.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)
