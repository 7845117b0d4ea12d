"""Histories: a target, a seed and steps; running them, and writing them to files."""

from __future__ import annotations

import contextlib
import functools
import random
import traceback
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from ..protocol.errors import UsageError
from .coverage import Coverage, is_sampled
from .generator import draw
from .invariants.invariant import Violation
from .step import SETTLES_WITHIN_MS, SETTLING_EVERY_MS, Step, read, written
from .targets.cluster import LoadedCluster
from .targets.exactly_once import ExactlyOnce
from .targets.groups import ClassicGroups, ConsumerGroups
from .targets.target import Target

TARGETS: dict[str, type[Target]] = {
    target.name: target for target in (LoadedCluster, ClassicGroups, ConsumerGroups, ExactlyOnce)
}

_RAISED = "RunsEnd"
"""Name of the promise that is broken if the emulation or the exploration itself raises."""


class Repeatable(Protocol):
    """A history that gives the same outcome each time it is run."""

    @property
    def steps(self) -> tuple[Step[Any], ...] | None: ...

    @property
    def command(self) -> str:
        """Shell command that repeats the history."""
        ...

    def with_steps(self, steps: Sequence[Step[Any]]) -> Repeatable:
        """Return the history with other steps."""
        ...

    def run(self, trace: str | None = None) -> Outcome:
        """Run the history; ``trace`` names a file to record it to."""
        ...


@dataclass(frozen=True)
class History:
    """A target, which builds a world from a seed, and the steps that are done to that world."""

    target: type[Target]
    kafka_version: str
    seed: int
    steps: tuple[Step[Any], ...] | None = None
    """Steps to do; None for steps drawn from the seed."""

    @property
    def command(self) -> str:
        """Shell command that repeats the history."""
        words = [
            "fakekafka explore replay",
            f"--target {self.target.name} --kafka-version {self.kafka_version} --seed {self.seed}",
        ]
        if self.steps is not None:
            words.append(f"--steps '{'; '.join(map(str, self.steps))}'")
        return " ".join(words)

    def with_steps(self, steps: Sequence[Step[Any]]) -> History:
        return replace(self, steps=tuple(steps))

    def run(self, trace: str | None = None) -> Outcome:
        """Run the history; ``trace`` names a file to record it to."""
        return run(self, trace)

    def written(self, about: str) -> str:
        """Return the text of a file for ``read_history``, which begins with a description."""
        return written(f"{about}\n# {self._head}", self.steps or ())

    @property
    def _head(self) -> str:
        return f"{self.target.name} {self.kafka_version} {self.seed}"


def read_history(path: Path) -> tuple[str, History]:
    """Return the description and the history in a file.

    Raises ``UsageError`` for an unknown target or step.
    """
    about, _, rest = path.read_text(encoding="utf-8").partition("\n")
    head, steps = read(rest)
    name, version, seed = head.split()
    if name not in TARGETS:
        raise UsageError(f"{path}: no target is called {name!r}; there are {', '.join(TARGETS)}")
    return about.removeprefix("# "), History(TARGETS[name], version, int(seed), tuple(steps))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a history; without violations, every promise was kept."""

    history: Repeatable
    taken: tuple[Step[Any], ...]
    """The steps that were done, whether given or drawn; steps that did not apply are omitted."""
    violations: tuple[Violation, ...]
    step_log: tuple[str, ...]
    """Lines with the time of each step, including steps that did not apply."""
    virtual_ms: float
    figures: tuple[tuple[str, int], ...]
    reached: frozenset[str] = frozenset()
    """Items of coverage; empty unless requested."""

    @property
    def resolved(self) -> Repeatable:
        """The history with the steps that were done."""
        return self.history.with_steps(self.taken)

    @property
    def unexplained(self) -> tuple[Violation, ...]:
        """Violations that are not known as Kafka's own."""
        return tuple(violation for violation in self.violations if not violation.known)


class Play:
    """Runs the steps of a history on a target's world."""

    def __init__(self, target: Target, coverage: Coverage | None = None) -> None:
        self._coverage = coverage
        self.target = target
        self.taken: list[Step[Any]] = []
        self.step_log: list[str] = []

    def run(self, steps: Iterable[Step[Any]]) -> list[Violation]:
        """Do all steps, end the target, and return the violations.

        Each step is done before the next one is drawn; a step that does not apply is skipped.
        """
        coverage = self._coverage
        noting = contextlib.nullcontext() if coverage is None else coverage.recording()
        with self.target.tracking_defects(), noting:
            for step in steps:
                at_ms = self.target.world.simulation.now_ms
                self.taken.append(step)
                self.step_log.append(f"{at_ms:10.2f} ms  {step}")
                if self._do(step) and self._coverage is not None:
                    self._coverage.record_step(step)
            self._log("heal")
            violations = self.target.end()
            self._log("judged")
        return violations

    def _do(self, step: Step[Any]) -> bool:
        world = self.target.world
        if not step.do(world):
            self.taken.pop()
            self.step_log[-1] += " (not possible)"
            return False
        if not step.is_settled(world):
            settled = functools.partial(step.is_settled, world)
            world.simulation.run_until(settled, SETTLES_WITHIN_MS, every_ms=SETTLING_EVERY_MS)
        return True

    def _log(self, text: str) -> None:
        self.step_log.append(f"{self.target.world.simulation.now_ms:10.2f} ms  {text}")


def drawn_steps(target: Target, seed: int) -> Iterator[Step[Any]]:
    return draw(target.draws, target.world, random.Random(f"steps-{seed}"))


def run(
    history: History,
    trace: str | None = None,
    only: Collection[str] | None = None,
    covers: bool = False,
) -> Outcome:
    """Run a history; an exception raised by the emulation counts as a violation.

    ``trace`` names a file to record the run to, ``only`` names the promises to watch, and
    ``covers`` requests the coverage.
    """
    violations: list[Violation] = []
    play: Play | None = None
    coverage: Coverage | None = None
    try:
        target = history.target(history.kafka_version, history.seed, trace is not None, only)
        if covers:
            coverage = Coverage(target, is_sampled(history.seed))
        play = Play(target, coverage)
        steps = history.steps
        violations = play.run(drawn_steps(target, history.seed) if steps is None else steps)
    except Exception as error:
        violations = [] if play is None else play.target.violation_log.violations()
        now_ms = 0.0 if play is None else play.target.world.simulation.now_ms
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        notes = "; ".join(getattr(error, "__notes__", ()))
        text = f"{type(error).__name__}: {error} ({where}) {notes}"
        violations.append(Violation(_RAISED, text.strip(), now_ms))
    if play is None:
        return Outcome(history, (), tuple(violations), (), 0.0, ())
    simulation = play.target.world.simulation
    figures = tuple(play.target.figures().items())
    if trace is not None:
        simulation.save(trace)
    simulation.stop()
    return Outcome(
        history,
        tuple(play.taken),
        tuple(violations),
        tuple(play.step_log),
        simulation.now_ms,
        figures,
        frozenset() if coverage is None else frozenset(coverage.items),
    )
