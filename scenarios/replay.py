"""Replay of a recorded run up to an event, as a live simulation.

The scenario stored in the trace runs again from its seed, in a thread of its own. That thread and
the caller's never run at the same time: one waits while the other runs, so the run is repeated byte
for byte. It stops between two events, where the cluster can be inspected, stepped or taken over:
``fork`` ends the scenario and leaves the simulation to the caller.
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

_NO_EVENT = 1 << 62


class _ScenarioEnded(BaseException):
    """Raised in the scenario's thread to end it where it is."""


def replay(path: str | Path, until: Position | None = None) -> Replay:
    """Run the scenario of a trace again, up to the event at a position or to the end.

    Raises ``TraceError`` for a trace that cannot be replayed, because it was recorded in real time,
    is incomplete, or has no scenario.
    """
    with open_trace(path) as trace:
        reason = refusal(trace.stored)
        if reason is not None:
            raise TraceError(f"{path}: this run cannot be replayed: {reason}")
        target = trace.stored.last_seq if until is None else seq_at(trace.stored, until)
        if until is not None:
            trace.event(target)
        run = Replay(trace.header, seq_at)
    run.run_to_number(target if until is not None else _NO_EVENT)
    return run


def replay_of_header(header: dict[str, Any]) -> Replay:
    """Return a replay of the run that a header describes, before its first event."""
    return Replay(header, seq_at)


class Replay:
    """A replay of a recorded run, whose ``simulation`` is stopped between calls."""

    def __init__(
        self, header: dict[str, Any], position_to_number: Callable[[Any, Position], int]
    ) -> None:
        self._position_to_number = position_to_number
        self._recorder = Recorder(record_bytes_limit=header.get("record_bytes_limit", 64))
        self._run: ScenarioRun = run_of_header(header, self._recorder)
        self._header = header
        self._target = -1
        self._until: Callable[[], object] | None = None
        self._events_before = 0
        self.newest_from: int = 0
        """Number of the first event of the last step."""
        self._turn = threading.Semaphore(0)  # the scenario's thread waits for it
        self._stopped = threading.Semaphore(0)  # the caller's thread waits for it
        self._is_abandoned = False
        self._error: BaseException | None = None
        self.is_over: bool = False
        """True once the scenario has ended."""
        self._thread = threading.Thread(target=self._play, name="fakekafka-replay", daemon=True)
        self._run.simulation.runtime.after_each = self._wait_at_target
        self._thread.start()

    @property
    def simulation(self) -> Simulation:
        """The live simulation, open to inspection. Until ``fork`` only the replay may advance its
        time."""
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
        """Start of the scenario's own time, in microseconds of virtual time; None while the cluster
        starts."""
        return self._run.begun_us

    @property
    def ends_us(self) -> int | None:
        """End of the scenario's own time, in microseconds of virtual time.

        None while the cluster starts, and for a story, which ends with its last step. A condition
        may end a scenario earlier, and the cluster may take further time to settle.
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
        """Digest of all events so far; after the last event it equals that of the trace."""
        return self._recorder.fingerprint()

    # -- advancing -----------------------------------------------------------------------------

    def step(self) -> bool:
        """Run the next step; return False if the scenario has ended."""
        return self.run_to_number(len(self._recorder))

    def run_to(self, position: Position) -> bool:
        """Run until the event at a position has happened.

        Return False if the scenario ended before.
        """
        number = self._position_to_number(self._recorder.trace(self._header), position)
        return self.run_to_number(number)

    def run_to_number(self, number: int) -> bool:
        """Run until the event with this number has happened.

        Return False if the scenario ended before.
        """
        return self._advance_to(number)

    def run_until(self, condition: Callable[[], object]) -> bool:
        """Run until a function, called after each step, returns a true value.

        Return False if the scenario ended before.
        """
        self._until = condition
        return self._advance_to(_NO_EVENT)

    def _advance_to(self, number: int) -> bool:
        if self._is_abandoned:
            raise UsageError(
                "the replay was forked; continue with the simulation that fork() returned"
            )
        self._target = number
        if not self.is_over and len(self._recorder) <= number:
            self._turn.release()
            self._stopped.acquire()
            if self._error is not None:
                raise self._error
        return not self.is_over

    def finish(self) -> str:
        """Run to the end and return the fingerprint."""
        self.run_to_number(_NO_EVENT)
        return self.fingerprint

    def fork(self) -> Simulation:
        """End the scenario here, so that its remaining actions do not happen.

        Return the simulation, which can continue with ``run_for`` and the like, still recorded:
        inject a fault and observe its effects.
        """
        self._abandon()
        return self._run.simulation

    def close(self) -> None:
        """End the run; done automatically at the end of a ``with`` block."""
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

    # -- the scenario's thread -------------------------------------------------------------------

    def _play(self) -> None:
        self._turn.acquire()
        try:
            if not self._is_abandoned:
                self._run.run()
        except _ScenarioEnded:
            return
        except BaseException as error:  # raised again in the caller's thread
            self._error = error
        self.is_over = True
        self._stopped.release()

    def _wait_at_target(self) -> None:
        """Wait for the caller once the target has been reached; called after each event."""
        self.newest_from, self._events_before = self._events_before, len(self._recorder)
        while len(self._recorder) > self._target or (self._until is not None and self._until()):
            self._until = None
            self._stopped.release()
            self._turn.acquire()
            if self._is_abandoned:
                raise _ScenarioEnded
