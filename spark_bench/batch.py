"""A batch: the runs of a suite on an engine, and their tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..protocol.errors import FakeKafkaError
from .engines import choose_engine, open_engine
from .histogram import BucketHistogram
from .results import BatchResult
from .runs import make_specs
from .tables import prepare, remove_empty, write_tables


class BatchEnded(FakeKafkaError):
    """Somebody ended a batch early; ``batch`` has the runs that were done, ``cause`` says how."""

    def __init__(self, batch: BatchResult, cause: BaseException) -> None:
        super().__init__(f"ended after {batch.runs} of {batch.planned} runs")
        self.batch = batch
        self.cause = cause


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
    specs = make_specs(suite, runs, seed, **parameters)
    if engine == "auto":
        engine, _ = choose_engine()
    made = [] if out is None else prepare(out, overwrite=overwrite)
    opened_at = time.perf_counter()
    results: list[dict[str, Any]] = []
    ended: BaseException | None = None
    started = finished = opened_at
    try:
        with open_engine(engine, workers) as opened:
            started = time.perf_counter()
            try:
                results.extend(opened.run(specs, progress))
            except (KeyboardInterrupt, SystemExit) as cause:
                ended = cause
            finished = time.perf_counter()
    except (KeyboardInterrupt, SystemExit) as cause:  # while the engine came up or went down
        ended = cause
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
    remove_empty(made)
    if ended is not None:
        raise BatchEnded(batch, ended)
    return batch


def _merged_histograms(results: list[dict[str, Any]]) -> dict[str, BucketHistogram]:
    merged: dict[str, BucketHistogram] = {}
    for result in results:
        for name, counts in result["histograms"].items():
            merged.setdefault(name, BucketHistogram()).merge(counts)
    return merged
