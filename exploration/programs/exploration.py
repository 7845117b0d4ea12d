"""The exploration of a user's test, and its runs as work for engines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..campaign import Trial, Trials
from ..explorer import Exploration, Find
from ..history import Outcome
from ..step import parse_step
from .history import FaultHistory
from .program_faults import Bounds


class SettingsOfTest(NamedTuple):
    """The settings of the exploration of a test."""

    test: str
    seed: int
    """Seed of the first run; each further run adds one."""
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Return the settings that must be unchanged for the exploration to be resumed.

        The number of runs may change.
        """
        return {"test": self.test, "seed": self.seed}


class ProgramExploration(Exploration):
    """The state of the exploration of a test: what its runs have found so far."""

    settings: SettingsOfTest
    runs_a_round: int = 40

    def __init__(self, settings: SettingsOfTest, bounds: Bounds) -> None:
        super().__init__(settings)
        self.bounds: Bounds = bounds

    def summarize_finds(self, kinds: Mapping[str, bool]) -> str:
        count = len(kinds)
        return f"{count or 'no'} {'way' if count == 1 else 'ways'} to fail found"

    def work(self, trials: Sequence[Trial]) -> ProgramCampaign:
        return ProgramCampaign(trials, self.bounds)

    def history(self, find: Find) -> FaultHistory:
        trial = find.trial
        history = FaultHistory(trial.target, trial.seed, bounds=self.bounds)
        return history.with_steps(list(map(parse_step, find.taken)))

    def reached_of(self, kind: str) -> list[str]:
        """Return the names of reached items of one kind, such as ``fault``."""
        before = f"{kind}: "
        return sorted(n.removeprefix(before) for n in self.reached if n.startswith(before))

    def target(self, run_id: int) -> str:
        return self.settings.test


@dataclass(frozen=True)
class ProgramCampaign(Trials):
    """Runs of one test, as work for an engine."""

    specs: Sequence[Trial]
    bounds: Bounds

    @property
    def batch_id(self) -> str:
        return hashlib.blake2b(repr(self.specs).encode(), digest_size=8).hexdigest()

    def outcome(self, spec: Trial) -> Outcome:
        steps = None if spec.steps is None else tuple(map(parse_step, spec.steps))
        return FaultHistory(spec.target, spec.seed, steps, self.bounds).run()
