"""A broker's requests to whichever broker is the controller (``NodeToControllerChannelManager``).

A request is sent again when the connection breaks or the broker asked is not the controller, until
it is answered or too old. Each purpose has a channel of its own, which decides what is too old.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...protocol.awaiting import Disconnected, RequestTimeout
from ...protocol.config import BrokerConfig
from ...protocol.errors import ErrorCode, FakeKafkaError
from ...protocol.host import sleep
from ..node import Node

_RECONNECT_BACKOFF_MS = 50
_LOOKUP_BACKOFF_MS = 100


class KnownController:
    """The controller that one channel asks.

    A channel takes it from the broker's metadata as soon as these name one, before anything is to
    be sent. It goes on asking it until that broker says that it is not the controller, or its
    connection breaks: while it stands still, requests wait for their timeout although there is
    another controller (``NodeToControllerRequestThread.doWork``).
    """

    def __init__(self, find: Callable[[], str | None]) -> None:
        self._find = find
        self._name: str | None = None

    def name(self) -> str | None:
        if self._name is None:
            self._name = self._find()
        return self._name

    def forget(self) -> None:
        """It is not the controller, or not there."""
        self._name = None


class ControllerChannel:
    """Asks the controller that the broker's metadata name."""

    def __init__(
        self,
        node: Node,
        find_controller: Callable[[], str | None],
        config: BrokerConfig,
        retry_timeout_ms: int | None,
    ) -> None:
        """``retry_timeout_ms`` is the age at which a request is given up; None: never."""
        self._node = node
        self._controller = KnownController(find_controller)
        self._retry_timeout_ms = retry_timeout_ms
        self._request_timeout_ms: int = config["controller.socket.timeout.ms"]
        if retry_timeout_ms is not None:
            self._request_timeout_ms = min(self._request_timeout_ms, retry_timeout_ms)

    def look_up(self) -> None:
        """The broker's metadata have changed: they may name the controller to be asked."""
        self._controller.name()

    def send(self, request: Any, callback: Callable[[Any], object]) -> None:
        """Ask in the background, and call back with the response.

        The callback gets None when the request failed in another way than by a broken connection.
        It is not called after the end of the broker.
        """
        self._node.start_task(self._ask_for(request, callback))

    async def _ask_for(self, request: Any, callback: Callable[[Any], object]) -> None:
        try:
            response = await self.ask(request)
        except FakeKafkaError:
            response = None
        callback(response)

    async def ask(self, request: Any) -> Any:
        """The response, which has an ``error``; that is not NOT_CONTROLLER.

        Raises ``RequestTimeout`` when no controller answered before the request was too old.
        """
        node = self._node
        started_ms, limit_ms = node.now_ms(), self._retry_timeout_ms
        while limit_ms is None or node.now_ms() - started_ms < limit_ms:
            destination = self._controller.name()
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
            self._controller.forget()
            await sleep(node, _RECONNECT_BACKOFF_MS)
        raise RequestTimeout(f"no controller answered within {limit_ms} ms")
