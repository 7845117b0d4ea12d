"""A clock that tests move, hosts upon it, and batches as producers send them."""

from __future__ import annotations

import heapq
import random
from typing import Any

from fakekafka.protocol.host import Causes, LogListener, StateListener
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition

START_MS = 1_600_000_000_000
TP = TopicPartition("t", 0)


def encode(*values: str, timestamp: int = START_MS, **more: Any) -> bytes:
    """One batch as a producer sends it."""
    return build_batch(
        [Record(i, timestamp, None, value.encode()) for i, value in enumerate(values)], **more
    )


class FakeTimer:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClock:
    """Simulated time and its timers, shared by all hosts."""

    def __init__(self) -> None:
        self.now_ms = START_MS
        self.missed_ms = 0
        """What the wall clock is ahead, as after a stall of the process."""
        self._queue: list[tuple[float, int, FakeTimer, Any]] = []
        self._sequence = 0

    def call_later_ms(self, delay_ms: float, callback: Any) -> FakeTimer:
        timer = FakeTimer()
        self._sequence += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._sequence, timer, callback))
        return timer

    @property
    def pending(self) -> int:
        return sum(1 for entry in self._queue if not entry[2].is_cancelled)

    def advance(self, ms: int) -> None:
        end = self.now_ms + ms
        while self._queue and self._queue[0][0] <= end:
            due, _, timer, callback = heapq.heappop(self._queue)
            self.now_ms = max(self.now_ms, int(due))
            if not timer.is_cancelled:
                callback()
        self.now_ms = end


class FakeHost:
    def __init__(self, name: str, clock: FakeClock) -> None:
        self.name = name
        self.clock = clock
        self.rng = random.Random(name)
        self.state_listener: StateListener | None = None
        self.causes: Causes | None = None
        self.is_alive = True

    def now_ms(self) -> int:
        return self.clock.now_ms

    def wall_ms(self) -> int:
        return self.clock.now_ms + self.clock.missed_ms

    def call_later_ms(self, delay_ms: float, callback: Any) -> FakeTimer:
        def run() -> None:
            if self.is_alive:
                callback()

        return self.clock.call_later_ms(delay_ms, run)

    def log_listener(self, paths: tuple[str, str, str]) -> LogListener | None:
        """No run is recorded."""

    def blame_silence(self, peer: str, silent_ms: float, text: str) -> None:
        """No run is recorded, so nothing is told."""

    def send(self, destination: str, message: Any) -> None:
        raise AssertionError(f"nothing is sent here: {destination} {message}")
