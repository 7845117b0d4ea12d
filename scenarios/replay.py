"""A recorded run, run again up to a moment: a live simulation at that event.

The scenario that the trace names is run from its seed, in a thread of its own. That thread and the
one that asks never run at the same time: one waits while the other goes on, so the run is the same
byte for byte. It stops between two events, where the cluster can be looked at, stepped, or taken
over: ``fork`` ends the scenario, and what happens from there on is up to the caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from ..protocol.errors import UsageError
from ..testing.simulation import Simulation
from ..tracing.events import TraceError
from ..tracing.reading.positions import Position, seq_at
from ..tracing.reading.reader import Trace, open_trace
from ..tracing.recording.recorder import Recorder
from ..tracing.verify import refusal
from .run import ScenarioRun, run_of_header

_NEVER = 1 << 62


class _Ended(BaseException):
    """Ends the thread of the scenario where it stands."""


def replay(path: str | Path, until: Position | None = None) -> Replay:
    """Run the scenario of a trace again, up to the event at a position or to the end.

    Raises ``TraceError`` for a trace that cannot be run again: one of real time, a part, or one
    without a scenario.
    """
    with open_trace(path) as trace:
        reason = refusal(trace.stored)
        if reason is not None:
            raise TraceError(f"{path}: this run cannot be run again: {reason}")
        target = trace.stored.last_seq if until is None else seq_at(trace.stored, until)
        if until is not None:
            trace.event(target)
        run = Replay(trace.header, seq_at)
    run.run_to_number(target if until is not None else _NEVER)
    return run


def replay_of_header(header: dict[str, Any]) -> Replay:
    """The run that a header describes, before its first event."""
    return Replay(header, seq_at)


class Replay:
    """A recorded run that is run again; its ``simulation`` stands still between two calls."""

    def __init__(self, header: dict[str, Any], number_of: Callable[[Any, Position], int]) -> None:
        self._number_of = number_of
        self._recorder = Recorder(record_bytes_limit=header.get("record_bytes_limit", 64))
        self._run: ScenarioRun = run_of_header(header, self._recorder)
        self._header = header
        self._target = -1
        self._until: Callable[[], object] | None = None
        self._counted = 0
        self.newest_from: int = 0
        """Number of the first of the events that the last step brought."""
        self._turn = threading.Semaphore(0)  # of the scenario
        self._stopped = threading.Semaphore(0)  # of whoever asks
        self._is_abandoned = False
        self._error: BaseException | None = None
        self.is_over: bool = False
        """True once the scenario has ended."""
        self._thread = threading.Thread(target=self._play, name="fakekafka-replay", daemon=True)
        self._run.simulation.runtime.after_each = self._look
        self._thread.start()

    @property
    def simulation(self) -> Simulation:
        """The live simulation; look at it as you like. Until ``fork`` only the replay lets time
        pass in it."""
        return self._run.simulation

    @property
    def recorder(self) -> Recorder:
        """The recorder of the repeated run."""
        return self._recorder

    @property
    def header(self) -> dict[str, Any]:
        """The header that describes the run."""
        return self._header

    @property
    def begun_us(self) -> int | None:
        """Beginning of the scenario's own time, in microseconds of virtual time; None while the
        cluster starts."""
        return self._run.begun_us

    @property
    def ends_us(self) -> int | None:
        """End of the scenario's own time, in microseconds of virtual time.

        None while the cluster starts, and for a story, which ends when its last step is done. A
        condition may end a scenario before; after that time the cluster may still settle.
        """
        spec, begun_us = self._run.spec, self._run.begun_us
        if begun_us is None or spec.story is not None:
            return None
        return begun_us + round(1000 * spec.stop.at_ms)

    @property
    def last_event(self) -> int:
        """Number of the last event so far."""
        return len(self._recorder) - 1

    @property
    def trace(self) -> Trace:
        """The trace of the repeated run so far."""
        return Trace(self._recorder.trace(self._header))

    @property
    def fingerprint(self) -> str:
        """Digest of all events so far; at the end it is that of the trace."""
        return self._recorder.fingerprint()

    # -- going on ------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do what comes next in the run; False if the scenario has ended."""
        return self.run_to_number(len(self._recorder))

    def run_to(self, position: Position) -> bool:
        """Go on until the event at a position has happened; False if the scenario ended before."""
        number = self._number_of(self._recorder.trace(self._header), position)
        return self.run_to_number(number)

    def run_to_number(self, number: int) -> bool:
        """Go on until the event of this number has happened; False if the scenario ended before."""
        return self._go_on(number)

    def run_until(self, condition: Callable[[], object]) -> bool:
        """Go on until a function gives something true; it is called after each step. False if the
        scenario ended before."""
        self._until = condition
        return self._go_on(_NEVER)

    def _go_on(self, number: int) -> bool:
        if self._is_abandoned:
            raise UsageError("the replay was forked: go on with its simulation")
        self._target = number
        if not self.is_over and len(self._recorder) <= number:
            self._turn.release()
            self._stopped.acquire()
            if self._error is not None:
                raise self._error
        return not self.is_over

    def finish(self) -> str:
        """Go on to the end; gives the fingerprint."""
        self.run_to_number(_NEVER)
        return self.fingerprint

    def fork(self) -> Simulation:
        """End the scenario here: nothing of what it would do happens any more.

        The simulation goes on with ``run_for`` and the like, and its recording with it: inject a
        fault, see what happens.
        """
        self._abandon()
        return self._run.simulation

    def close(self) -> None:
        """End the run; a ``with`` block does it."""
        self._abandon()
        self._run.simulation.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _abandon(self) -> None:
        self._run.simulation.runtime.after_each = None
        if not self.is_over and not self._is_abandoned:
            self._is_abandoned = True
            self._turn.release()
            self._thread.join()

    # -- the thread of the scenario --------------------------------------------------------------

    def _play(self) -> None:
        self._turn.acquire()
        try:
            if not self._is_abandoned:
                self._run.run()
        except _Ended:
            return
        except BaseException as error:  # raised again in the caller's thread
            self._error = error
        self.is_over = True
        self._stopped.release()

    def _look(self) -> None:
        """Called after each event: wait here once the target has been reached."""
        self.newest_from, self._counted = self._counted, len(self._recorder)
        while len(self._recorder) > self._target or (self._until is not None and self._until()):
            self._until = None
            self._stopped.release()
            self._turn.acquire()
            if self._is_abandoned:
                raise _Ended
