"""A request on its way through the backend: what it takes to answer it, alone or in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .codec import RequestHeader


class Responder(Protocol):
    """Sends the answers of the requests that were handed out."""

    def on_response(self, exchange: Exchange, response: Any) -> None: ...


class Exchange:
    """One request on its way: what is needed to answer it."""

    __slots__ = ("_responder", "header", "request")

    def __init__(self, responder: Responder, header: RequestHeader, request: Any) -> None:
        self._responder = responder
        self.header = header
        self.request = request

    def respond(self, response: Any) -> None:
        """Answer with a response message, or close the connection with an exception."""
        self._responder.on_response(self, response)


class SplitExchange:
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
