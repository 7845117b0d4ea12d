"""Where a debugger's events come from: a recording, or a run that goes on while one looks."""

from __future__ import annotations

from typing import Any, Protocol

from ...protocol.errors import UsageError
from ...tracing.debugger.breakpoints import Breakpoint, Watcher
from ...tracing.debugger.recorder_watch import RecorderWatch
from ...tracing.reading.reader import Trace
from ...tracing.trace import StoredTrace
from ...tracing.verify import refusal
from ..scenarios.conditions import Condition
from ..scenarios.replay import Replay, replay_of_header


class Source(Protocol):
    """Events so far, and whether there may be more."""

    @property
    def stored(self) -> StoredTrace:
        """All events so far."""
        ...

    @property
    def live(self) -> Replay | None:
        """The run behind them; None for a recording."""
        ...

    def extend_to(self, number: int) -> bool:
        """Let the event of a number happen; False when there will be none."""
        ...

    def extend_until(self, watcher: Watcher, asking: list[Breakpoint]) -> Hit | None:
        """Go on until a breakpoint is met; None at the end."""
        ...

    def live_at(self, number: int) -> Source:
        """The run, standing after the event of a number. ``UsageError`` where there is none."""
        ...

    def close(self) -> None:
        """End the run, or let go of the file."""
        ...


class Hit:
    """Where a run has stopped."""

    __slots__ = ("breakpoint", "number", "reason")

    def __init__(self, number: int, breakpoint_: Breakpoint, reason: str) -> None:
        self.number = number
        self.breakpoint = breakpoint_
        self.reason = reason


class RecordedSource:
    """A trace: all events are there."""

    live: Replay | None = None

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    @property
    def stored(self) -> StoredTrace:
        return self._trace.stored

    def extend_to(self, number: int) -> bool:
        return number <= self.stored.last_seq

    def extend_until(self, watcher: Watcher, asking: list[Breakpoint]) -> Hit | None:
        return None

    def live_at(self, number: int) -> Source:
        reason = refusal(self.stored)
        if reason is not None:
            raise UsageError(f"this run can only be looked at: {reason}")
        return live_source(self.stored.header, number)

    def close(self) -> None:
        self._trace.close()


class LiveSource:
    """A run from its seed; it goes on only when more of it is asked for."""

    def __init__(self, run: Replay) -> None:
        self.live: Replay | None = run
        self._run = run
        self._stored: StoredTrace | None = None

    @property
    def stored(self) -> StoredTrace:
        if self._stored is None or self._stored.last_seq != self._run.last_event:
            self._stored = self._run.trace.stored
        return self._stored

    def extend_to(self, number: int) -> bool:
        if number > self._run.last_event:
            self._run.run_to_number(number)
        return number <= self._run.last_event

    def extend_until(self, watcher: Watcher, asking: list[Breakpoint]) -> Hit | None:
        simulation = self._run.simulation
        watch = RecorderWatch(self._run.recorder, watcher)
        found: list[Hit] = []
        asked = [(point, Condition(point.condition or "")) for point in asking]
        held = [condition.holds(simulation) for _, condition in asked]

        def is_met() -> bool:
            if found:
                return False
            if watch.look() and watch.met is not None:
                found.append(Hit(*watch.met))
            for number, (point, condition) in enumerate(asked):
                holds = condition.holds(simulation)
                if holds and not held[number] and not found:
                    point.hits += 1
                    found.append(Hit(watch.seen - 1, point, f"{condition.text} holds"))
                held[number] = holds
            return bool(found)

        self._run.run_until(is_met)
        return found[0] if found else None

    def live_at(self, number: int) -> Source:
        # Events of one moment belong together: the run stands after all of them.
        if number >= self._run.newest_from:
            return self
        return live_source(self._run.header, number)

    def close(self) -> None:
        self._run.close()


def live_source(header: dict[str, Any], number: int) -> LiveSource:
    """The run that a header describes, standing after the event of a number."""
    run = replay_of_header(header)
    run.run_to_number(number)
    return LiveSource(run)
