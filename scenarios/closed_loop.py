"""The closed loop: each client keeps a number of records unanswered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..actors.clients.producer import SimulatedProducer
from ..actors.runtime.runtime import Runtime


class ClosedLoop:
    """Calls ``send`` for each producer as often as its window allows, from ``start`` on.

    The sender reports each answer with ``answered``.
    """

    __slots__ = ("_in_flight", "_producers", "_runtime", "_send", "running")

    def __init__(
        self,
        runtime: Runtime,
        producers: Sequence[SimulatedProducer],
        in_flight: int,
        send: Callable[[SimulatedProducer], object],
    ) -> None:
        self._runtime = runtime
        self._producers = producers
        self._in_flight = in_flight
        self._send = send
        self.running = False

    def start(self) -> None:
        """Every producer fills its window now."""
        self.running = True
        for producer in self._producers:
            for _ in range(self._in_flight):
                self._send(producer)

    def stop(self) -> None:
        """No further record is sent; records already sent are still answered."""
        self.running = False

    def answered(self, producer: SimulatedProducer) -> None:
        """A record of a producer has its answer: another one takes its place."""
        if self.running:
            # Not from inside the answer: an unreachable cluster would recurse.
            self._runtime.call_later(producer, 0, lambda: self._send(producer))
