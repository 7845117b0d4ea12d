"""The open loop: arrivals at a fixed rate, whatever the cluster does."""

from __future__ import annotations

from collections.abc import Callable

from ..actors.node import Node
from ..actors.runtime.runtime import Runtime

Send = Callable[[int], Node]
"""Sends the n-th arrival and gives the client that sent it."""


class OpenLoop:
    """Calls ``send`` at a fixed interval, from ``start`` on.

    The next arrival is timed at the client that sent the last one, so the load ends with its
    client. An arrival never waits for an answer: coordinated omission cannot hide an outage.
    """

    __slots__ = ("_interval_us", "_runtime", "_send", "arrivals", "running")

    def __init__(self, runtime: Runtime, interval_us: int, send: Send) -> None:
        self._runtime = runtime
        self._interval_us = interval_us
        self._send = send
        self.running = False
        self.arrivals = 0

    def start(self) -> None:
        """The first arrival is now."""
        self.running = True
        self._arrive()

    def stop(self) -> None:
        """No further record arrives; records already sent are still answered."""
        self.running = False

    def _arrive(self) -> None:
        if self.running:
            number = self.arrivals
            self.arrivals += 1
            client = self._send(number)
            self._runtime.call_later(client, self._interval_us, self._arrive)
