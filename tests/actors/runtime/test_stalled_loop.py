"""A stall of the live event loop does not count, so that nothing expires in it.

Dates are those of the wall clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka import Cluster
from fakekafka.actors.runtime import live, threaded
from fakekafka.actors.runtime import runtime as runtimes
from fakekafka.actors.runtime.live import LiveRuntime
from fakekafka.actors.runtime.threaded import ThreadedRuntime

pytestmark = pytest.mark.pure  # replaces the module ``time``


class Clock:
    """Replaces the module ``time``, and can be advanced as if the process had stalled."""

    def __init__(self) -> None:
        self.missed_ns = 0
        self.set_forward_ns = 0
        """Nanoseconds by which only the wall clock is ahead."""

    def monotonic_ns(self) -> int:
        return time.monotonic_ns() + self.missed_ns

    def time_ns(self) -> int:
        return time.time_ns() + self.missed_ns + self.set_forward_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (live, runtimes):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def runtime(clock: Clock) -> Iterator[LiveRuntime]:
    runtime = LiveRuntime(1)
    yield runtime
    runtime.stop()


def beat_passes(runtime: LiveRuntime) -> None:
    """Wait for the next beat of the event loop."""
    passed = threading.Event()
    runtime.loop.call_soon_threadsafe(runtime.loop.call_later, 0.06, passed.set)
    assert passed.wait(10)


def test_the_clock_omits_the_time_of_a_stall(runtime: LiveRuntime, clock: Clock) -> None:
    """A stall of a minute counts as 250 ms, and the clock never goes back."""
    beat_passes(runtime)
    before_us, before_ms = runtime.now_us(), runtime.now_ms()
    clock.missed_ns += 60_000_000_000
    during_us = runtime.now_us()
    beat_passes(runtime)
    after_us = runtime.now_us()
    assert before_us <= during_us <= after_us < before_us + 5_000_000
    assert before_ms <= runtime.now_ms() < before_ms + 5_000


def test_a_clock_without_stalls_is_the_wall_clock(runtime: LiveRuntime) -> None:
    """Without stalls the clock follows the wall clock, at beats and between them."""
    began_ns = time.monotonic_ns()
    first = runtime.now_us()
    for _ in range(3):
        beat_passes(runtime)
    assert runtime.now_us() - first >= 150_000
    assert runtime.now_us() - first <= (time.monotonic_ns() - began_ns) // 1000 + 1


def test_a_timer_waits_until_the_clock_has_caught_up_after_a_stall(
    runtime: LiveRuntime, clock: Clock
) -> None:
    """A timer that the event loop finds due after a stall waits until the clock reaches it."""
    fired: list[str] = []

    def set_timers() -> None:
        runtime.call_later(None, 1_000, lambda: fired.append("soon"))
        late = runtime.call_later(None, 1_000, lambda: fired.append("late"))
        late.stalled_ns = -60_000_000_000  # as if the clock had skipped a minute since
        late.due_us += 60_000_000

    runtime.run_in(None, set_timers)
    beat_passes(runtime)
    assert fired == ["soon"]


def test_a_timer_waits_no_longer_than_the_clock_says(runtime: LiveRuntime, clock: Clock) -> None:
    """A timer set before a stall fires when the clock reaches it, not later."""
    fired_us: list[int] = []
    due_us = 0

    def set_timer() -> None:
        nonlocal due_us
        due_us = runtime.now_us() + 100_000
        runtime.call_later(None, 100_000, lambda: fired_us.append(runtime.now_us()))

    beat_passes(runtime)
    runtime.run_in(None, set_timer)
    clock.missed_ns += 60_000_000_000
    for _ in range(3):
        beat_passes(runtime)
    assert len(fired_us) == 1
    assert due_us <= fired_us[0] < due_us + 30_000_000


def test_dates_are_those_of_the_wall_clock(runtime: LiveRuntime, clock: Clock) -> None:
    """``wall_ms`` skips no stall."""
    clock.missed_ns += 60_000_000_000
    beat_passes(runtime)
    wall_ms = runtime.wall_ms()  # before the clock is read: a millisecond may begin in between
    assert 0 <= clock.time_ns() // 1_000_000 - wall_ms < 30_000
    assert runtime.wall_ms() - runtime.now_ms() > 30_000


def test_the_threaded_runtime_has_dates_of_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the threaded runtime, a changed wall clock affects dates but no durations."""
    clock = Clock()
    for module in (threaded, runtimes):
        monkeypatch.setattr(module, "time", clock)
    runtime = ThreadedRuntime(1)
    try:
        clock.set_forward_ns = 60_000_000_000
        wall_ms = runtime.wall_ms()
        assert 0 <= clock.time_ns() // 1_000_000 - wall_ms < 30_000
        assert runtime.wall_ms() - runtime.now_ms() > 30_000
    finally:
        runtime.stop()


def test_brokers_use_the_current_date_after_a_stall(clock: Clock) -> None:
    """After a stall, records, znodes and timestamp limits have the current date."""
    with Cluster(1) as cluster:
        cluster.create_topic("stamped", config={"message.timestamp.type": "LogAppendTime"})
        cluster.create_topic("checked", config={"message.timestamp.after.max.ms": 1000})
        registered = cluster.zookeeper.stat("/brokers/ids/1")
        clock.missed_ns += 60_000_000_000
        assert isinstance(cluster.runtime, LiveRuntime)
        beat_passes(cluster.runtime)
        stalled_ms = clock.time_ns() // 1_000_000
        assert cluster.runtime.now_ms() < stalled_ms - 30_000
        for topic in ("stamped", "checked"):
            cluster.produce(topic, b"v")
            (record,) = cluster.consume(topic)
            assert record.timestamp >= stalled_ms - 1000
        cluster.zookeeper.create("/made-since", b"")
        made = cluster.zookeeper.stat("/made-since")
        assert made is not None
        assert made.ctime >= stalled_ms - 1000
        assert cluster.zookeeper.stat("/brokers/ids/1") == registered


@pytest.mark.slow
def test_sessions_outlive_a_loop_that_stands_still() -> None:
    """Brokers stay registered and lead though a call blocked longer than their sessions."""
    with Cluster(3, config={"zookeeper.session.timeout.ms": 1000}) as cluster:
        cluster.create_topic("orders", replication_factor=3)
        paths = [f"/brokers/ids/{broker}" for broker in (1, 2, 3)] + ["/controller"]
        registered = [cluster.zookeeper.stat(path) for path in paths]
        partition = cluster.partition("orders", 0)
        cluster.runtime.run_in(None, lambda: time.sleep(3))
        runtime = cluster.runtime
        assert isinstance(runtime, LiveRuntime)
        for _ in range(10):
            beat_passes(runtime)
        assert [cluster.zookeeper.stat(path) for path in paths] == registered
        assert cluster.partition("orders", 0) == partition
