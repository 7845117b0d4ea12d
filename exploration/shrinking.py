"""Shrinking a history: removing steps that its violation does not need."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .cluster_steps import Wait
from .generator import shrink
from .history import Outcome
from .step import Step

RUNS_MAX = 200
WALL_S_MAX = 60.0


class _ShrinkBudgetUsed(Exception):
    """The budget of runs or of time is used up."""


class Shortened(NamedTuple):
    """The outcome of a shortened history, and the number of runs that were needed."""

    outcome: Outcome
    runs: int


def shorten(
    outcome: Outcome, signature: str, runs_max: int = RUNS_MAX, wall_s_max: float = WALL_S_MAX
) -> Shortened:
    """Remove steps as long as a violation with this signature remains.

    It stops after ``runs_max`` runs or about ``wall_s_max`` seconds, with the shortest history
    found by then.
    """
    found, runs = outcome, 0
    begun_s = time.monotonic()

    def still_shows(steps: Sequence[Step[Any]]) -> bool:
        nonlocal found, runs
        if runs >= runs_max or time.monotonic() - begun_s >= wall_s_max:
            raise _ShrinkBudgetUsed
        runs += 1
        shorter = outcome.history.with_steps(steps).run()
        shows = any(violation.signature == signature for violation in shorter.violations)
        if shows:
            found = shorter
        return shows

    with contextlib.suppress(_ShrinkBudgetUsed):
        shrink(outcome.taken, still_shows, _with_waits_joined)
    return Shortened(found, runs)


def _with_waits_joined(steps: list[Step[Any]]) -> list[Step[Any]]:
    """Join consecutive waits into one."""
    joined: list[Step[Any]] = []
    for step in steps:
        if isinstance(step, Wait) and joined and isinstance(joined[-1], Wait):
            joined[-1] = Wait(joined[-1].ms + step.ms)
        else:
            joined.append(step)
    return joined
