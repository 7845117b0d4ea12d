"""Work for engines: numbered runs, of a suite or of another kind."""

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
    """Runs, and the way to carry them out. Engines pickle it to send it to other processes."""

    @property
    def specs(self) -> Sequence[Any]:
        """All runs; each is a ``NumberedRun``."""
        ...

    @property
    def batch_id(self) -> str:
        """An id that distinguishes this work from other work."""
        ...

    def carry_out(self, spec: Any, worker: str) -> Outcome:
        """Carry out a run; the outcome's row has the number of the spec as ``run_id``."""
        ...

    def lost(self, spec: Any, problem: str) -> Outcome:
        """Return the outcome of a run whose process died."""
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
