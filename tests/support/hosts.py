"""Hosts for a core under test, and a clock that the test moves."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Any

from fakekafka.protocol.host import Causes, LogListener, StateListener

START_MS = 1_600_000_000_000
_CALLS_MAX = 1_000_000


class FakeTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Simulated time and its timers, which hosts may share."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.now_us = start_ms * 1000
        self.missed_ms = 0
        """Milliseconds by which the wall clock is ahead, as after a stall of the process."""
        self.timers_made = 0
        self._queue: list[tuple[int, int, FakeTimer]] = []

    @property
    def now_ms(self) -> int:
        return self.now_us // 1000

    @now_ms.setter
    def now_ms(self, value: int) -> None:
        self.now_us = value * 1000

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> FakeTimer:
        timer = FakeTimer(callback)
        self.timers_made += 1
        due_us = self.now_us + int(delay_ms * 1000)
        heapq.heappush(self._queue, (due_us, self.timers_made, timer))
        return timer

    @property
    def timers(self) -> list[float]:
        """Return the milliseconds until each pending timer, in order."""
        running = (due for due, _, timer in self._queue if timer.callback is not None)
        return sorted((due - self.now_us) / 1000 for due in running)

    def step(self) -> bool:
        """Advance to the next timer and call it; return False if there is none."""
        while self._queue:
            due_us, _, timer = heapq.heappop(self._queue)
            if timer.callback is not None:
                self.now_us = max(self.now_us, due_us)
                timer.callback()
                return True
        return False

    def advance(self, ms: float) -> None:
        """Advance the clock and call the timers that become due, in order."""
        end_us = self.now_us + int(ms * 1000)
        for _ in range(_CALLS_MAX):
            if not self._queue or self._queue[0][0] > end_us:
                self.now_us = max(self.now_us, end_us)
                return
            due_us, _, timer = heapq.heappop(self._queue)
            self.now_us = max(self.now_us, due_us)
            if timer.callback is not None:
                timer.callback()
        raise AssertionError("the timers do not come to rest")


class FakeHost:
    """A host for any core, on its own or a given clock; it records no causes."""

    def __init__(
        self,
        name: str = "broker-1",
        clock: FakeClock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self.name = name
        self.clock = clock or FakeClock()
        self.rng = rng or random.Random(name)
        self.state_listener: StateListener | None = None
        self.causes: Causes | None = None
        self.is_alive = True

    def now_ms(self) -> int:
        return self.clock.now_ms

    def wall_ms(self) -> int:
        return self.clock.now_ms + self.clock.missed_ms

    def call_later_ms(self, delay_ms: float, callback: Callable[[], object]) -> FakeTimer:
        return self.clock.call_later_ms(delay_ms, lambda: callback() if self.is_alive else None)

    def advance(self, ms: float) -> None:
        self.clock.advance(ms)

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """Return None, as no run is recorded."""

    def record_session_owner(self, session_id: int, client: str) -> None:
        """Do nothing, as no run is recorded."""

    def record_session_expiry(self, session_id: int, timeout_ms: int) -> None:
        """Do nothing, as no run is recorded."""

    def report_silence(self, peer: str, silent_ms: float, text: str, member_id: str = "") -> None:
        """Do nothing, as no run is recorded."""

    def send(self, destination: str, message: Any) -> None:
        raise AssertionError(f"nothing is sent here: {destination} {message}")
