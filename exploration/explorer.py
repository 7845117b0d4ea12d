"""Explorations: rounds of trials, and what they reached and broke; they can be resumed.

The trials of a round depend only on the rounds before it, and results are processed in the order of
their numbers. So the same seeds give the same violations on every engine.
"""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from ..spark_bench.engines.engine import Engine
from ..spark_bench.planning.numbered_runs import Work
from .campaign import Campaign, Result, Trial, target_of
from .directory import add_runs, read_runs
from .history import TARGETS, Repeatable
from .invariants.invariant import Violation
from .mutation import mutate
from .settings import Explored, Settings
from .step import parse_step

_RUNS_PER_MUTATION = 4
"""Number of runs of which one mutates an earlier run that reached something new."""
_POOL_MAX = 400


class Find(NamedTuple):
    """A violation, and the first run in which a violation of its signature was found."""

    violation: Violation
    trial: Trial
    taken: tuple[str, ...]
    """The steps that were done in that run."""


class ExplorationProgress(NamedTuple):
    """The progress of an exploration, displayed like the progress of a batch."""

    done: int
    total: int
    work: float
    runs_per_s: float
    remaining_s: float
    found: str
    """The finds so far, in words."""

    def __str__(self) -> str:
        return (
            f"{self.done} of {self.total} runs, {self.runs_per_s:.1f} runs/s, "
            f"{self.remaining_s:.0f} s left, {self.found}"
        )


class Exploration(ABC):
    """The state of an exploration: what its runs have found so far."""

    settings: Explored
    runs_a_round: int = 240

    def __init__(self, settings: Explored) -> None:
        self.settings = settings
        self.reached: set[str] = set()
        self.counts: dict[str, int] = {}
        """Signature -> number of runs with a violation of that signature."""
        self.finds: dict[str, Find] = {}
        """Signature -> its first find."""
        self.figures: dict[str, int] = {}
        self.done: dict[int, None] = {}
        self.virtual_ms: float = 0.0
        self.by_target: dict[str, int] = {}
        self.pool: list[tuple[str, int, tuple[str, ...]]] = []
        # Target, seed and steps of runs that reached something new.

    @abstractmethod
    def summarize_finds(self, kinds: Mapping[str, bool]) -> str:
        """Summarize the finds in a few words.

        ``kinds`` maps signatures to True if the violation is known as Kafka's own.
        """

    @abstractmethod
    def work(self, trials: Sequence[Trial]) -> Work:
        """Return the trials as work for an engine."""

    @abstractmethod
    def history(self, find: Find) -> Repeatable:
        """Return the run of a find, with the steps that were done in it."""

    @abstractmethod
    def target(self, run_id: int) -> str:
        """Return the target of a run that does not mutate another one."""

    def shape_of(self, target: str, seed: int) -> Hashable:
        """Return a value that is equal for runs whose steps can be exchanged."""
        return target

    def draw_trial(self, run_id: int) -> Trial:
        """Draw a run; all runs of the previous rounds must have been taken."""
        seed = self.settings.seed + run_id
        if run_id % _RUNS_PER_MUTATION == _RUNS_PER_MUTATION - 1 and self.pool:
            rng = random.Random(f"mutation {seed}")
            target, parent_seed, steps = rng.choice(self.pool)
            shape = self.shape_of(target, parent_seed)
            others = [
                lines
                for name, other_seed, lines in self.pool
                if self.shape_of(name, other_seed) == shape
            ]
            parsed = [list(map(parse_step, lines)) for lines in (steps, rng.choice(others))]
            made = mutate(parsed[0], parsed[1], rng)
            return Trial(run_id, target, parent_seed, tuple(map(str, made)))
        return Trial(run_id, self.target(run_id), seed)

    def rounds(self) -> Iterator[list[Trial]]:
        """Yield the trials of each round; the results of a round must be taken before the next."""
        runs, size = self.settings.runs, self.runs_a_round
        for begin in range(0, runs, size):
            yield [self.draw_trial(run_id) for run_id in range(begin, min(begin + size, runs))]

    def add_results(self, results: Sequence[Result], new: Sequence[frozenset[str]]) -> None:
        """Add results, in the order of their runs, with the new items that each run reached."""
        for result, items in zip(results, new, strict=True):
            trial = result.trial
            self.done[trial.run_id] = None
            self.by_target[trial.target] = self.by_target.get(trial.target, 0) + 1
            self.virtual_ms += result.virtual_ms
            for name, count in result.figures:
                self.figures[name] = self.figures.get(name, 0) + count
            fresh = items - self.reached
            self.reached |= items
            if fresh and result.taken and len(self.pool) < _POOL_MAX:
                self.pool.append((trial.target, trial.seed, result.taken))
            for violation in result.violations:
                find = Find(violation, trial, result.taken)
                self.finds.setdefault(violation.signature, find)
            for signature in sorted({violation.signature for violation in result.violations}):
                self.counts[signature] = self.counts.get(signature, 0) + 1


