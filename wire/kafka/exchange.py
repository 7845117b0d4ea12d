"""A request on its way through the backend: what it takes to answer it, alone or in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .codec import RequestHeader

if TYPE_CHECKING:
    from .connection import Connection


class Exchange:
    """One request on its way: what is needed to answer it."""

    __slots__ = ("connection", "header", "request")

    def __init__(self, connection: Connection, header: RequestHeader, request: Any) -> None:
        self.connection = connection
        self.header = header
        self.request = request

    def respond(self, response: Any) -> None:
        """Answer with a response message, or close the connection with an exception."""
        self.connection.on_response(self, response)


class BatchExchange:
    """Gathers the responses of the requests that one client request stands for."""

    __slots__ = ("_exchange", "_missing", "_responses")

    def __init__(self, exchange: Exchange, count: int) -> None:
        self._exchange = exchange
        self._responses: list[Any] = [None] * count
        self._missing = count

    def respond_to(self, index: int) -> Callable[[Any], None]:
        """What answers the request with this index."""
        answered = False

        def respond(response: Any) -> None:
            nonlocal answered
            if answered:
                return
            answered = True
            if isinstance(response, BaseException):
                self._exchange.respond(response)
                return
            self._responses[index] = response
            self._missing -= 1
            if not self._missing:
                self._exchange.respond(tuple(self._responses))

        return respond
