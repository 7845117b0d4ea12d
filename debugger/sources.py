"""The sources of a debugger's events: a recording, or a live run that continues on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..protocol.errors import UsageError
from ..scenarios.conditions import Condition
from ..scenarios.replay import Replay, replay_of_header
from ..tracing.debugger.breakpoints import Breakpoint, Watcher
from ..tracing.debugger.recorder_watch import RecorderWatch
from ..tracing.reading.reader import Trace
from ..tracing.trace import StoredTrace
from ..tracing.verify import refusal
from .moves import Move, Progress, complete, mark_repeated

_EVENTS_AT_ONCE = 200
"""Number of events in a slice of a live run, which take some milliseconds."""


class Source(Protocol):
    """The events so far, and the way to further events."""

    @property
    def stored(self) -> StoredTrace:
        """All events so far."""
        ...

    @property
    def live(self) -> Replay | None:
        """The live run that produces the events; None for a recording."""
        ...

    @property
    def ends_us(self) -> int | None:
        """End of the run in microseconds; None if it is not known in advance."""
        ...

    def extend_to(self, number: int) -> Move[bool]:
        """Continue until event ``number`` has happened; the result is False if there is none."""
        ...

    def extend_until(
        self, watcher: Watcher, cluster_conditions: list[Breakpoint]
    ) -> Move[Hit | None]:
        """Continue until a breakpoint is met; the result is None at the end of the run."""
        ...

    def make_live(self, number: int) -> Move[Source]:
        """Return a live run that has come to event ``number``; ``UsageError`` if there is none."""
        ...

    def close(self) -> None:
        """End the run, or close the file."""
        ...


class Hit:
    """The event at which a breakpoint was met, and why."""

    __slots__ = ("breakpoint", "number", "reason")

    def __init__(self, number: int, breakpoint_: Breakpoint, reason: str) -> None:
        self.number: int = number
        self.breakpoint: Breakpoint = breakpoint_
        self.reason: str = reason


class RecordedSource:
    """A trace, all of whose events have happened."""

    live: Replay | None = None

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def stored(self) -> StoredTrace:
        return self._trace.stored

    @property
    def ends_us(self) -> int | None:
        chunks = self.stored.chunks
        return chunks[-1].time_last_us if chunks else None

    def extend_to(self, number: int) -> Move[bool]:
        yield from ()
        return number <= self.stored.last_seq

    def extend_until(
        self, watcher: Watcher, cluster_conditions: list[Breakpoint]
    ) -> Move[Hit | None]:
        yield from ()
        return None

    def make_live(self, number: int) -> Move[Source]:
        reason = refusal(self.stored)
        if reason is not None:
            raise UsageError(f"this run can only be looked at: {reason}")
        return (yield from create_live_source(self.stored.header, number))

    def close(self) -> None:
        self._trace.close()


class LiveSource:
    """A run from its seed, which continues only when further events are asked for."""

    def __init__(self, run: Replay) -> None:
        self.live: Replay | None = run
        self._run = run
        self._stored: StoredTrace | None = None

    @property
    def stored(self) -> StoredTrace:
        if self._stored is None or self._stored.last_seq != self._run.last_event:
            self._stored = self._run.trace.stored
        return self._stored

    @property
    def ends_us(self) -> int | None:
        return self._run.ends_us

    def extend_to(self, number: int) -> Move[bool]:
        run = self._run
        while run.last_event < number:
            goes_on = run.run_to_number(min(number, run.last_event + _EVENTS_AT_ONCE))
            if not goes_on:
                break
            if run.last_event < number:
                yield self._progress()
        return number <= run.last_event

    def extend_until(
        self, watcher: Watcher, cluster_conditions: list[Breakpoint]
    ) -> Move[Hit | None]:
        simulation = self._run.simulation
        watch = RecorderWatch(self._run.recorder, watcher)
        found: list[Hit] = []
        asked = [(point, Condition(point.condition or "")) for point in cluster_conditions]
        held = [condition.holds(simulation) for _, condition in asked]

        def look_for_hit() -> bool:
            if found:
                return False
            if watch.check() and watch.hit is not None:
                found.append(Hit(*watch.hit))
            for number, (point, condition) in enumerate(asked):
                holds = condition.holds(simulation)
                if holds and not held[number] and not found:
                    point.hits += 1
                    found.append(Hit(watch.seen - 1, point, f"{condition.text} holds"))
                held[number] = holds
            return bool(found)

        while self._run.run_until(_or_after(_EVENTS_AT_ONCE, look_for_hit)) and not found:
            yield self._progress()
        return found[0] if found else None

    def _progress(self) -> Progress:
        return Progress(self._run.last_event, self._run.simulation.runtime.now_us())

    def make_live(self, number: int) -> Move[Source]:
        # The run cannot stop between the events of one step, so it is after all of them.
        if number >= self._run.newest_from:
            return self
        return (yield from create_live_source(self._run.header, number))

    def close(self) -> None:
        self._run.close()


def _or_after(count: int, is_met: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that holds once another does, or once it was asked ``count`` times."""
    left = count

    def holds() -> bool:
        nonlocal left
        left -= 1
        return is_met() or left <= 0

    return holds


def create_live_source(header: dict[str, Any], number: int) -> Move[LiveSource]:
    """Run what a header describes up to event ``number``; the result is the live run.

    Its progress is marked as repeated. If the move is closed before its end, so is the run.
    """
    source = LiveSource(replay_of_header(header))
    try:
        yield from mark_repeated(source.extend_to(number))
    except BaseException:
        source.close()
        raise
    return source


def live_source(header: dict[str, Any], number: int) -> LiveSource:
    """Do ``create_live_source`` without a pause."""
    return complete(create_live_source(header, number))