class ClusterExploration(Exploration):
    """The exploration of clusters that are drawn from seeds."""

    settings: Settings

    def summarize_finds(self, kinds: Mapping[str, bool]) -> str:
        unknown = sum(not is_known for is_known in kinds.values())
        reached = len(self.reached)
        return f"{len(kinds)} kinds of violation ({unknown} not known), {reached} things reached"

    def work(self, trials: Sequence[Trial]) -> Work:
        return Campaign(self.settings.kafka_version, trials, self.settings.only)

    def history(self, find: Find) -> Repeatable:
        history = find.trial.history(self.settings.kafka_version)
        return history.with_steps(list(map(parse_step, find.taken)))

    def target(self, run_id: int) -> str:
        return self.settings.target or target_of(run_id, self.settings.kafka_version)

    def shape_of(self, target: str, seed: int) -> Hashable:
        return target, TARGETS[target].shape_of(seed)


class _BudgetUsed(Exception):
    """The time budget is used up."""


class _Session:
    """A call of ``explore``, which handles the engine, the time budget and the directory."""

    def __init__(
        self,
        exploration: Exploration,
        budget_s: float | None,
        out: Path | None,
        progress: Callable[[ExplorationProgress], object],
    ) -> None:
        self._exploration = exploration
        self._budget_s = budget_s
        self._out = out
        self._progress = progress
        self._earlier_results = {} if out is None else read_runs(out, exploration.settings.runs)
        self._started = time.monotonic()
        self._completed_runs = 0
        self._kinds: dict[str, bool] = {}  # signature -> True if known as Kafka's own

    def run(self, engine: Engine) -> None:
        for trials in self._exploration.rounds():
            self._round(engine, trials)

    def _round(self, engine: Engine, trials: Sequence[Trial]) -> None:
        exploration = self._exploration
        known = frozenset(exploration.reached)
        gathered: dict[int, Result] = {
            one.run_id: self._earlier_results[one.run_id]
            for one in trials
            if one.run_id in self._earlier_results
        }
        rest = [one for one in trials if one.run_id not in gathered]
        for result in gathered.values():
            self._kinds.update((one.signature, bool(one.known)) for one in result.violations)
        try:
            for carried in engine.run(exploration.work(rest), rest) if rest else ():
                result = carried.row["result"]
                gathered[result.trial.run_id] = result
                self._completed_runs += 1
                self._kinds.update((one.signature, bool(one.known)) for one in result.violations)
                self._report_progress(len(exploration.done) + len(gathered))
        finally:
            results = [gathered[run_id] for run_id in sorted(gathered)]
            new = [result.reached - known for result in results]
            if self._out is not None:
                made = {one.run_id for one in rest}
                add_runs(self._out, results, new, made)
            exploration.add_results(results, new)

    def _report_progress(self, done: int) -> None:
        """Report the progress; raise ``_BudgetUsed`` once the time budget is used up."""
        exploration, budget_s = self._exploration, self._budget_s
        runs = exploration.settings.runs
        elapsed_s = max(time.monotonic() - self._started, 1e-6)
        rate = self._completed_runs / elapsed_s
        left_s, work = (runs - done) / rate, done / runs
        if budget_s is not None:
            left_s = min(left_s, max(budget_s - elapsed_s, 0.0))
            work = max(work, min(elapsed_s / budget_s, 1.0))
        found = exploration.summarize_finds(self._kinds)
        self._progress(ExplorationProgress(done, runs, work, rate, left_s, found))
        if budget_s is not None and elapsed_s >= budget_s:
            raise _BudgetUsed


def explore(
    exploration: Exploration,
    open_engine: Callable[[], AbstractContextManager[Engine]],
    *,
    budget_s: float | None = None,
    out: Path | None = None,
    progress: Callable[[ExplorationProgress], object] = lambda _progress: None,
) -> BaseException | None:
    """Explore until all runs are done or the time budget is used up.

    ``out`` is the directory with the results of earlier runs, to which new results are appended.
    Returns the KeyboardInterrupt or SystemExit that ended the exploration early; otherwise None.
    """
    session = _Session(exploration, budget_s, out, progress)
    ended: BaseException | None = None
    try:
        with open_engine() as engine:
            session.run(engine)
    except _BudgetUsed:
        pass
    except (KeyboardInterrupt, SystemExit) as cause:
        ended = cause
    return ended
