"""Suites: named batches of runs, whatever engine carries them out."""

from __future__ import annotations

import dataclasses
import difflib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..protocol.errors import FakeKafkaError, UsageError
from .histogram import Histogram
from .suites.failover import FailoverParameters, run_failover

SUITES: dict[str, tuple[type[Any], Callable[[int, Any], dict[str, Any]], str]] = {
    "failover": (
        FailoverParameters,
        run_failover,
        "the leader of a partition crashes under load; how long that is felt",
    ),
}
"""Name -> (parameters, function of seed and parameters, what it is about)."""


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
    checked = SUITES[suite][0].checked(**parameters)
    values = tuple(dataclasses.asdict(checked).items())
    return [RunSpec(number, suite, first_seed + number, values) for number in range(runs)]


def reproduce_command(spec: RunSpec) -> str:
    """The command that repeats one run."""
    defaults = dataclasses.asdict(SUITES[spec.suite][0]())
    options = "".join(
        f" --set {name}={value}" for name, value in spec.parameters if defaults[name] != value
    )
    return f"fakekafka bench run {spec.suite} --runs 1 --seed {spec.seed} --engine serial{options}"


def run_one(spec: RunSpec) -> dict[str, Any]:
    """Carry out one run; an exception becomes a row, never a failed batch.

    The result holds ``row``, ``histograms`` and ``wall_ms``; only the last differs between
    engines and machines.
    """
    parameters_type, function, _ = SUITES[spec.suite]
    started = time.perf_counter()
    try:
        outcome = function(spec.seed, parameters_type(**dict(spec.parameters)))
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


class BatchEnded(FakeKafkaError):
    """Somebody ended a batch early; ``batch`` has the runs that were done, ``cause`` says how."""

    def __init__(self, batch: BatchResult, cause: BaseException) -> None:
        super().__init__(f"ended after {batch.runs} of {batch.planned} runs")
        self.batch = batch
        self.cause = cause


@dataclass
class BatchResult:
    """What a batch gave: run rows in run order, and histograms merged over all runs."""

    suite: str
    engine: str
    rows: list[dict[str, Any]]
    histograms: dict[str, Histogram]
    wall_s: float
    setup_s: float
    """Time to get the engine ready (a Spark session), not part of ``wall_s``."""
    planned: int
    """Runs that were asked for; more than ``rows`` when the batch was ended early."""

    @property
    def runs(self) -> int:
        return len(self.rows)

    @property
    def ok(self) -> int:
        """Runs that ended without a violation or an error."""
        return sum(row["status"] == "ok" for row in self.rows)

    def column(self, name: str) -> list[float]:
        """Values of a column over the runs that have it."""
        values = (row.get(name) for row in self.rows)
        return [value for value in values if value is not None and not math.isnan(value)]


def run_suite(
    suite: str,
    *,
    runs: int,
    engine: str,
    out: Path | None = None,
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    **parameters: Any,
) -> BatchResult:
    """Run a batch and, with ``out``, write its tables as Parquet.

    ``engine`` is one of ``ENGINES``; ``progress`` is called with (runs done, runs in all).

    Raises ``UsageError`` for an unknown suite, engine or parameter, and for an ``out`` that cannot
    be written to or, without ``overwrite``, has the tables of another batch. Raises ``BatchEnded``
    when Ctrl-C or SIGTERM ended the batch, after the tables of the runs that were done are written.
    """
    from .engines import choose_engine, open_engine
    from .tables import prepare, write_tables

    specs = make_specs(suite, runs, seed, **parameters)
    if engine == "auto":
        engine, _ = choose_engine()
    if out is not None:
        prepare(out, overwrite=overwrite)
    opened_at = time.perf_counter()
    results: list[dict[str, Any]] = []
    ended: BaseException | None = None
    with open_engine(engine, workers) as opened:
        started = time.perf_counter()
        try:
            results.extend(opened.run(specs, progress))
        except (KeyboardInterrupt, SystemExit) as cause:
            ended = cause
        finished = time.perf_counter()
    results.sort(key=lambda result: result["row"]["run_id"])
    batch = BatchResult(
        suite,
        engine,
        [result["row"] for result in results],
        _merged_histograms(results),
        finished - started,
        started - opened_at,
        len(specs),
    )
    if out is not None and results:
        write_tables(out, batch, results)
    if ended is not None:
        raise BatchEnded(batch, ended)
    return batch


def _merged_histograms(results: list[dict[str, Any]]) -> dict[str, Histogram]:
    merged: dict[str, Histogram] = {}
    for result in results:
        for name, counts in result["histograms"].items():
            merged.setdefault(name, Histogram()).merge(counts)
    return merged
