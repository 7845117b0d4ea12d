"""Guards that protect the control API from foreign web pages and slow clients."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..testing.foreign_pages import refusal

CONNECTIONS_MAX = 100
IDLE_S_MAX = 15.0
"""Time in seconds for which a connection may be open without a request."""
_CLOSE_DELAY_S = 1.0
SEND_S_MAX = 30.0
"""Time in seconds for which a part of a response may wait for the client to read."""


def _is_navigation(scope: Scope) -> bool:
    """Return whether a browser navigates to the page, rather than fetches it from another one."""
    if scope["path"] != "/" or scope["method"] not in ("GET", "HEAD"):
        return False
    return Headers(scope=scope).get("sec-fetch-mode", "navigate") == "navigate"


class Guard:
    """Refuses requests from foreign pages, and abandons clients that do not read."""

    def __init__(self, asgi: ASGIApp, own_hosts: frozenset[str]) -> None:
        self._asgi = asgi
        self._own_hosts = own_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_in_time(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-content-type-options", b"nosniff"),
                ]
            try:
                async with asyncio.timeout(SEND_S_MAX):
                    await send(message)
            except TimeoutError:
                raise OSError("the client does not read its answer") from None

        text = refusal(
            Headers(scope=scope), self._own_hosts, "the control API", is_visit=_is_navigation(scope)
        )
        if text is not None:
            data = json.dumps({"error": text}).encode()
            head: Any = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(data)).encode()),
                (b"connection", b"close"),
            ]
            await send_in_time({"type": "http.response.start", "status": 403, "headers": head})
            await send_in_time({"type": "http.response.body", "body": data})
            return
        try:
            await self._asgi(scope, receive, send_in_time)
        except OSError:
            return  # the client has disconnected


_TOO_MANY_CONNECTIONS = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    b"Connection: close\r\n\r\n"
    b'{"error": "too many connections; try again later"}'
)


class GuardedProtocol(H11Protocol):
    """HTTP/1.1 with limits on the number of connections and on their time without a request."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger: logging.Logger = logging.getLogger("fakekafka.control")
        self._checked_cycle: Any = None
        self._is_closing = False

    def connection_made(self, transport: Any) -> None:
        if len(self.connections) >= CONNECTIONS_MAX:
            self._respond_and_close(transport, _TOO_MANY_CONNECTIONS)
            return
        super().connection_made(transport)
        self.loop.call_later(IDLE_S_MAX, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.transport is not None:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._is_closing:
            super().data_received(data)

    def _close_if_idle(self) -> None:
        """Close the connection if it has had no request since the last check."""
        if self.transport.is_closing():
            return
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is self._checked_cycle:
            self.transport.close()
            return
        self._checked_cycle = self.cycle
        self.loop.call_later(IDLE_S_MAX, self._close_if_idle)

    def send_400_response(self, msg: str) -> None:
        """Answer malformed HTTP with JSON, like other errors."""
        data = json.dumps({"error": msg}).encode()
        answer = (
            b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(data), data)
        )
        self._respond_and_close(self.transport, answer)

    def _respond_and_close(self, transport: Any, answer: bytes) -> None:
        """Answer, and close once the client had time to read.

        Closing at once, while the client still sends, would reset the connection before the client
        has read the answer.
        """
        self._is_closing = True
        transport.write(answer)
        transport.write_eof()
        self.loop.call_later(_CLOSE_DELAY_S, transport.close)
