"""The directory of an exploration: a file with its settings, and a file with a line per run."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ..protocol.errors import UsageError
from .campaign import Result, Trial
from .invariants.invariant import Violation
from .settings import Explored

_RUNS, _SETTINGS = "runs.jsonl", "settings.json"


def begin(out: Path, settings: Explored, *, resume: bool) -> None:
    """Create the directory of an exploration or, with ``resume``, check that it can be resumed.

    Raises ``UsageError`` if it holds another exploration, or none although ``resume`` is set.
    """
    path = out / _SETTINGS
    if path.exists():
        if not resume:
            raise UsageError(
                f"{out} contains an exploration: continue it with --resume, or name another "
                "directory"
            )
        found = json.loads(path.read_text(encoding="utf-8"))
        if found != settings.as_dict():
            raise UsageError(f"{out} contains an exploration with other settings: {found}")
        return
    if resume:
        raise UsageError(f"there is no exploration in {out} to continue")
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(settings.as_dict()) + "\n", encoding="utf-8")


def add_runs(
    out: Path, results: Sequence[Result], new: Sequence[frozenset[str]], run_ids: Collection[int]
) -> None:
    """Append a line for each run in ``run_ids``, with the items that it was the first to reach."""
    with (out / _RUNS).open("a", encoding="utf-8") as file:
        for result, items in zip(results, new, strict=True):
            trial = result.trial
            if trial.run_id not in run_ids:
                continue
            line: dict[str, Any] = {
                "run": trial.run_id,
                "target": trial.target,
                "seed": trial.seed,
                "steps": trial.steps,
                "taken": result.taken if items or result.violations else (),
                "new": sorted(items),
                "violations": result.violations,
                "figures": dict(result.figures),
                "virtual_ms": result.virtual_ms,
            }
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def read_runs(out: Path, runs: int) -> dict[int, Result]:
    """Return the results of earlier runs with numbers below ``runs``, by number.

    A truncated line is removed from the file, with all lines after it.
    """
    found: dict[int, Result] = {}
    path = out / _RUNS
    if not path.exists():
        return found
    whole = 0
    with path.open("rb") as file:
        for line in file:
            result = _result(line)
            if result is None:
                break
            whole += len(line)
            if result.trial.run_id < runs:
                found[result.trial.run_id] = result
    with path.open("ab") as file:
        file.truncate(whole)
    return found


def _result(line: bytes) -> Result | None:
    """Parse the line of a run; None if it is truncated."""
    if not line.endswith(b"\n"):
        return None
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    steps = None if fields["steps"] is None else tuple(fields["steps"])
    return Result(
        Trial(fields["run"], fields["target"], fields["seed"], steps),
        tuple(fields["taken"]),
        tuple(Violation(*violation) for violation in fields["violations"]),
        frozenset(fields["new"]),
        tuple(fields["figures"].items()),
        fields["virtual_ms"],
    )
