"""Work for engines: runs that have numbers, of a suite or of anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from .carry_out import Outcome, carry_out, lost_outcome
from .plan import BatchPlan, RunSpec
from .schedule import CostModel


class NumberedRun(Protocol):
    """A run as an engine sees it."""

    @property
    def run_id(self) -> int: ...


class RunCosts(Protocol):
    """The probable costs of runs."""

    def estimate_s(self, spec: Any, /) -> float: ...

    def observe(self, spec: Any, wall_ms: float, /) -> None: ...


class Work(Protocol):
    """Runs, and how one is carried out; an engine pickles it to take it to other processes."""

    @property
    def specs(self) -> Sequence[Any]:
        """All of them; each is ``NumberedRun``."""
        ...

    @property
    def batch_id(self) -> str:
        """Names it among others."""
        ...

    def carry_out(self, spec: Any, worker: str) -> Outcome:
        """Carry out a run; ``run_id`` in the outcome's row is the number of the spec."""
        ...

    def lost(self, spec: Any, problem: str) -> Outcome:
        """The outcome of a run whose process died."""
        ...

    def costs(self) -> RunCosts: ...


class SuiteWork:
    """The runs of a suite."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan: BatchPlan = plan

    @property
    def specs(self) -> Sequence[RunSpec]:
        return self.plan.specs

    @property
    def batch_id(self) -> str:
        return self.plan.batch_id

    def carry_out(self, spec: RunSpec, worker: str) -> Outcome:
        return carry_out(self.plan, spec, worker)

    def lost(self, spec: RunSpec, problem: str) -> Outcome:
        return lost_outcome(self.plan, spec, problem)

    def costs(self) -> CostModel:
        return CostModel(self.plan)
