"""Serves the control API of a cluster over HTTP/1.0; every answer is JSON, errors too."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NoReturn

from ...protocol.errors import AddressUnavailable, UsageError
from .operations import dispatch, methods_at

if TYPE_CHECKING:
    from ..cluster import Cluster

BODY_BYTES_MAX = 8_000_000
"""A body of empty lists takes some twenty times its size when it is read, and no other thread
runs meanwhile."""
BODIES_BYTES_MAX = 80_000_000
"""Of all requests together."""
CONNECTIONS_MAX = 100
"""Each takes a thread."""
_DRAIN_S = 1.0
_READ_BYTES = 65536


def read_object(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body, empty when there is none; raises ``UsageError`` otherwise."""
    try:
        body = json.loads(raw, parse_constant=_refuse_constant) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is no JSON object: {error}") from None
    if not isinstance(body, dict):
        raise UsageError("the body is no JSON object: it must be written as {...}")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def body_length(text: str | None) -> int:
    """Bytes of the body as the header says; raises ``UsageError`` for what is no length."""
    stripped = (text or "0").strip()
    if not (stripped.isascii() and stripped.isdigit()):
        raise UsageError(f"Content-Length must be a number of bytes, not {text!r}")
    if len(stripped) > len(str(BODY_BYTES_MAX)) or int(stripped) > BODY_BYTES_MAX:
        raise UsageError(f"Content-Length must be at most {BODY_BYTES_MAX} bytes")
    return int(stripped)


class _TooMuch(Exception):
    """The requests that are read now take all the memory there is for them."""


class _Handler(BaseHTTPRequestHandler):
    """One request; ``cluster`` is set by the server's own class."""

    cluster: Cluster
    server: _Server
    timeout = 30.0
    """Seconds that a client may keep its thread without a word."""

    def _answer(self) -> None:
        try:
            if self.headers.get("Transfer-Encoding"):
                raise UsageError("Transfer-Encoding is not understood: send a Content-Length")
            body = self._read_body(body_length(self.headers.get("Content-Length")))
        except (UsageError, _TooMuch) as error:
            self._write(400 if isinstance(error, UsageError) else 503, {"error": str(error)})
            self._drain()
            return
        try:
            status, value = dispatch(self.cluster, self.command, self.path, body)
        except Exception as error:
            status, value = 500, {"error": f"{type(error).__name__}: {error}"}
        self._write(status, value)

    def _read_body(self, size: int) -> dict[str, Any]:
        """The body, in memory as far as it has come."""
        raw = bytearray()
        try:
            while len(raw) < size:
                part = self.rfile.read(min(size - len(raw), _READ_BYTES))
                if not part:
                    break
                self.server.hold(len(part))
                raw += part
            with self.server.reading:
                return read_object(bytes(raw))
        finally:
            self.server.hold(-len(raw))

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815

    def _write(self, status: int, value: Any) -> None:
        data = json.dumps(value, default=str).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 405:
            self.send_header("Allow", ", ".join(methods_at(self.path)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _drain(self) -> None:
        """Read what is left: closing before would reset the connection, answer and all."""
        with contextlib.suppress(OSError):  # the client may be gone already
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_DRAIN_S)
            while self.connection.recv(65536):
                pass

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses is answered as JSON too."""
        if code == 501:  # a method without a function here: the path decides what is said
            self._answer()
            return
        self.close_connection = True
        self._write(code, {"error": message or self.responses[code][0]})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The caller sees the answers; a log of them would only be noise."""


_BUSY = (
    b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\n\r\n"
    b'{"error": "too many connections; try again later"}'
)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        self._lock = threading.Lock()
        self.reading = threading.Lock()
        """Held while a body is read: one at a time, as each may take much memory."""
        self._held_bytes = 0
        self._connections = 0
        super().__init__(address, handler)

    def hold(self, size: int) -> None:
        """Count bytes of a body; raises ``_TooMuch`` when there are too many already."""
        with self._lock:
            if size > 0 and self._held_bytes + size > BODIES_BYTES_MAX:
                raise _TooMuch(
                    f"the bodies of all requests take {self._held_bytes} bytes; try again later"
                )
            self._held_bytes += size

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, unless there are too many."""
        with self._lock:
            is_welcome = self._connections < CONNECTIONS_MAX
            self._connections += is_welcome
        if is_welcome:
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.sendall(_BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that goes away before its answer is no error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ControlServer:
    """Serves the control API of a cluster on 127.0.0.1 in threads of its own.

    Raises ``UsageError`` for a number that is no port and ``AddressUnavailable`` for one in use.
    """

    def __init__(self, cluster: Cluster, port: int = 0) -> None:
        if not 0 <= port <= 65535:
            raise UsageError(f"the control port must be between 0 and 65535, not {port}")
        handler = type("Handler", (_Handler,), {"cluster": cluster})
        try:
            self._server = _Server(("127.0.0.1", port), handler)
        except OSError as error:
            raise AddressUnavailable(
                f"the control API cannot listen on 127.0.0.1:{port}: {error.strerror}; "
                "give a free port, or 0 for any",
                error.errno,
            ) from None
        self._thread = threading.Thread(
            target=lambda: self._server.serve_forever(poll_interval=0.05),
            name="fakekafka-control",
            daemon=True,
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
