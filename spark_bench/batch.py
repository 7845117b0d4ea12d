"""A batch: the runs of a suite on an engine, and their tables."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from ..protocol.errors import FakeKafkaError
from .engines.engine import Engine, choose_engine, open_engine
from .planning.numbered_runs import SuiteWork
from .planning.past_costs import PastCosts
from .planning.plan import BatchPlan, make_plan
from .planning.schedule import CostModel, ProgressMeter, ProgressReport
from .reports.results import BatchResult
from .tables.lock import locked
from .tables.reader import BatchTables
from .tables.store import BatchStore, make_directory, remove_empty, require_no_other_batch


class BatchEnded(FakeKafkaError):
    """A batch was ended early. ``batch`` has the finished runs, ``cause`` the exception."""

    def __init__(self, batch: BatchResult, cause: BaseException) -> None:
        super().__init__(f"ended after {batch.runs} of {batch.planned} runs")
        self.batch = batch
        self.cause = cause


def run_suite(
    suite: str,
    *,
    runs: int | None = None,
    engine: str = "auto",
    out: Path | None = None,
    seed: int = 0,
    progress: Callable[[ProgressReport], object] | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    matrix: Mapping[str, Sequence[Any]] | None = None,
    budget: Mapping[str, Any] | None = None,
    samples: int = 0,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    costs_from: Path | None = None,
    notice: Callable[[str], object] | None = None,
    **parameters: Any,
) -> BatchResult:
    """Run a batch and, with ``out``, write its tables as Parquet.

    ``suite`` is the name of a suite, or a file. ``runs`` is the number of seeds of every
    configuration, which count up from ``seed``. ``matrix`` (parameter to values) replaces the
    suite's own; an empty one leaves a single configuration. ``engine`` is one of ``ENGINES``;
    ``master`` and ``conf`` are passed to Spark. ``resume`` continues the batch in ``out``. The
    tables of an earlier batch in ``costs_from`` serve to estimate how long runs take. ``notice`` is
    called with a text when the batch waits for a Spark cluster, and for each damaged file that a
    resumed batch makes again.

    Raises ``UsageError`` for an unknown suite, engine or parameter, and for an ``out`` that cannot
    be written to, has the tables of another batch, or is in use by another process.
    Raises ``BatchEnded`` if Ctrl-C or SIGTERM ended the batch, after writing the tables of the
    finished runs.
    """
    plan = make_plan(
        suite, runs, seed, values=parameters, matrix=matrix, budget=budget, samples=samples
    )
    if engine == "auto":
        engine = "spark" if master else choose_engine()[0]
    past = None
    if costs_from is not None:
        earlier = BatchTables(costs_from).seconds()
        past = PastCosts((values, took_s) for values, _, took_s in earlier)
    model = CostModel(plan, past)
    enter_engine = functools.partial(open_engine, engine, workers, master, conf, notice)
    batch = BatchResult(plan, engine, keeps_rows=out is None)
    if out is None:
        return _run_remaining(plan, batch, model, None, enter_engine, progress)
    created = make_directory(out)
    try:
        with locked(out):
            require_no_other_batch(out, overwrite=overwrite, resume=resume)
            store = BatchStore(out, plan, engine, resume=resume)
            for line in store.dropped:
                batch.notes.append(line)
                if notice is not None:
                    notice(line)
            _restore_finished_runs(store, out, plan, batch, model)
            return _run_remaining(plan, batch, model, store, enter_engine, progress)
    finally:
        if not batch.runs:
            remove_empty(created)


def _restore_finished_runs(
    store: BatchStore, out: Path, plan: BatchPlan, batch: BatchResult, model: CostModel
) -> None:
    """Add the runs that an earlier call has finished to the batch."""
    for row, histograms in store.read_done():
        batch.add(row, histograms)
    if store.done:
        by_id = {spec.run_id: spec for spec in plan.specs}
        for _, run_id, took_s in BatchTables(out).seconds():
            model.observe(by_id[run_id], took_s * 1000)


def _run_remaining(
    plan: BatchPlan,
    batch: BatchResult,
    model: CostModel,
    store: BatchStore | None,
    enter_engine: Callable[[], AbstractContextManager[Engine]],
    progress: Callable[[ProgressReport], object] | None,
) -> BatchResult:
    """Carry out the runs that are not done yet, and write their results."""
    done = frozenset() if store is None else store.done
    specs = model.longest_first(spec for spec in plan.specs if spec.run_id not in done)
    interruption: BaseException | None = None
    opened_at = started = time.perf_counter()
    if specs:
        by_id = {spec.run_id: spec for spec in specs}
        meter = ProgressMeter(model, specs, batch.runs, progress)
        try:
            with enter_engine() as running_engine:
                started = time.perf_counter()
                try:
                    for outcome in running_engine.run(SuiteWork(plan), specs):
                        spec = by_id.pop(outcome.row["run_id"])
                        with _signals_deferred():
                            batch.add(outcome.row, outcome.histograms)
                            if store is not None:
                                store.add(outcome)
                        model.observe(spec, outcome.wall_ms)
                        meter.count_run(spec)
                except (KeyboardInterrupt, SystemExit) as cause:
                    interruption = cause
                batch.wall_s = time.perf_counter() - started
        except (KeyboardInterrupt, SystemExit) as cause:  # while the engine started or stopped
            interruption = cause
        finally:
            if store is not None:
                with _signals_deferred():
                    store.flush()
    batch.setup_s = started - opened_at
    if store is not None and interruption is None:
        store.finish()
    elif store is not None and not batch.runs:
        store.remove()
    if interruption is not None:
        raise BatchEnded(batch, interruption)
    return batch


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Deliver SIGINT and SIGTERM after the block, so that a run is counted and stored, or neither.

    Python handles signals in the main thread only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handlers: dict[int, Any] = {}
    for deferred in (signal.SIGINT, signal.SIGTERM):
        handler = signal.getsignal(deferred)
        if handler is not None:  # a handler installed by C code could not be restored
            handlers[deferred] = handler
            signal.signal(deferred, lambda number, _frame: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in received:
            signal.raise_signal(number)
