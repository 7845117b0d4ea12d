"""Channels from the controller to brokers
(docs/kafka/control-requests.md#channels)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ...protocol.values import BrokerInfo
from ..machines.request_batch import BrokerChannels as RequestChannels
from .histogram import Histogram


class BrokerChannels(RequestChannels, Protocol):
    """Kafka's ``ControllerChannelManager``: a FIFO queue per broker."""

    def startup(self, brokers: Iterable[BrokerInfo]) -> None: ...
    def shutdown(self) -> None: ...
    def add_broker(self, broker: BrokerInfo) -> None: ...
    def remove_broker(self, broker_id: int) -> None: ...

    def queue_size(self, broker_id: int) -> int:
        """Return the number of requests that wait to be sent, without the one in flight."""
        ...

    def queue_times(self, broker_id: int) -> Histogram:
        """Return the milliseconds that requests waited before they were sent."""
        ...

    @property
    def total_queue_size(self) -> int:
        """Sum of ``queue_size`` over all brokers."""
        ...
