"""The queue of items on their way over one direction of a slow TCP connection."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class ClientLink(Protocol):
    """The link between the clients and one broker, which delays the bytes sent over it."""

    def to_broker_s(self, size: int) -> float:
        """Return the seconds until ``size`` bytes that a client sends now reach the broker."""
        ...

    def to_client_s(self, size: int) -> float:
        """Return the seconds until ``size`` bytes that the broker sends now reach a client."""
        ...


class PacedQueue(Generic[T]):
    """A queue that delivers items in order, each after its own delay at the earliest.

    Delays overlap: a thousand items a second stay a thousand a second, however long each is on its
    way.
    """

    __slots__ = ("_in_transit", "_loop", "_on_arrival", "_timer", "bytes_held")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_arrival: Callable[[T], object]) -> None:
        """``on_arrival`` is called with each item when it arrives."""
        self._loop = loop
        self._on_arrival = on_arrival
        self._in_transit: deque[tuple[float, int, T]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self.bytes_held: int = 0
        """Bytes of all items on their way."""

    def __len__(self) -> int:
        return len(self._in_transit)

    def put(self, item: T, size: int, delay_s: float) -> None:
        """Deliver an item of ``size`` bytes after a delay, and after all items before it."""
        due_s = self._loop.time() + delay_s
        self._in_transit.append((due_s, size, item))
        self.bytes_held += size
        if self._timer is None:
            self._timer = self._loop.call_at(due_s, self._deliver)

    def clear(self) -> None:
        """Discard all items on their way."""
        self._in_transit.clear()
        self.bytes_held = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _deliver(self) -> None:
        in_transit = self._in_transit
        # Timers have a resolution of a millisecond; items due by now are delivered together.
        now_s = self._loop.time()
        while in_transit:
            due_s, size, item = in_transit[0]
            if due_s > now_s:
                break
            in_transit.popleft()
            self.bytes_held -= size
            self._on_arrival(item)
        self._timer = self._loop.call_at(in_transit[0][0], self._deliver) if in_transit else None
