"""The debugger: a position in a run, to move forward and back, to inspect, and to intervene.

The position is after an event. Events are kept once they have happened, so going back only moves
the position; the state there is rebuilt from the recorded changes. Only an intervention at an
earlier event repeats the run, from its seed up to that event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..protocol.errors import UsageError
from ..scenarios.conditions import Condition
from ..scenarios.replay import Replay
from ..scenarios.run import ScenarioRun, header_of
from ..scenarios.spec import ScenarioSpec
from ..testing.simulation import Simulation
from ..tracing.debugger.breakpoints import Breakpoint, Watcher, conditions, parse_breakpoint, undo
from ..tracing.events import INTERESTING_KINDS, Event, TraceError
from ..tracing.reading.positions import Position, seq_at
from ..tracing.reading.reader import Trace, open_trace
from ..tracing.reading.state_history import State
from ..tracing.trace import StoredTrace
from ..tracing.verify import refusal
from .forks import check_action, standalone_text, with_fault
from .moves import Move, Progress, Result, complete, map_progress, mark_repeated
from .sources import Hit, RecordedSource, Source, create_live_source, live_source

_STARTS_WITH = 0


@dataclass(frozen=True, slots=True)
class Stop:
    """The event at which a move has stopped, and the reason."""

    number: int
    """Number of the event after which the debugger stopped."""
    reason: str
    breakpoint: Breakpoint | None = None


class Debugger:
    """A run and a position in it; created by ``of_trace`` and ``of_scenario``."""

    def __init__(self, source: Source, position: int = _STARTS_WITH) -> None:
        self._source = source
        self.breakpoints: list[Breakpoint] = []
        self.forks: list[str] = []
        """Interventions in the run, in order, as the user wrote them."""
        if not complete(source.extend_to(position)):
            raise UsageError("there is no event to stand at: the run is empty")
        self.position: int = position
        """Number of the event after which the debugger stands."""

    @classmethod
    def of_trace(cls, path: str | Path) -> Self:
        """Return a debugger of a recorded run, at its first event."""
        trace = open_trace(path)
        try:
            return cls(RecordedSource(trace), trace.stored.first_seq)
        except UsageError:
            trace.close()
            raise

    @classmethod
    def of_scenario(cls, spec: ScenarioSpec, seed: int | None = None) -> Self:
        """Return a debugger of a scenario that is run live, at its first event."""
        described = ScenarioRun(spec, seed)
        header = header_of(described)
        described.simulation.stop()
        return cls(live_source(header, _STARTS_WITH))

    # -- inspecting ----------------------------------------------------------------------------

    @property
    def ends_us(self) -> int | None:
        """End of the run in microseconds; None if a live run does not know it in advance."""
        return self._source.ends_us

    @property
    def trace(self) -> Trace:
        """All events so far, including events after the position."""
        return Trace(self._source.stored)

    @property
    def header(self) -> dict[str, Any]:
        """Description of the run."""
        return self._source.stored.header

    @property
    def problem(self) -> str | None:
        """Reason why the recording ends early; None for a complete recording or a live run."""
        return self._source.stored.problem

    @property
    def is_live(self) -> bool:
        """True if the events come from a live run, False if from a recording."""
        return self._source.live is not None

    @property
    def event(self) -> Event:
        """The event after which the debugger stands."""
        return self._source.stored.event(self.position)

    @property
    def actors(self) -> list[str]:
        """Names of all actors in the events so far."""
        return self._source.stored.actors()

    def state(self, actor: str | None = None, pattern: str | None = None) -> State:
        """Return the state at the position, of all actors or of one.

        Its ``changed`` names what the event at the position changed.
        """
        return self.trace.state_at(self.position, actor, pattern)

    def why(self) -> list[Event]:
        """Return the causes of the event at the position, starting with the event itself."""
        return self.trace.why(self.position)

    # -- moving --------------------------------------------------------------------------------

    def step(self, count: int = 1) -> bool:
        """Go forward by ``count`` events; return False if the run ends before that."""
        target = self.position + count
        if complete(self._source.extend_to(target)):
            self.position = target
            return True
        self.position = self._source.stored.last_seq
        return False

    def back(self, count: int = 1) -> bool:
        """Go back by ``count`` events; return False if the run begins after that."""
        first = self._source.stored.first_seq
        target = self.position - count
        self.position = max(target, first)
        return target >= first

    def goto(self, position: Position) -> None:
        """Go to an event or a time, forward or back; ``TraceError`` if there is no such event."""
        complete(self.move_to(position))

    def move_to(self, position: Position) -> Move[None]:
        """Do ``goto`` in slices."""
        stored = self._source.stored
        if isinstance(position, str) and self.is_live and not position.lstrip("#").isdigit():
            yield from self._move_to_time(position)
            return
        number, before = seq_at(stored, position), self.position
        if number < stored.first_seq or not (
            yield from self._track_position(self._source.extend_to(number))
        ):
            stored, self.position = self._source.stored, before
            raise TraceError(
                f"there is no event #{number}: the run has #{stored.first_seq} to "
                f"#{stored.last_seq}"
            )
        self.position = number

    def _move_to_time(self, position: str) -> Move[None]:
        """Go to a time, which may be within the events so far or after them."""
        number = seq_at(self._source.stored, position)  # raises for an invalid time
        if number < self._source.stored.last_seq:
            self.position = number
            return
        watcher = Watcher([parse_breakpoint(f"at {position.strip()}")], {})
        # The watcher takes the time for still ahead, even if some of its events have happened.
        hit = yield from self._track_position(self._source.extend_until(watcher, []))
        last = self._source.stored.last_seq if hit is None else hit.number
        self.position = min(seq_at(self._source.stored, position), last)

    def move_to_next_on(self, actor: str | None = None) -> Move[bool]:
        """Go to the next event of an actor, by default of the current event's.

        The result is False if there is none.
        """
        return self._move_to_match(self._search_forward(self._breakpoints_of_actor(actor)))

    def move_to_previous_on(self, actor: str | None = None) -> Move[bool]:
        """Go back to the previous event of an actor; the result is False if there is none."""
        return self._move_to_match(self._search_backward(self._breakpoints_of_actor(actor)))

    def _breakpoints_of_actor(self, actor: str | None) -> list[Breakpoint]:
        wanted = self.event.actor if actor is None else actor
        return [Breakpoint(wanted, lambda *_: wanted, {"actor": wanted}, is_plain=True)]

    def move_to_next_interesting(self) -> Move[bool]:
        """Go to the next fault, crash or restart; the result is False if there is none."""
        return self._move_to_match(self._search_forward(_interesting_breakpoints()))

    def move_to_previous_interesting(self) -> Move[bool]:
        """Go back to the previous fault, crash or restart; the result is False if there is none."""
        return self._move_to_match(self._search_backward(_interesting_breakpoints()))

    def _move_to_match(self, search: Move[Stop]) -> Move[bool]:
        """Go to the breakpoint that a search meets, or stay if it meets none."""
        before = self.position
        stop = yield from self._track_position(search)
        self.position = before if stop.breakpoint is None else stop.number
        return stop.breakpoint is not None

    def _track_position(self, move: Move[Result]) -> Move[Result]:
        """Update the position after every slice of a move; restore it if the move raises."""
        before = self.position

        def update_position(progress: Progress) -> Progress:
            if not progress.is_repeated:
                self.position = progress.number
            return progress

        try:
            return (yield from map_progress(move, update_position))
        except Exception:
            self.position = before
            raise

    # -- breakpoints ---------------------------------------------------------------------------

    def break_on(self, text: str) -> Breakpoint:
        """Set a breakpoint; ``tracing/debugger/breakpoints.py`` describes the syntax."""
        point = parse_breakpoint(text)
        if point.condition is not None:
            Condition(point.condition)  # raises for an invalid condition
            reason = None if self.is_live else refusal(self._source.stored)
            if reason is not None:
                raise UsageError(
                    f"breakpoint {point.text!r} asks the running cluster, and this run can only be "
                    f"looked at: {reason}"
                )
        self.breakpoints.append(point)
        return point

    def run(self) -> Stop:
        """Go forward to the next breakpoint, or to the end."""
        return complete(self.run_in_slices())

    def run_in_slices(self) -> Move[Stop]:
        """Do ``run`` in slices."""
        stop = yield from self._track_position(self._search_forward(self.breakpoints))
        self.position = stop.number
        return stop

    def run_back(self) -> Stop:
        """Go back to the last event that meets a breakpoint, or to the first event."""
        return complete(self.run_back_in_slices())

    def run_back_in_slices(self) -> Move[Stop]:
        """Do ``run_back`` in slices."""
        before = self.position
        stop = yield from self._track_position(self._search_backward(self.breakpoints))
        self.position = before
        cluster_conditions = list(conditions(self.breakpoints))
        condition_stop = yield from self._search_conditions_again(cluster_conditions, stop.number)
        if condition_stop is not None:
            if stop.breakpoint is not None:
                stop.breakpoint.hits -= 1
            stop = condition_stop
        self.position = stop.number
        return stop

    def _search_conditions_again(
        self, cluster_conditions: list[Breakpoint], after: int
    ) -> Move[Stop | None]:
        """Return the last stop before the position at which a condition about the cluster began to
        hold; None if that was not after event ``after``.

        A condition can only be evaluated in a live run, so the run is repeated from its beginning.
        """
        if not cluster_conditions:
            return None
        source = yield from self._source.make_live(self._source.stored.first_seq)
        if source is self._source:
            return None  # nothing has happened yet
        here = self.position
        last: Hit | None = None
        hits = [point.hits for point in cluster_conditions]
        try:
            place = Breakpoint("place", lambda event, state: "" if event.seq >= here else None)
            watcher = Watcher([place], {})
            while True:
                hit = yield from mark_repeated(source.extend_until(watcher, cluster_conditions))
                if hit is None or hit.breakpoint is place or hit.number >= here:
                    break
                last = hit
        finally:
            source.close()
            for point, count in zip(cluster_conditions, hits, strict=True):
                point.hits = count
        if last is None or last.number <= after:
            return None
        last.breakpoint.hits += 1
        return Stop(last.number, last.reason, last.breakpoint)

    def _search_forward(self, breakpoints: list[Breakpoint]) -> Move[Stop]:
        cluster_conditions = list(conditions(breakpoints))
        if cluster_conditions:
            yield from self._make_live_in_slices()
        stored, here = self._source.stored, self.position
        asks_time = any(point.time_us is not None for point in breakpoints)
        here_us = self.event.time_us if asks_time else -1
        watcher = Watcher(breakpoints, self._state_for(breakpoints), here_us)
        make = _maker(stored)
        may_hold = _chunks_that_may_hold(stored, breakpoints)
        for index in range(max(stored.chunk_of(here), 0), len(stored.chunks)):
            if not may_hold(index):
                continue
            for raw in stored.raw_events(index):
                if raw[0] <= here:
                    continue
                met = watcher.advance(raw, stored.strings, make)
                if met is not None:
                    return Stop(raw[0], met[1], met[0])
            chunk = stored.chunks[index]
            yield Progress(chunk.last_seq, chunk.time_last_us)
        hit = yield from self._source.extend_until(watcher, cluster_conditions)
        if hit is None:
            return Stop(self._source.stored.last_seq, "the run has ended")
        return Stop(hit.number, hit.reason, hit.breakpoint)

    def _state_for(self, breakpoints: list[Breakpoint]) -> dict[str, Any]:
        """Return the state at the position, if a breakpoint needs it."""
        return {} if all(point.is_plain for point in breakpoints) else dict(self.state())

    def _search_backward(self, breakpoints: list[Breakpoint]) -> Move[Stop]:
        stored, here = self._source.stored, self.position
        watcher = Watcher(breakpoints, self._state_for(breakpoints))
        make = _maker(stored)
        may_hold = _chunks_that_may_hold(stored, breakpoints)
        for index in range(stored.chunk_of(here), -1, -1):
            if not may_hold(index):
                continue
            raws = stored.raw_events(index)
            for place in range(len(raws) - 1, -1, -1):
                raw = raws[place]
                if raw[0] > here:
                    continue
                if raw[0] < here:
                    if place:
                        before_us = raws[place - 1][1] // 1000
                    else:
                        before_us = stored.chunks[index - 1].time_last_us if index else -1
                    met = watcher.match(raw, stored.strings, make, before_us)
                    if met is not None:
                        return Stop(raw[0], met[1], met[0])
                if raw[10]:
                    undo(watcher.state, raw, stored.strings)
            chunk = stored.chunks[index]
            yield Progress(chunk.first_seq, chunk.time_first_us)
        return Stop(stored.first_seq, "this is the first event")

    # -- intervening ---------------------------------------------------------------------------

    @property
    def simulation(self) -> Simulation:
        """The live cluster at the position, for inspection. A recorded run is repeated up to it."""
        live = self._make_live()
        return live.simulation

    def take_over(self) -> Simulation:
        """End the scenario at the position and return the simulation for the caller to run."""
        return self._make_live().fork()

    def inject(self, action: str, **arguments: Any) -> None:
        """Apply an action to the cluster at the position, which makes it a different run.

        The actions are those of the faults of a scenario. Events after the position are dropped;
        ``save`` writes the scenario of the new run.
        """
        complete(self.inject_in_slices(action, **arguments))

    def inject_in_slices(self, action: str, **arguments: Any) -> Move[None]:
        """Do ``inject`` in slices; the run is changed only after the last of them."""
        check_action(action)
        live = yield from self._make_live_in_slices()
        header = with_fault(live, self.event.time_us, action, arguments)
        self._replace_source((yield from create_live_source(header, self.position)))
        words = [f"{name}={value}" for name, value in arguments.items()]
        self.forks.append(f"#{self.position} {' '.join([action, *words])}")

    def save(self, path: str | Path) -> None:
        """Write the scenario of this run, including all injected actions, to a file."""
        text = standalone_text(self.header)
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror}") from None

    def _make_live(self) -> Replay:
        """Return the live run, which has come to the event at the position."""
        return complete(self._make_live_in_slices())

    def _make_live_in_slices(self) -> Move[Replay]:
        source = yield from self._source.make_live(self.position)
        if source is not self._source:
            self._replace_source(source)
        assert source.live is not None
        return source.live

    def _replace_source(self, source: Source) -> None:
        """Replace the run by another one that has come to the same event."""
        before = self.event
        if source.stored.last_seq >= self.position:
            again = source.stored.event(self.position)
            found = again.time_us, again.kind, again.actor, again.message_id
            if found == (before.time_us, before.kind, before.actor, before.message_id):
                self._source.close()
                self._source = source
                return
        source.close()
        raise UsageError(
            f"the repeated scenario does not reach event #{self.position}; "
            "`fakekafka trace verify` shows where it differs"
        )

    def close(self) -> None:
        """End the run."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _interesting_breakpoints() -> list[Breakpoint]:
    return [parse_breakpoint(kind) for kind in sorted(INTERESTING_KINDS)]


def _chunks_that_may_hold(
    stored: StoredTrace, breakpoints: list[Breakpoint]
) -> Callable[[int], bool]:
    """Return a function that tells by a chunk's index whether the chunk must be read, so that a
    search for one crash does not read all of a long trace."""
    if not all(point.is_plain for point in breakpoints):
        return lambda index: True
    filters = [stored.chunk_filter(point.columns) for point in breakpoints]
    chunks = stored.chunks
    return lambda index: any(wants is None or wants(chunks[index]) for wants in filters)


def _maker(stored: StoredTrace) -> Callable[[list[Any]], Event]:
    schema = stored.schema
    return lambda raw: Event(raw, stored.strings, schema)
