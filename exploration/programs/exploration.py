"""The exploration of a user's test: its runs as engines take them."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...spark_bench.planning.carry_out import Outcome as Carried
from ..campaign import MeanCost, Result, Trial
from ..explorer import MUTATED_EACH, Exploration, Find
from ..invariants.invariant import Violation
from ..mutation import mutated
from ..step import parse_step
from .history import FaultHistory
from .program_faults import Bounds


class SettingsOfTest(NamedTuple):
    """What is explored: a test, and the seeds."""

    test: str
    seed: int
    """Of the first run; the others count up."""
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """What has to be the same for an exploration to go on; the number of runs may grow."""
        return {"test": self.test, "seed": self.seed}


class ProgramExploration(Exploration):
    """All that is known of the runs of a test so far."""

    settings: SettingsOfTest
    runs_a_round: int = 40

    def __init__(self, settings: SettingsOfTest, bounds: Bounds) -> None:
        super().__init__(settings)
        self.bounds: Bounds = bounds

    def found_so_far(self, kinds: Mapping[str, bool]) -> str:
        count = len(kinds)
        return f"{count or 'no'} {'way' if count == 1 else 'ways'} to fail found"

    def work(self, attempts: Sequence[Trial]) -> ProgramCampaign:
        return ProgramCampaign(attempts, self.bounds)

    def history(self, find: Find) -> FaultHistory:
        attempt = find.attempt
        history = FaultHistory(attempt.target, attempt.seed, bounds=self.bounds)
        return history.with_steps(list(map(parse_step, find.taken)))

    def attempt(self, run_id: int) -> Trial:
        settings = self.settings
        seed = settings.seed + run_id
        if run_id % MUTATED_EACH == MUTATED_EACH - 1 and self.pool:
            rng = random.Random(f"mutation {seed}")
            _, its_seed, steps = rng.choice(self.pool)
            parsed = [list(map(parse_step, lines)) for lines in (steps, rng.choice(self.pool)[2])]
            made = mutated(parsed[0], parsed[1], rng)
            return Trial(run_id, settings.test, its_seed, tuple(map(str, made)))
        return Trial(run_id, settings.test, seed)


@dataclass(frozen=True)
class ProgramCampaign:
    """Runs of one test; an engine's ``Work``."""

    specs: Sequence[Trial]
    bounds: Bounds

    @property
    def batch_id(self) -> str:
        return hashlib.blake2b(repr(self.specs).encode(), digest_size=8).hexdigest()

    def carry_out(self, spec: Trial, worker: str) -> Carried:
        started = time.perf_counter()
        steps = None if spec.steps is None else tuple(map(parse_step, spec.steps))
        outcome = FaultHistory(spec.target, spec.seed, steps, self.bounds).run()
        taken = tuple(map(str, outcome.taken))
        result = Result(
            spec, taken, outcome.violations, outcome.reached, outcome.figures, outcome.virtual_ms
        )
        wall_ms = (time.perf_counter() - started) * 1000
        return Carried({"run_id": spec.run_id, "result": result}, wall_ms=wall_ms, worker=worker)

    def lost(self, spec: Trial, problem: str) -> Carried:
        violation = Violation("RunsEnd", problem, 0.0)
        result = Result(spec, spec.steps or (), (violation,), frozenset(), (), 0.0)
        return Carried({"run_id": spec.run_id, "result": result})

    def costs(self) -> MeanCost:
        return MeanCost()
