"""A request on its way through the backend: what it takes to answer it, alone or in parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from .api import SplitRequest
from .backend import Throttled
from .codec import RequestHeader

Submit = Callable[[Any, Callable[[Any], None]], None]
"""Takes a request for the backend and what its response is given to."""


class Responder(Protocol):
    """Sends the answers of the requests that were handed out."""

    def on_response(self, exchange: Exchange, response: Any) -> None: ...


class Exchange:
    """A request on its way, with what is needed to answer it."""

    __slots__ = ("_responder", "header", "request")

    def __init__(self, responder: Responder, header: RequestHeader, request: Any) -> None:
        self._responder = responder
        self.header: RequestHeader = header
        self.request: Any = request

    def respond(self, response: Any) -> None:
        """Answer with a response message, or close the connection with an exception."""
        self._responder.on_response(self, response)


class SplitExchange:
    """Gathers the responses of the requests that one client request stands for."""

    __slots__ = ("_exchange", "_join", "_missing", "_responses", "_throttled")

    def __init__(
        self, exchange: Exchange, count: int, join: Callable[[tuple[Any, ...]], Any] = tuple
    ) -> None:
        self._exchange = exchange
        self._join = join
        self._responses: list[Any] = [None] * count
        self._missing = count
        self._throttled: Throttled | None = None
        """The one that waits longest."""

    def respond_to(self, index: int) -> Callable[[Any], None]:
        """Return what answers the request with this index."""
        answered = False

        def respond(response: Any) -> None:
            nonlocal answered
            if answered:
                return
            answered = True
            if isinstance(response, BaseException):
                self._exchange.respond(response)
                return
            if type(response) is Throttled:
                if self._throttled is None or response.throttle_ms > self._throttled.throttle_ms:
                    self._throttled = response
                response = response.response
            self._responses[index] = response
            self._missing -= 1
            if not self._missing:
                whole = self._join(tuple(self._responses))
                if self._throttled is not None:
                    whole = replace(self._throttled, response=whole)
                self._exchange.respond(whole)

        return respond


def submit_parts(
    split: SplitRequest, exchange: Exchange, submit: Submit, loop: asyncio.AbstractEventLoop
) -> None:
    """Hand out the parts of a request, all at once or each after other clients had their turn."""
    if not split.requests:
        return  # OffsetFetch of no group: OffsetFetchResponse.errorCounts throws, as of 3.0
    if split.join is None:
        gathered = SplitExchange(exchange, len(split.requests))
        for index, request in enumerate(split.requests):
            submit(request, gathered.respond_to(index))
    else:
        exchange.request = split.whole
        gathered = SplitExchange(exchange, len(split.requests), split.join)
        _submit_from(0, split, gathered, submit, loop)


def _submit_from(
    index: int,
    split: SplitRequest,
    gathered: SplitExchange,
    submit: Submit,
    loop: asyncio.AbstractEventLoop,
) -> None:
    submit(split.requests[index], gathered.respond_to(index))
    if index + 1 < len(split.requests):
        loop.call_soon(_submit_from, index + 1, split, gathered, submit, loop)
