"""The controller's channels to brokers: one FIFO queue each, with retries until answered.

As in Kafka's ``ControllerChannelManager`` (docs/kafka/control-requests.md#channels), requests to a
broker keep their order, are not lost while the broker is registered, and are retried every 100 ms.
The queue of a removed broker is dropped at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ...protocol.awaiting import Cancelled, Signal, Task
from ...protocol.errors import FakeKafkaError
from ...protocol.host import sleep
from ...protocol.names import broker_name
from ...protocol.values import BrokerInfo
from ...statemachines.controller.histogram import Histogram
from ..node import Node

RETRY_BACKOFF_MS = 100


class _Channel:
    """Queue and sender of one broker (Kafka: ``RequestSendThread``)."""

    def __init__(self, owner: ControllerChannels, broker_id: int) -> None:
        self._owner = owner
        self._broker_id = broker_id
        self._queue: deque[tuple[Any, Callable[[Any], object] | None, int]] = deque()
        self._wake = Signal()
        self._closed = False
        self.queue_times = Histogram()
        """Milliseconds that requests waited before they were first sent."""
        self._task = Task(self._run())

    def __len__(self) -> int:
        return len(self._queue)

    def put(self, request: Any, callback: Callable[[Any], object] | None) -> None:
        self._queue.append((request, callback, self._owner.node.now_ms()))
        self._wake.notify()

    async def _run(self) -> None:
        node = self._owner.node
        destination = broker_name(self._broker_id)
        while not self._closed:
            if not self._queue:
                await self._wake.wait()
                continue
            request, callback, queued_at_ms = self._queue.popleft()
            self.queue_times.update(node.now_ms() - queued_at_ms)
            while not self._closed:
                try:
                    response = await node.ask(destination, request, self._owner.request_timeout_ms)
                except Cancelled:
                    raise
                except FakeKafkaError:
                    await self._owner.sleep(RETRY_BACKOFF_MS)
                    continue
                if callback is not None and not self._closed:
                    callback(response)
                break

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._task.cancel()


class ControllerChannels:
    """Channels of one active controller; senders are coroutines of the controller's node."""

    def __init__(self, node: Node, request_timeout_ms: int) -> None:
        self.node = node
        self.request_timeout_ms = request_timeout_ms
        self._channels: dict[int, _Channel] = {}

    def startup(self, brokers: Iterable[BrokerInfo]) -> None:
        for broker in brokers:
            self.add_broker(broker)

    def add_broker(self, broker: BrokerInfo) -> None:
        if broker.id not in self._channels:
            self._channels[broker.id] = _Channel(self, broker.id)

    def remove_broker(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def send_request(
        self, broker_id: int, request: Any, callback: Callable[[Any], object] | None = None
    ) -> None:
        """Queue a request; requests to unknown brokers are dropped, as in Kafka with a warning."""
        channel = self._channels.get(broker_id)
        if channel is not None:
            channel.put(request, callback)

    def shutdown(self) -> None:
        """Drop all pending requests and stop the senders."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            channel.close()

    def queue_size(self, broker_id: int) -> int:
        channel = self._channels.get(broker_id)
        return len(channel) if channel is not None else 0

    def queue_times(self, broker_id: int) -> Histogram:
        """Return the times that requests to a broker waited; empty for an unknown broker."""
        channel = self._channels.get(broker_id)
        return channel.queue_times if channel is not None else Histogram()

    @property
    def total_queue_size(self) -> int:
        """Number of waiting requests to all brokers, without requests in flight."""
        return sum(len(channel) for channel in self._channels.values())

    def sleep(self, delay_ms: float) -> Any:
        """Return an awaitable that completes after a delay."""
        return sleep(self.node, delay_ms)
