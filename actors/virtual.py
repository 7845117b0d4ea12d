"""The virtual runtime: one heap of (time, sequence) events, no wall clock, one seed.

Order. An event due now that was scheduled earlier comes first; events scheduled *for now* while
now is running wait in ``_ready`` and have larger sequence numbers by construction. So the order
is (time, sequence) without a heap operation for messages without delay.
"""

from __future__ import annotations

import functools
import gc
from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .node import Delivery
from .runtime import VIRTUAL_EPOCH_MS, LoopRuntime, TraceSink
from .virtual_network import VirtualNetwork

if TYPE_CHECKING:
    from .node import Node

_GC_THRESHOLD = 50_000
"""Allocations between two collections while events run."""


_NEVER_US = 1 << 62

_deliver = functools.partial(tuple.__new__, Delivery)
"""Makes a ``Delivery`` of a tuple of its fields; its own constructor is Python and slow."""

Entry = tuple[int, int, Any, Any, Any, int, bool]
"""Of the heap, by (time, sequence). Either a message on its way: target, sender, message,
correlation, is_reply. Or no target, and in the sender's place what is due: a ``VirtualTimer``, a
``Delivery``, or None where the loop ends."""


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
        self.now = 0  # microseconds
        self.sequence = 0  # of the last entry of the heap
        self.other_entries = 0  # of the heap so far beside messages that went the short way
        self.heap: list[Entry] = []
        self._ready: deque[VirtualTimer | Delivery] = deque()
        self._is_running = False
        self.events_run = 0
        self.condition_held = False  # of the last run
        super().__init__(seed)

    def _create_network(self) -> VirtualNetwork:
        return VirtualNetwork(self)

    def _record(self, recorder: TraceSink | None) -> None:
        self._recorder = recorder
        self.network.watchers_changed()

    recorder = property(attrgetter("_recorder"), _record)

    def now_us(self) -> int:
        return self.now

    def now_ms(self) -> int:
        return VIRTUAL_EPOCH_MS + self.now // 1000

    def call_later(
        self, node: Node | None, delay_us: int, callback: Callable[[], object]
    ) -> VirtualTimer:
        timer = VirtualTimer(node, callback)
        if delay_us <= 0:
            self._ready.append(timer)
        else:
            self.other_entries += 1
            self.sequence = sequence = self.sequence + 1
            heappush(self.heap, (self.now + delay_us, sequence, None, timer, None, 0, False))
        return timer

    def enqueue(self, delivery: Delivery, delay_us: int) -> None:
        if delay_us <= 0:
            self._ready.append(delivery)
        else:
            self.other_entries += 1
            self.sequence = sequence = self.sequence + 1
            heappush(self.heap, (self.now + delay_us, sequence, None, delivery, None, 0, False))

    def next_time_us(self) -> int | None:
        """Time of the next event, None when nothing is left to happen."""
        if self._ready:
            return self.now
        heap = self.heap
        while heap:
            time, _, target, item, _, _, _ = heap[0]
            if target is None and type(item) is VirtualTimer and item.callback is None:
                heappop(heap)
                continue
            return time
        return None

    def step(self) -> bool:
        """Run one event; False when nothing is left."""
        if self.next_time_us() is None:
            return False
        self.events_run += 1
        if self._ready and not (self.heap and self.heap[0][0] <= self.now):
            self._take(self._ready.popleft())
            return True
        self.now, _, target, item, message, correlation, is_reply = heappop(self.heap)
        if target is not None:
            item = Delivery(item, target, message, correlation, is_reply)
        self._take(item)
        return True

    def _take(self, item: VirtualTimer | Delivery) -> None:
        if type(item) is VirtualTimer:
            self._fire(item)
        else:
            self.network.arrive(item)  # type: ignore[arg-type]

    def run(self, limit_us: int | None, until: Callable[[], object] | None = None) -> int:
        """Run events up to a time (inclusive), or until a condition holds after one.

        Gives the number of events run. Without events left before ``limit_us`` the clock moves
        to the limit. ``condition_held`` tells whether the condition ended it. Raises
        ``RuntimeError`` when called from within an event.
        """
        if self._is_running:
            raise RuntimeError("an event cannot run events; it has to end first")
        # The limit is an entry of the heap: after all that is due by then, before the rest.
        end: Entry = (
            _NEVER_US if limit_us is None else limit_us + 1,
            0,
            None,
            None,
            None,
            0,
            False,
        )
        heappush(self.heap, end)
        # A large cluster is millions of small objects that live long: with Python's default
        # thresholds the collector walks them again and again.
        thresholds = gc.get_threshold()
        gc.set_threshold(max(thresholds[0], _GC_THRESHOLD), *thresholds[1:])
        self._is_running = True
        self.condition_held = False
        events_before = self.events_run
        has_reached_end = False
        try:
            has_reached_end = self._run(until)
        finally:
            self._is_running = False
            gc.set_threshold(*thresholds)
            if not has_reached_end and end in self.heap:
                self.heap.remove(end)
                heapify(self.heap)
        if has_reached_end and limit_us is not None and self.now < limit_us:
            self.now = limit_us
        return self.events_run - events_before

    def _run(self, until: Callable[[], object] | None) -> bool:
        """Take entry after entry; True at the limit, False when the condition holds before."""
        heap, ready = self.heap, self._ready
        arrive = self.network.arrive
        count = 0
        try:
            while True:
                if ready and heap[0][0] > self.now:
                    due = ready.popleft()
                    if type(due) is VirtualTimer and due.callback is None:
                        continue
                    self._take(due)
                else:
                    time, _, target, item, message, correlation, is_reply = heappop(heap)
                    if target is None:
                        if item is None:
                            return True
                        if type(item) is VirtualTimer:
                            if item.callback is None:
                                continue
                            self.now = time
                            self._fire(item)
                        else:
                            self.now = time
                            arrive(item)
                    else:
                        self.now = time
                        if target.blocked:
                            arrive(Delivery(item, target, message, correlation, is_reply))
                        else:
                            # What ``arrive`` does when nobody looks, without its steps.
                            try:
                                if is_reply:
                                    waiting = target.requests.pop(correlation, None)
                                    if waiting is not None:
                                        waiting[0](message)
                                else:
                                    target.handle(
                                        _deliver(
                                            (item, target, message, correlation, False, None, 0)
                                        )
                                    )
                            except Exception as error:
                                self.report_failure(target, error)
                count += 1
                if until is not None and until():
                    self.condition_held = True
                    return False
        finally:
            self.events_run += count

    def _fire(self, timer: VirtualTimer) -> None:
        callback, node = timer.callback, timer.node
        assert callback is not None
        if node is not None and node.blocked:
            if not node.stopped:
                self._hold(timer, node)
            return
        timer.callback = None
        if self._recorder is None:
            try:
                callback()
            except Exception as error:
                self.report_failure(node, error)
            return
        if node is not None:
            name = getattr(callback, "__qualname__", "timer").rpartition(".<locals>")[0]
            name = name or getattr(callback, "__qualname__", "timer")
            self.cause = self._recorder.event(
                self.now, "timer_fire", node.name, None, name, None, None
            )
        try:
            callback()
        except Exception as error:
            self.report_failure(node, error)
        self.cause = None

    def _hold(self, timer: VirtualTimer, node: Node) -> None:
        node.process.held.append(lambda: self._fire(timer))

    def stop(self) -> None:
        self.halt_all()
        self.heap.clear()
        self._ready.clear()
        if self._is_running:
            heappush(self.heap, (0, 0, None, None, None, 0, False))
        self.network.clear()
