"""The virtual runtime: one heap of (time, sequence) events, no wall clock, one seed.

Order. An event due now that was scheduled earlier comes first; events scheduled *for now* while
now is running wait in ``_ready`` and have larger sequence numbers by construction. So the order
is (time, sequence) without a heap operation for messages without delay.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from .runtime import VIRTUAL_EPOCH_MS, LoopRuntime

if TYPE_CHECKING:
    from .node import Delivery, Node

_GC_THRESHOLD = 50_000
"""Allocations between two collections while events run."""


_ANY_NUMBER = 1 << 62


class VirtualTimer:
    """A scheduled call; cancelling leaves the entry in the heap, to be skipped."""

    __slots__ = ("callback", "node")

    def __init__(self, node: Node | None, callback: Callable[[], object]) -> None:
        self.node = node
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None
        self.node = None


class VirtualRuntime(LoopRuntime):
    """Deterministic: same seed, same code, same events."""

    name = "virtual"

    def __init__(self, seed: int = 0) -> None:
        self._now = 0
        self._sequence = 0
        self._heap: list[tuple[int, int, Any]] = []
        self._ready: deque[Any] = deque()
        self.events_run = 0
        self.stopping = False
        super().__init__(seed)

    def now_us(self) -> int:
        return self._now

    def now_ms(self) -> int:
        return VIRTUAL_EPOCH_MS + self._now // 1000

    def call_later(
        self, node: Node | None, delay_us: int, callback: Callable[[], object]
    ) -> VirtualTimer:
        timer = VirtualTimer(node, callback)
        if delay_us <= 0:
            self._ready.append(timer)
        else:
            self._sequence += 1
            heappush(self._heap, (self._now + delay_us, self._sequence, timer))
        return timer

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        if delay_us <= 0:
            self._ready.append(delivery)
        else:
            self._sequence += 1
            heappush(self._heap, (self._now + delay_us, self._sequence, delivery))

    def enqueue_not_before(self, delivery: Delivery, delay_us: int, earliest_us: int) -> int:
        arrival_us = self._now + delay_us
        if arrival_us < earliest_us:
            arrival_us = earliest_us
        if arrival_us <= self._now:
            self._ready.append(delivery)
        else:
            self._sequence += 1
            heappush(self._heap, (arrival_us, self._sequence, delivery))
        return arrival_us

    def next_time_us(self) -> int | None:
        """Time of the next event, None when nothing is left to happen."""
        if self._ready:
            return self._now
        heap = self._heap
        while heap:
            item = heap[0][2]
            if type(item) is VirtualTimer and item.callback is None:
                heappop(heap)
                continue
            return heap[0][0]
        return None

    def step(self) -> bool:
        """Run one event; False when nothing is left."""
        return self.run(limit_us=None, max_events=1) == 1

    def run(
        self,
        limit_us: int | None,
        max_events: int | None = None,
        until: Callable[[], object] | None = None,
    ) -> int:
        """Run events up to a time (inclusive), a number, or until a condition holds after one.

        Gives the number of events run. Without events left before ``limit_us`` the clock moves
        to the limit.
        """
        # A large cluster is millions of small objects that live long: with Python's default
        # thresholds the collector walks them again and again.
        thresholds = gc.get_threshold()
        gc.set_threshold(max(thresholds[0], _GC_THRESHOLD), *thresholds[1:])
        try:
            return self._run(limit_us, max_events, until)
        finally:
            gc.set_threshold(*thresholds)

    def _run(
        self, limit_us: int | None, max_events: int | None, until: Callable[[], object] | None
    ) -> int:
        heap, ready = self._heap, self._ready
        arrive = self.network.arrive
        count = 0
        self.stopping = False
        if max_events is None:
            max_events = _ANY_NUMBER
        if limit_us is None:
            limit_us = _ANY_NUMBER
        while count < max_events:
            if ready and not (heap and heap[0][0] <= self._now):
                item = ready.popleft()
            elif heap:
                time, _, item = heap[0]
                if time > limit_us:
                    break
                heappop(heap)
                if type(item) is not VirtualTimer or item.callback is not None:
                    self._now = time
            else:
                break
            if type(item) is not VirtualTimer:
                arrive(item)
            elif item.callback is not None:
                self._fire(item)
            else:
                continue
            count += 1
            if self.stopping or (until is not None and until()):
                self.events_run += count
                return count
        else:
            self.events_run += count
            return count
        if self._now < limit_us < _ANY_NUMBER:
            self._now = limit_us
        self.events_run += count
        return count

    def _fire(self, timer: VirtualTimer) -> None:
        callback, node = timer.callback, timer.node
        assert callback is not None
        if node is not None and node.blocked:
            if not node.stopped:
                node.process.held.append(lambda: self._fire(timer))
            return
        timer.callback = None
        if self.recorder is not None and node is not None:
            name = getattr(callback, "__qualname__", "timer").rpartition(".<locals>")[0]
            name = name or getattr(callback, "__qualname__", "timer")
            self.cause = self.recorder.event(
                self._now, "timer_fire", node.name, None, name, None, None
            )
        try:
            callback()
        except Exception as error:
            self.report_failure(node, error)
        self.cause = None

    def stop(self) -> None:
        self.halt_all()
        self._heap.clear()
        self._ready.clear()
        self.network.clear()
