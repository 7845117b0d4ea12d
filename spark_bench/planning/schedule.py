"""Estimates the cost of runs, so that the longest begin first and the remaining time is known.

Estimates come from an earlier batch, or from the suite (``cost``), or else assume that runs with
larger numbers take longer. The times of finished runs correct them, for each configuration by its
own runs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .past_costs import PastCosts
from .plan import BatchPlan, RunSpec, column_name
from .suite import call_with_accepted

_DEFAULT_S = 0.3
"""Estimated seconds of a run about which nothing is known."""


class CostModel:
    """Estimates how many seconds runs take."""

    def __init__(self, plan: BatchPlan, past: PastCosts | None = None) -> None:
        suite = plan.suite
        self._prior: dict[int, float] = {}
        for spec in plan.specs:
            if spec.configuration not in self._prior:
                values = dict(spec.parameters)
                if past is not None:
                    columns = {column_name(name): value for name, value in values.items()}
                    prior = past.estimate_s(columns)
                elif suite.cost is not None:
                    prior = call_with_accepted(suite.cost, values)
                else:
                    prior = _DEFAULT_S * _size(plan, spec)
                self._prior[spec.configuration] = max(prior, 1e-6)
        self._sums: dict[int, tuple[int, float]] = {}
        self._ratio = (0, 0.0)

    def observe(self, spec: RunSpec, wall_ms: float) -> None:
        """Correct the estimates by the time that a run took."""
        if wall_ms <= 0:
            return
        count, total_s = self._sums.get(spec.configuration, (0, 0.0))
        self._sums[spec.configuration] = count + 1, total_s + wall_ms / 1000
        runs, logarithms = self._ratio
        ratio = wall_ms / 1000 / self._prior[spec.configuration]
        self._ratio = runs + 1, logarithms + math.log(ratio)

    def estimate_s(self, spec: RunSpec) -> float:
        """Return about how many seconds a run takes."""
        count, total_s = self._sums.get(spec.configuration, (0, 0.0))
        if count:
            return total_s / count
        runs, logarithms = self._ratio
        scale = math.exp(logarithms / runs) if runs else 1.0
        return self._prior[spec.configuration] * scale

    def longest_first(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """Return runs in the order in which to begin them; equal ones in the order of the plan."""
        return sorted(specs, key=lambda spec: (-self.estimate_s(spec), spec.run_id))


def _size(plan: BatchPlan, spec: RunSpec) -> float:
    """Return the product of the square roots of a run's numbers divided by their defaults, leaving
    out times."""
    size = 1.0
    for name, value in spec.parameters:
        parameter = plan.suite.parameters.get(name)
        if parameter is None or parameter.kind not in (int, float) or not parameter.default:
            continue
        if value > 0 and not name.endswith("_ms"):
            size *= (value / parameter.default) ** 0.5
    return size


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """The progress of a batch."""

    done: int
    total: int
    work: float
    """Fraction of the estimated work that is done, from 0 to 1."""
    runs_per_s: float
    remaining_s: float

    def __str__(self) -> str:
        return (
            f"{self.done} of {self.total} runs, {self.work:.0%} of the work, "
            f"{self.runs_per_s:.1f} runs/s, {_duration_text(self.remaining_s)} left"
        )


class ProgressMeter:
    """Counts finished runs and estimated work, and reports them to a callback."""

    def __init__(
        self,
        model: CostModel,
        specs: list[RunSpec],
        done_before: int,
        callback: Callable[[ProgressReport], object] | None,
    ) -> None:
        self._model = model
        self._remaining = {spec.run_id: spec for spec in specs}
        self._done_before = done_before
        self._total = done_before + len(specs)
        self._done = 0
        self._work_done_s = 0.0
        self._callback = callback
        self._started = self._reported_at = time.monotonic()

    def count_run(self, spec: RunSpec) -> None:
        """Count a finished run."""
        self._remaining.pop(spec.run_id, None)
        self._done += 1
        self._work_done_s += self._model.estimate_s(spec)
        now = time.monotonic()
        if self._callback is not None and (now - self._reported_at >= 0.2 or not self._remaining):
            self._reported_at = now
            self._callback(self._report(now))

    def _report(self, now: float) -> ProgressReport:
        counts: dict[int, tuple[int, RunSpec]] = {}
        for spec in self._remaining.values():
            counts[spec.configuration] = counts.get(spec.configuration, (0, spec))[0] + 1, spec
        remaining_s = sum(count * self._model.estimate_s(spec) for count, spec in counts.values())
        elapsed_s = max(now - self._started, 1e-9)
        total_s = self._work_done_s + remaining_s
        work = self._work_done_s / total_s if total_s else 1.0
        return ProgressReport(
            self._done_before + self._done,
            self._total,
            work,
            self._done / elapsed_s,
            elapsed_s * remaining_s / self._work_done_s if self._work_done_s else math.inf,
        )


def _duration_text(seconds: float) -> str:
    if seconds == math.inf:
        return "unknown time"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
