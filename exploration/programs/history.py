"""A history of a user's test: its seed, and the faults that happen during the test."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...protocol.errors import UsageError
from ...testing.simulation import Simulation
from ..history import Outcome
from ..invariants.invariant import Violation
from ..step import Step
from .conductor import Conductor, Plan
from .explored_test import ExploredTest, Failure, explored_test
from .program_faults import Bounds, drawn_faults

_FAULT_TIME_DIVISOR = 3
"""Faults end after this fraction (1/3) of the time that a test takes; the rest has no faults."""
_WITHIN_MAX_MS = 60_000
_WITHIN_MIN_MS = 500


@dataclass(frozen=True)
class FaultHistory:
    """A test under a seed, and the steps that are done to it."""

    test: str
    """Id of the test in pytest, relative to the folder in which the command runs."""
    seed: int
    steps: tuple[Step[Any], ...] | None = None
    """Steps to do; None for steps drawn from the seed."""
    bounds: Bounds | None = None
    """Bounds for drawn steps; None to determine them by a run without faults when needed."""

    @property
    def command(self) -> str:
        """Shell command that repeats the history."""
        words = f"fakekafka explore replay {shlex.quote(self.test)} --seed {self.seed}"
        if self.steps is None:
            return words
        return f"{words} --steps '{'; '.join(map(str, self.steps))}'"

    def with_steps(self, steps: Sequence[Step[Any]]) -> FaultHistory:
        return replace(self, steps=tuple(steps))

    def run(self, trace: str | None = None) -> Outcome:
        return self.outcome(trace)[0]

    def outcome(
        self, trace: str | None = None, *, records: bool = False
    ) -> tuple[Outcome, Failure | None]:
        """Run the history; return its outcome, and the failure of the test or None.

        The run is recorded if ``trace`` or ``records`` is given, otherwise as the bounds say.
        """
        explored = explored_test(self.test)
        bounds = self.bounds
        if bounds is None and self.steps is None:
            bounds = bounds_of(self.test, self.seed)
        conductor = Conductor(
            self._plan(explored, bounds),
            seed=self.seed,
            records=True if records or trace is not None else bounds and bounds.records,
            spared=explored.spared,
            within_ms=None if bounds is None else bounds.within_ms,
        )
        failure = explored.run(conductor)
        return _outcome_of(self, conductor, failure, trace), failure

    def _plan(self, explored: ExploredTest, bounds: Bounds | None) -> Plan:
        if self.steps is not None:
            steps = self.steps
            return lambda _world: steps
        assert bounds is not None
        return partial(drawn_faults, seed=self.seed, bounds=bounds, kinds=explored.kinds)


def _outcome_of(
    history: FaultHistory, conductor: Conductor, failure: Failure | None, trace: str | None
) -> Outcome:
    simulation = conductor.simulation
    at_ms = 0.0 if simulation is None else simulation.now_ms
    if trace is not None and simulation is not None:
        simulation.save(trace)
    violations: tuple[Violation, ...] = ()
    step_log = tuple(conductor.step_log)
    if failure is not None:
        violations = (failure.violation(at_ms),)
    figures = (("faults", sum(step.verb != "wait" for step in conductor.taken)),)
    return Outcome(
        history,
        tuple(conductor.taken),
        violations,
        step_log,
        at_ms,
        (*figures, ("programs started again", len(conductor.restarts))),
        frozenset(_reached(conductor)),
    )


def _reached(conductor: Conductor) -> set[str]:
    """Return the items that a run reached: faults, pairs of faults, restarts, and program notes."""
    verbs = [step.verb for step in conductor.taken if step.verb != "wait"]
    reached = {f"fault: {verb}" for verb in verbs}
    reached |= {f"pair: {one}, {other}" for one, other in itertools.pairwise(verbs)}
    reached |= {f"restart: {error}" for error in conductor.restarts}
    simulation = conductor.simulation
    if simulation is not None and simulation.running.programs is not None:
        for note in simulation.running.programs.notes.matching(None, {}):
            values = [value for value in note.values.values() if isinstance(value, str)]
            shape = re.sub(r"\d+(?:[./]\d+)*", "#", " ".join([note.text, *values]))
            reached.add(f"note: {shape[:80]}")
    return reached


def bounds_of(test: str, seed: int) -> Bounds:
    """Run a test without faults to determine the bounds for runs with faults.

    The test runs without a recording unless that makes it fail. Raises ``UsageError`` if it fails
    without faults, or starts no program.
    """
    explored = explored_test(test)
    _ = explored.kinds  # raises for names of unknown faults
    for records in (False, None):
        conductor = Conductor(None, seed=seed, records=records, spared=explored.spared)
        failure = explored.run(conductor)
        if failure is None:
            break
    else:
        assert failure is not None
        raise UsageError(
            f"{test} fails without faults, under seed {seed}: {failure.text}\n{failure.report}"
        )
    simulation = conductor.simulation
    if simulation is None or conductor.begun_us is None:
        raise UsageError(
            f"{test} starts no program by kafka_simulation.program(...), so there is none to attack"
        )
    end_us = simulation.runtime.now_us()
    if not explored.waits_by_sleeping:
        end_us = max(simulation.running.waits_until_us, conductor.begun_us)
    within_ms = (end_us - conductor.begun_us) // 1000 // _FAULT_TIME_DIVISOR
    within_ms = max(min(within_ms, _WITHIN_MAX_MS), _WITHIN_MIN_MS)
    return Bounds(within_ms, records, tuple(_noted_ms(simulation, conductor.begun_us, within_ms)))


def _noted_ms(simulation: Simulation, begun_us: int, within_ms: int) -> Iterator[int]:
    programs = simulation.running.programs
    for note in () if programs is None else programs.notes.matching(None, {}):
        after_ms = int(note.time_ms - begun_us / 1000)
        if 0 < after_ms <= within_ms // 2:
            yield after_ms
