"""Carries out a run and makes its row, even after an exception, a hang or a lack of memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ...actors.runtime.garbage import garbage
from ...testing.running import WaitTimeout
from ..measuring.budget import BudgetExceeded, WallTimeExceeded, limited
from ..measuring.run import Run
from .plan import BatchPlan, RunSpec, column_name, reproduce_command

STATUSES = {
    "ok": "the run ended, and every promise was kept",
    "violation": "the run ended, and a promise was broken: problems says which",
    "error": "the run raised an exception",
    "budget": "the run used up its events, its virtual time or its wall time",
    "memory": "the run needed more memory than its budget has",
    "lost": "the process that carried out the run died, and died again when it was repeated",
}


@dataclass(slots=True)
class Outcome:
    """The outcome of a run. Everything except ``wall_ms`` and ``worker`` follows from its spec."""

    row: dict[str, Any]
    histograms: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    series: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    samples: list[tuple[str, int, float]] = field(default_factory=list)
    wall_ms: float = 0.0
    worker: str = ""


def carry_out(plan: BatchPlan, spec: RunSpec, worker: str = "") -> Outcome:
    """Carry out one run."""
    started = time.perf_counter()
    outcome = carry_out_in(Run(spec.seed, plan.budget, plan.keeps_samples(spec)), plan, spec)
    outcome.wall_ms = (time.perf_counter() - started) * 1000
    outcome.worker = worker
    return outcome


def carry_out_in(run: Run, plan: BatchPlan, spec: RunSpec) -> Outcome:
    """Carry out a run in a ``Run`` that belongs to the caller."""
    status, problems = "ok", ""
    try:
        with limited(plan.budget), garbage.raised_thresholds():
            plan.suite.play(run, dict(spec.parameters))
        if run.problems:
            status, problems = "violation", "; ".join(run.problems)
        outcome = _measured(run)
    except BudgetExceeded as exceeded:
        status, problems = "budget", str(exceeded)
        outcome = Outcome({}) if isinstance(exceeded, WallTimeExceeded) else _measured(run)
    except MemoryError:
        status = "memory"
        problems, outcome = f"the run needed more than {plan.budget.memory_mb:g} MB", Outcome({})
    except WaitTimeout as error:
        # A wait that never ended is the worst result: the open outages of the run count.
        status, problems, outcome = "error", f"{type(error).__name__}: {error}", _measured(run)
    except Exception as error:
        status, problems, outcome = "error", f"{type(error).__name__}: {error}", Outcome({})
    finally:
        run.close()
    outcome.row = first_columns(plan, spec, status, problems) | outcome.row
    return outcome


def _measured(run: Run) -> Outcome:
    row = run.row()
    return Outcome(row, run.histograms(), run.series(), run.meter.samples or [])


def lost_outcome(plan: BatchPlan, spec: RunSpec, problem: str) -> Outcome:
    """Return the outcome of a run whose process died."""
    return Outcome(first_columns(plan, spec, "lost", problem))


def first_columns(plan: BatchPlan, spec: RunSpec, status: str, problems: str) -> dict[str, Any]:
    """Return the columns with which every row begins."""
    return {
        "run_id": spec.run_id,
        "suite": plan.source.name,
        "configuration": spec.configuration,
        "seed": spec.seed,
        **{column_name(name): value for name, value in spec.parameters},
        "status": status,
        "problems": problems,
        "reproduce": reproduce_command(plan.source, spec),
    }
