"""Delayed operations and the timing wheel that expires them."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from fakekafka.replication.waiting.purgatory import DelayedOperation, Purgatory
from fakekafka.replication.waiting.timing_wheel import (
    HierarchicalTimingWheel,
    TimerEntry,
    WheelTimer,
)
from fakekafka.tests.support.hosts import FakeHost


class Operation(DelayedOperation):
    """Completes once the test permits it, and counts its callbacks."""

    __slots__ = ("completions", "expirations", "may_complete", "then")

    def __init__(self, delay_ms: int = 10_000, then: Any = None) -> None:
        super().__init__(delay_ms)
        self.may_complete = False
        self.completions = 0
        self.expirations = 0
        self.then = then

    def try_complete(self) -> bool:
        return self.may_complete and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1
        if self.then is not None:
            self.then()

    def on_expiration(self) -> None:
        self.expirations += 1


@pytest.fixture
def purgatory(host: FakeHost) -> Purgatory:
    return Purgatory("Test", WheelTimer(host), 1000)


def watch(purgatory: Purgatory, *keys: str, delay_ms: int = 10_000) -> Operation:
    operation = Operation(delay_ms)
    assert not purgatory.try_complete_else_watch(operation, keys)
    return operation


def test_a_check_returns_the_number_of_operations_that_it_completed(purgatory: Purgatory) -> None:
    """DP-100: a call counts only the operations it completed; a second call finds none."""
    first, second = watch(purgatory, "a"), watch(purgatory, "b")
    assert purgatory.check_and_complete("a") == 0
    first.may_complete = second.may_complete = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.check_and_complete("b") == 1
    assert (first.completions, second.completions) == (1, 1)


def test_satisfied_operation_is_never_watched(purgatory: Purgatory) -> None:
    """An operation whose condition holds completes at once and is not watched."""
    operation = Operation()
    operation.may_complete = True
    assert purgatory.try_complete_else_watch(operation, ("a",))
    assert (purgatory.delayed_count, purgatory.watched_count, operation.completions) == (0, 0, 1)


def test_operation_needs_a_key(purgatory: Purgatory) -> None:
    """An operation needs a key, as without one no event could complete it."""
    with pytest.raises(ValueError, match="at least one key"):
        purgatory.try_complete_else_watch(Operation(), ())


def test_expiry_waits_for_the_delay(purgatory: Purgatory, host: FakeHost) -> None:
    """DP-101: an operation expires no earlier than its delay, and others are not affected."""
    early, late = watch(purgatory, "a", delay_ms=200), watch(purgatory, "a", delay_ms=5000)
    host.advance(199)
    assert early.expirations == 0
    host.advance(1)
    assert (early.expirations, early.completions) == (1, 1)
    assert (late.expirations, late.is_completed) == (0, False)
    assert purgatory.delayed_count == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_operation_watched_during_a_check_waits_for_the_next_one(
    purgatory: Purgatory, count: int
) -> None:
    """An operation watched during a poke, as by a client that asks again in its callback, waits for
    the next poke."""
    asked_again: list[Operation] = []

    def ask_again() -> None:
        operation = Operation(then=ask_again if len(asked_again) < 100 else None)
        purgatory.watch(operation, ("a",), purgatory.timer.now_ms())
        operation.may_complete = True
        asked_again.append(operation)

    for _ in range(count):
        operation = Operation(then=ask_again)
        assert not purgatory.try_complete_else_watch(operation, ("a",))
        operation.may_complete = True
    assert purgatory.check_and_complete("a") == count
    assert (len(asked_again), purgatory.delayed_count, purgatory.watched_count) == (count,) * 3
    assert not any(operation.is_completed for operation in asked_again)


def test_counts_of_watched_and_delayed(purgatory: Purgatory) -> None:
    """DP-102: completed operations linger under their other keys until these are touched."""
    first = watch(purgatory, "1")
    second = watch(purgatory, "1", "2")
    third = watch(purgatory, "1", "2", "3")
    assert (purgatory.delayed_count, purgatory.watched_count) == (3, 6)
    second.may_complete = True
    assert purgatory.check_and_complete("2") == 1
    assert (purgatory.delayed_count, purgatory.watched_count) == (2, 5)
    third.may_complete = True
    assert purgatory.check_and_complete("3") == 1
    assert (purgatory.delayed_count, purgatory.watched_count) == (1, 4)
    purgatory.check_and_complete("2")
    assert purgatory.watched_count == 3
    purgatory.check_and_complete("1")
    assert purgatory.watched_count == 1
    first.may_complete = True
    assert purgatory.check_and_complete("1") == 1
    assert (purgatory.delayed_count, purgatory.watched_count) == (0, 0)


def test_purge_follows_the_interval(host: FakeHost) -> None:
    """DP-102: when more operations than the interval have completed, they are removed from all
    lists."""
    purgatory = Purgatory("Test", WheelTimer(host), 3)
    for number in range(4):
        operation = watch(purgatory, "poked", f"other-{number}")
        operation.may_complete = True
        purgatory.check_and_complete("poked")
    assert purgatory.watched_count == 4
    watch(purgatory, "last")
    assert purgatory.watched_count == 1


def test_a_key_that_no_operation_waits_under_is_forgotten(purgatory: Purgatory) -> None:
    """A key without operations is forgotten, as there are as many keys as partitions, members and
    transactions."""
    for keys in (("a",), ("a", "b"), ("b", "c")):
        operation = watch(purgatory, *keys)
        operation.may_complete = True
        for key in keys:
            purgatory.check_and_complete(key)
    watch(purgatory, "d", "e").force_complete()
    purgatory.purge()
    assert purgatory._watchers == {}


def test_pokes_within_a_completion_are_not_lost(purgatory: Purgatory) -> None:
    """DP-104: completing one operation may poke the key again and complete another."""
    second = watch(purgatory, "a")

    def poke() -> None:
        second.may_complete = True
        assert purgatory.check_and_complete("a") == 1

    first = Operation(then=poke)
    purgatory.try_complete_else_watch(first, ("a",))
    first.may_complete = True
    assert purgatory.check_and_complete("a") == 1
    assert (first.completions, second.completions, purgatory.watched_count) == (1, 1, 0)


def test_completion_may_poke_its_own_key(purgatory: Purgatory) -> None:
    """A key's only operation is removed once completed, however often its completion pokes the
    key."""
    counts: list[int] = []
    first = Operation(then=lambda: counts.append(purgatory.check_and_complete("a")))
    purgatory.try_complete_else_watch(first, ("a",))
    first.may_complete = True
    assert purgatory.check_and_complete("a") == 1
    assert (counts, first.completions, purgatory.watched_count) == ([0], 1, 0)


def test_completion_may_watch_anew(purgatory: Purgatory) -> None:
    """DP-104: an operation watched while its key is walked stays watched."""
    first = Operation(then=lambda: watch(purgatory, "a"))
    purgatory.try_complete_else_watch(first, ("a",))
    first.may_complete = True
    assert purgatory.check_and_complete("a") == 1
    assert (purgatory.delayed_count, purgatory.watched_count) == (1, 1)


def test_completion_may_watch_anew_and_poke(purgatory: Purgatory) -> None:
    """The operation watched anew replaces the completed one, and stays."""

    def ask_again() -> None:
        watch(purgatory, "a")
        assert purgatory.check_and_complete("a") == 0

    first = Operation(then=ask_again)
    purgatory.try_complete_else_watch(first, ("a",))
    first.may_complete = True
    assert purgatory.check_and_complete("a") == 1
    assert (purgatory.delayed_count, purgatory.watched_count) == (1, 1)


def test_a_completed_operation_leaves_the_timer(purgatory: Purgatory) -> None:
    """A completed operation leaves the timer, or a busy broker would keep all requests until their
    timeouts; a timer that fires nevertheless has no effect."""
    operation = watch(purgatory, "a")
    operation.force_complete()
    assert purgatory.timer.wheel.is_empty
    operation.run()
    assert (operation.completions, operation.expirations) == (1, 0)


def test_first_completion_wins(purgatory: Purgatory, host: FakeHost) -> None:
    """DP-104: ``on_complete`` runs once, however often the operation is completed."""
    operation = watch(purgatory, "a", delay_ms=5)
    assert operation.force_complete()
    assert not operation.force_complete()
    host.advance(10)
    assert (operation.completions, operation.expirations) == (1, 0)


def test_no_delay_expires_at_once(purgatory: Purgatory) -> None:
    """An operation with a delay of zero expires before the call returns."""
    assert watch(purgatory, "a", delay_ms=0).expirations == 1
    assert purgatory.delayed_count == 0


# -- the wheel ------------------------------------------------------------------------------------


class TimerTask(TimerEntry):
    """A timer entry that calls a function."""

    __slots__ = ("_function",)

    def __init__(self, expiration_ms: int, function: Callable[[], object]) -> None:
        super().__init__(expiration_ms)
        self._function = function

    def run(self) -> None:
        self._function()


def test_due_entries_are_not_taken() -> None:
    """DP-105: an entry that is due already is refused, and the caller has to run it."""
    wheel = HierarchicalTimingWheel(1, 20, 100)
    assert not wheel.add(TimerTask(99, lambda: None))
    assert not wheel.add(TimerTask(100, lambda: None))
    assert wheel.add(TimerTask(101, lambda: None))
    assert wheel.size == 1


def test_tasks_run_in_deadline_order(host: FakeHost) -> None:
    """DP-105: tasks run by deadline and never early, in whatever order they were added."""
    timer = WheelTimer(host)
    ran: list[tuple[int, int]] = []
    delays = [random.Random(7).randrange(20_000) for _ in range(300)]
    start = host.now_ms()

    def note(planned_ms: int) -> None:
        ran.append((planned_ms, host.now_ms() - start))

    for delay_ms in delays:
        task = TimerTask(0, partial(note, delay_ms))
        timer.add(task, delay_ms)
    host.advance(20_000)
    assert [delay for delay, _ in ran] == sorted(delays)
    assert all(delay == when for delay, when in ran)
    assert timer.wheel.size == 0


@pytest.mark.parametrize("delay_ms", [1, 19, 20, 399, 400, 7999, 8000, 160_001, 10_000_000])
def test_every_level_keeps_the_time(host: FakeHost, delay_ms: int) -> None:
    """Overflow wheels hand down an entry in time, whatever their tick."""
    timer = WheelTimer(host)
    ran: list[int] = []
    start = host.now_ms()
    timer.add(TimerTask(0, lambda: ran.append(host.now_ms() - start)), delay_ms)
    host.advance(delay_ms - 1)
    assert ran == []
    host.advance(1)
    assert ran == [delay_ms]


def test_cancelled_entry_never_runs(host: FakeHost) -> None:
    """Cancelling an entry removes it from its bucket; a second cancellation has no effect."""
    timer = WheelTimer(host)
    ran: list[int] = []
    task = TimerTask(0, lambda: ran.append(1))
    timer.add(task, 50)
    assert task.is_waiting
    task.cancel()
    task.cancel()
    host.advance(100)
    assert (ran, timer.wheel.size, task.is_waiting) == ([], 0, False)


@pytest.mark.parametrize("delay_ms", [19, 20, 450, 30_000])
def test_entries_of_one_delay_keep_the_time(host: FakeHost, delay_ms: int) -> None:
    """An entry that follows another of its delay into the same bucket does not expire late."""
    timer = WheelTimer(host)
    start = host.now_ms()
    ran: list[tuple[int, int]] = []
    added: list[TimerTask] = []

    def note(planned_ms: int) -> None:
        ran.append((planned_ms, host.now_ms() - start))

    for at_ms in range(0, 3000, 7):
        host.advance(at_ms - (host.now_ms() - start))
        task = TimerTask(0, partial(note, at_ms))
        timer.add(task, delay_ms)
        added.append(task)
        if at_ms % 3 == 0:
            added.pop(0).cancel()  # empties buckets while others are still being filled
    host.advance(delay_ms + 3000)
    assert ran
    assert all(when == at_ms + delay_ms for at_ms, when in ran)
    assert sorted(ran) == ran
    assert timer.wheel.size == 0


def test_one_host_timer_serves_all(host: FakeHost) -> None:
    """A thousand entries of the same delay need a single host timer at a time."""
    timer = WheelTimer(host)
    for _ in range(1000):
        timer.add(TimerTask(0, lambda: None), 30_000)
    assert len(host.clock.timers) == 1
    assert host.clock.timers_made == 1


def test_closing_drops_everything(host: FakeHost) -> None:
    """A closed timer runs no task and holds no host timer."""
    timer = WheelTimer(host)
    ran: list[int] = []
    timer.add(TimerTask(0, lambda: ran.append(1)), 5)
    timer.close()
    host.advance(100)
    assert (ran, host.clock.timers, timer.wheel.size) == ([], [], 0)


def test_hundred_thousand_pending_operations_stay_cheap(host: FakeHost) -> None:
    """With 100,000 operations pending, inserting and completing take as many steps as with none.

    How long they take is what ``make bench NAMES=storage`` measures (issue 4: at most 3 us).
    """
    purgatory = Purgatory("Test", WheelTimer(host), 1000)
    wave = 1000

    def steps_of_a_wave(first: int) -> int:
        """Return the number of Python calls to insert and complete operations under keys of their
        own."""
        operations = [Operation(30_000) for _ in range(wave)]
        keys = [("topic", first + number) for number in range(wave)]
        calls = 0

        def count(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            for operation, key in zip(operations, keys, strict=True):
                purgatory.try_complete_else_watch(operation, (key,))
            for operation, key in zip(operations, keys, strict=True):
                operation.may_complete = True
                purgatory.check_and_complete(key)
        finally:
            sys.setprofile(None)
        assert all(operation.is_completed for operation in operations)
        return calls

    alone = steps_of_a_wave(0)
    for number in range(100_000):
        purgatory.try_complete_else_watch(Operation(30_000), (("pending", number),))
    assert purgatory.delayed_count == 100_000
    assert steps_of_a_wave(wave) <= alone * 1.05


class NotedCauses:
    """Records the causes that entries report; its timers are those of the host."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.event: int | None = None
        self.told: list[tuple[Any, ...]] = []

    def current(self) -> int | None:
        return self.event

    def set_shared_timer_ms(self, delay_ms: float, callback: Callable[[], object]) -> Any:
        return self.host.call_later_ms(delay_ms, callback)

    def record_due_entry(self, name: str, cause: int | None) -> None:
        self.told.append((self.host.now_ms(), name, cause))

    def record_timeout(self, peers: Any, cause: int | None, waited_ms: float) -> None:
        self.told.append((self.host.now_ms(), [*peers], cause, waited_ms))


class Dependent(Operation):
    """An operation that waits for an actor."""

    def awaited_brokers(self) -> list[str]:
        return ["broker-2"]


def test_each_expiry_is_caused_by_its_own_operation(host: FakeHost) -> None:
    """An expiry follows from its own operation, not from the one that set the timer; an operation
    that waited for an actor names it."""
    causes = NotedCauses(host)
    purgatory = Purgatory("Test", WheelTimer(host, causes=causes))
    start_ms = host.now_ms()
    operations = [Operation(300), Dependent(300), Operation(300)]
    for number, operation in enumerate(operations):
        causes.event = number
        purgatory.try_complete_else_watch(operation, ["a"])
    operations[0].may_complete = True
    purgatory.check_and_complete("a")
    assert causes.told == []
    host.advance(400)
    assert [operation.completions for operation in operations] == [1, 1, 1]
    assert [(told[0] - start_ms, *told[1:]) for told in causes.told] == [
        (300, ["broker-2"], 1, 300),
        (300, "Operation", 2),
    ]
