"""A broker's requests to the current controller (``NodeToControllerChannelManager``).

A request is sent again if the connection breaks or the broker asked is not the controller, until
it is answered or expires. Each purpose has a channel of its own, with its own time of expiry.
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


class ControllerLookup:
    """The controller that a channel sends its requests to.

    A channel takes the controller from the broker's metadata as soon as they name one, before there
    is a request to send. It keeps that controller until the broker answers that it is not the
    controller, or the connection breaks. While that broker hangs, requests wait for their timeout
    although there is another controller (``NodeToControllerRequestThread.doWork``).
    """

    def __init__(self, find: Callable[[], str | None]) -> None:
        self._find = find
        self._name: str | None = None

    def name(self) -> str | None:
        if self._name is None:
            self._name = self._find()
        return self._name

    def forget(self) -> None:
        """Forget the controller, as it is not the controller any more or does not answer."""
        self._name = None


class ControllerChannel:
    """Sends requests to the controller that the broker's metadata name."""

    def __init__(
        self,
        node: Node,
        find_controller: Callable[[], str | None],
        config: BrokerConfig,
        retry_timeout_ms: int | None,
    ) -> None:
        """Create a channel; ``retry_timeout_ms`` is the age at which a request expires, if any."""
        self._node = node
        self._controller = ControllerLookup(find_controller)
        self._retry_timeout_ms = retry_timeout_ms
        self._request_timeout_ms: int = config["controller.socket.timeout.ms"]
        if retry_timeout_ms is not None:
            self._request_timeout_ms = min(self._request_timeout_ms, retry_timeout_ms)

    def look_up(self) -> None:
        """Take the controller from changed metadata, unless the channel has one."""
        self._controller.name()

    def send(self, request: Any, callback: Callable[[Any], object]) -> None:
        """Send a request in the background, and call back with the response.

        The callback gets None if the request failed other than by a broken connection, which is
        retried. It is not called after the end of the broker.
        """
        self._node.start_task(self._ask_for(request, callback))

    async def _ask_for(self, request: Any, callback: Callable[[Any], object]) -> None:
        try:
            response = await self.ask(request)
        except FakeKafkaError:
            response = None
        callback(response)

    async def ask(self, request: Any) -> Any:
        """Send a request and return the response, whose ``error`` is not NOT_CONTROLLER.

        Raises ``RequestTimeout`` if no controller answered before the request expired.
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
