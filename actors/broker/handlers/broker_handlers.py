"""The base of the groups of handlers of a broker's requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ...delivery import Delivery
from ...port import Handler
from ..broker import Broker


class BrokerHandlers:
    """A group of handlers of requests to a broker, whose parts they use."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def by_type(self) -> dict[type, Handler]:
        """Return the handlers by type of request."""
        raise NotImplementedError


async def _ask(work: Callable[[Any], Awaitable[Any]], request: Any, _delivery: Delivery) -> Any:
    return await work(request)


def answered_by(work: Callable[[Any], Awaitable[Any]]) -> Handler:
    """Return a handler that answers requests with the result of a coroutine function."""
    return partial(_ask, work)
