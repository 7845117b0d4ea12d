"""Single runs of a suite: what one is given, how it is carried out and repeated."""

from __future__ import annotations

import dataclasses
import difflib
import time
from dataclasses import dataclass
from typing import Any

from ..protocol.errors import UsageError
from .suites.catalogue import SUITES


@dataclass(frozen=True)
class RunSpec:
    """One run: plain data, so that any engine can ship it."""

    run_id: int
    suite: str
    seed: int
    parameters: tuple[tuple[str, Any], ...]


def make_specs(suite: str, runs: int, first_seed: int, **parameters: Any) -> list[RunSpec]:
    """Specs of a batch: seeds count up from ``first_seed``.

    Raises ``UsageError`` for an unknown suite or parameter, or fewer than one run.
    """
    if suite not in SUITES:
        near = difflib.get_close_matches(suite, SUITES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(SUITES)}"
        raise UsageError(f"there is no suite {suite!r}{hint}")
    if runs < 1:
        raise UsageError(f"runs must be at least 1, not {runs}")
    checked = SUITES[suite].parameters.checked(**parameters)
    values = tuple(dataclasses.asdict(checked).items())
    return [RunSpec(number, suite, first_seed + number, values) for number in range(runs)]


def reproduce_command(spec: RunSpec) -> str:
    """The command that repeats one run."""
    defaults = dataclasses.asdict(SUITES[spec.suite].parameters())
    options = "".join(
        f" --set {name}={value}" for name, value in spec.parameters if defaults[name] != value
    )
    return f"fakekafka bench run {spec.suite} --runs 1 --seed {spec.seed} --engine serial{options}"


def run_one(spec: RunSpec) -> dict[str, Any]:
    """Carry out one run; an exception becomes a row, never a failed batch.

    The result holds ``row``, ``histograms`` and ``wall_ms``; only the last differs between
    engines and machines.
    """
    suite = SUITES[spec.suite]
    started = time.perf_counter()
    try:
        outcome = suite.run(spec.seed, suite.parameters(**dict(spec.parameters)))
    except Exception as error:
        outcome = {
            "row": {"status": "error", "problems": f"{type(error).__name__}: {error}"},
            "histograms": {},
        }
    row = {
        "run_id": spec.run_id,
        "suite": spec.suite,
        "seed": spec.seed,
        **dict(spec.parameters),
        **outcome["row"],
        "reproduce": reproduce_command(spec),
    }
    wall_ms = (time.perf_counter() - started) * 1000
    return {"row": row, "histograms": outcome["histograms"], "wall_ms": wall_ms}
