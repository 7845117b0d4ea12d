"""Requests of a core to other brokers, whose answers it takes by a callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.names import broker_name
from ..node import Node


class BrokerRequests:
    """Carries requests from one broker to others; the broker itself is among them."""

    __slots__ = ("_node", "_timeout_ms")

    def __init__(self, node: Node, timeout_ms: int) -> None:
        self._node = node
        self._timeout_ms = timeout_ms

    def send(self, broker_id: int, request: Any, answered: Callable[[Any], object]) -> None:
        """Send a request; ``answered`` is called once, with None if no answer came."""
        node = self._node

        def settled(outcome: Any) -> None:
            if not node.stopped:
                answered(None if isinstance(outcome, BaseException) else outcome)

        node.ask_then(broker_name(broker_id), request, self._timeout_ms, settled)
