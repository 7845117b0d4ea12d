"""A broker's requests to whichever broker is the controller (``NodeToControllerChannelManager``).

A request is sent again when the connection breaks or the one asked is not the controller, until it
is answered or too old.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode
from ...protocol.host import sleep
from ..node import Node

_RECONNECT_BACKOFF_MS = 50
_LOOKUP_BACKOFF_MS = 100


class ControllerChannel:
    """Asks the controller that the broker's metadata name."""

    __slots__ = ("_find_controller", "_node", "_request_timeout_ms", "_retry_timeout_ms")

    def __init__(
        self, node: Node, find_controller: Callable[[], str | None], config: BrokerConfig
    ) -> None:
        self._node = node
        self._find_controller = find_controller
        self._retry_timeout_ms: int = config["request.timeout.ms"]
        self._request_timeout_ms: int = min(
            config["controller.socket.timeout.ms"], self._retry_timeout_ms
        )

    async def ask(self, request: Any) -> Any:
        """The response, which has an ``error``; that is not NOT_CONTROLLER.

        Raises ``RequestTimeout`` when no controller answered within ``request.timeout.ms``.
        """
        node = self._node
        deadline_ms = node.now_ms() + self._retry_timeout_ms
        while node.now_ms() < deadline_ms:
            destination = self._find_controller()
            if destination is None:
                await sleep(node, _LOOKUP_BACKOFF_MS)
                continue
            try:
                response = await node.ask(destination, request, self._request_timeout_ms)
            except (Disconnected, RequestTimeout) as error:
                node.log("debug", f"{type(request).__name__} to {destination}: {error}")
            else:
                if response.error is not ErrorCode.NOT_CONTROLLER:
                    return response
            await sleep(node, _RECONNECT_BACKOFF_MS)
        raise RequestTimeout(f"no controller answered within {self._retry_timeout_ms} ms")
