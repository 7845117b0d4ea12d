"""Requests on their way through the backend, whole or in parts, and how they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from .api import SplitRequest
from .backend import Throttled
from .codec import RequestHeader

Submit = Callable[[Any, Callable[[Any], None]], None]
"""Submits a request to the backend, with the function that takes its response."""


class Responder(Protocol):
    """Sends the answers to requests that were submitted."""

    def on_response(self, exchange: Exchange, response: Any) -> None: ...


class Exchange:
    """A request that is being processed, with the header and responder needed to answer it."""

    __slots__ = ("_responder", "header", "request")

    def __init__(self, responder: Responder, header: RequestHeader, request: Any) -> None:
        self._responder = responder
        self.header: RequestHeader = header
        self.request: Any = request

    def respond(self, response: Any) -> None:
        """Answer with a response message; an exception closes the connection instead."""
        self._responder.on_response(self, response)


class SplitExchange:
    """Gathers the responses to the parts of one client request."""

    __slots__ = ("_exchange", "_join", "_missing", "_responses", "_throttled")

    def __init__(
        self, exchange: Exchange, count: int, join: Callable[[tuple[Any, ...]], Any] = tuple
    ) -> None:
        self._exchange = exchange
        self._join = join
        self._responses: list[Any] = [None] * count
        self._missing = count
        self._throttled: Throttled | None = None
        """The response with the longest throttle time so far."""

    def respond_to(self, index: int) -> Callable[[Any], None]:
        """Return the function that takes the response to the part with this index."""
        is_answered = False

        def respond(response: Any) -> None:
            nonlocal is_answered
            if is_answered:
                return
            is_answered = True
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
    """Submit the parts of a request, all at once, or one by one with other clients in between."""
    if not split.requests:
        return  # OffsetFetch of no group: since 3.0 OffsetFetchResponse.errorCounts throws
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
