"""The Spark engine: one task per run or few runs, driven by ``spark.range``.

A batch is several jobs, each of some seconds of work, two of which run at a time. So results reach
the driver while the batch goes on, no slot idles until the last task of a job has ended, and the
driver never holds more than two jobs' results. Each run is part of one job, and a job is one
action.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from ...protocol.errors import UsageError
from ..planning.carry_out import Outcome
from ..planning.numbered_runs import NumberedRun, RunCosts, Work
from .spark_session import first_line, reporting_start_errors, start_session
from .spark_worker import SCHEMA, import_all, run_indices, ship_package

_CONCURRENT_JOBS = 2
_JOB_S = 8.0
"""Seconds of work in one job, for each slot."""
TASK_S = 0.4
"""Seconds of work up to which short runs share a task, as a task costs Spark some 10 ms."""
_RUNS_PER_JOB_MAX = 64
"""Maximum number of runs in a job, for each slot."""
_POLL_S = 0.2
_SLOW_START_S = 20.0
"""Seconds after which the user is told that Spark has not started a worker yet."""


class SparkEngine:
    """A Spark session: the user's own, or one with the settings that batches need."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.slots: int = 1
        """Number of concurrent runs. Counted by the threads that start jobs: Spark's handler of
        Ctrl-C would interfere with a call from the main thread to the JVM."""

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        workers: int | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        notice: Callable[[str], object] | None = None,
    ) -> Iterator[SparkEngine]:
        """Use the active session, or start one that is stopped afterwards."""
        notify = notice or (lambda _text: None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            existing = SparkSession.getActiveSession()
            if existing is None:
                if master is not None and not master.startswith("local"):
                    notify(f"connecting to Spark's master {master}")
                with reporting_start_errors(master):
                    session = start_session(SparkSession, workers, master, conf or {})
            elif workers or master or conf:
                raise UsageError(
                    "a Spark session is already active, and its master and settings cannot "
                    "be changed: omit workers, master and conf"
                )
            else:
                session = existing
        try:
            engine = cls(session)
            with reporting_start_errors(master):
                engine._prepare(notify)
            yield engine
        finally:
            if existing is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    session.stop()

    def _prepare(self, notify: Callable[[str], object]) -> None:
        """Send the package to workers that may lack it, and let every worker import it."""
        slow_at = time.monotonic() + _SLOW_START_S
        ship_package(self.session.sparkContext)
        with ThreadPoolExecutor(1, "spark-start") as pool:
            warm_up = pool.submit(self._warm_up)
            while not warm_up.done():
                wait([warm_up], _POLL_S)
                if time.monotonic() >= slow_at:
                    slow_at = math.inf
                    notify(
                        "waiting for Spark to start a worker; its master lists available workers"
                    )
            warm_up.result()

    def _warm_up(self) -> None:
        self._count_slots()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tasks = self.session.range(0, self.slots, 1, self.slots)
            tasks.mapInArrow(import_all, "id long").collect()

    def _count_slots(self) -> None:
        """Update the number of slots, as executors come and go."""
        self.slots = max(1, int(self.session.sparkContext.defaultParallelism))

    def run(self, work: Work, specs: Sequence[NumberedRun]) -> Iterator[Outcome]:
        context = self.session.sparkContext
        indices = {spec.run_id: index for index, spec in enumerate(work.specs)}
        shipped = context.broadcast(work)
        tag = f"fakekafka-{work.batch_id}"
        model = work.costs()
        waiting = list(specs)[::-1]
        jobs: dict[Future[list[Outcome]], list[NumberedRun]] = {}
        pool = ThreadPoolExecutor(_CONCURRENT_JOBS, "spark-job")
        try:
            while waiting or jobs:
                while waiting and len(jobs) < _CONCURRENT_JOBS:
                    job_specs = self._take_job_specs(waiting, model)
                    numbers = [indices[spec.run_id] for spec in job_specs]
                    task_count = self._task_count(job_specs, model)
                    jobs[pool.submit(self._job, shipped, numbers, task_count, tag)] = job_specs
                # The main thread handles signals only when it wakes up from time to time.
                ended, _ = wait(jobs, _POLL_S, FIRST_COMPLETED)
                for job in ended:
                    job_specs = jobs.pop(job)
                    for outcome in self._outcomes(job, job_specs, work, shipped, indices, tag):
                        model.observe(work.specs[indices[outcome.row["run_id"]]], outcome.wall_ms)
                        yield outcome
        except BaseException:
            context.cancelJobsWithTag(tag)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            shipped.destroy()

    def _take_job_specs(self, waiting: list[NumberedRun], model: RunCosts) -> list[NumberedRun]:
        """Take runs for some seconds of work from the end of the waiting ones."""
        job_specs: list[NumberedRun] = []
        work_s = 0.0
        while waiting and len(job_specs) < _RUNS_PER_JOB_MAX * self.slots:
            if work_s >= _JOB_S * self.slots and len(job_specs) >= self.slots:
                break
            job_specs.append(waiting.pop())
            work_s += model.estimate_s(job_specs[-1])
        return job_specs

    def _task_count(self, job_specs: list[NumberedRun], model: RunCosts) -> int:
        work_s = sum(model.estimate_s(spec) for spec in job_specs)
        return max(1, min(len(job_specs), max(int(work_s / TASK_S), 4 * self.slots)))

    def _job(self, shipped: Any, numbers: list[int], tasks: int, tag: str) -> list[Outcome]:
        """Carry out one action, which does each of its runs once."""
        self._count_slots()
        self.session.sparkContext.addJobTag(tag)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # spark.range is not subject to adaptive coalescing, and keeps the order of the runs.
            table = (
                self.session.range(0, len(numbers), 1, tasks)
                .mapInArrow(lambda batches: run_indices(batches, shipped, numbers), SCHEMA)
                .toArrow()
            )
        return [pickle.loads(result) for result in table.column("result").to_pylist()]

    def _outcomes(
        self,
        job: Future[list[Outcome]],
        job_specs: list[NumberedRun],
        work: Work,
        shipped: Any,
        indices: dict[int, int],
        tag: str,
    ) -> Iterator[Outcome]:
        """Yield the results of a job. If it failed although Spark retried it, one of its runs kills
        its worker: then carry out the runs one by one."""
        error = job.exception()
        if error is None:
            yield from job.result()
            return
        self._require_running(error)
        for spec in job_specs:
            try:
                yield from self._job(shipped, [indices[spec.run_id]], 1, tag)
            except Exception as alone:
                self._require_running(alone)
                reason = first_line(alone)
                yield work.lost(spec, f"its worker died at each attempt: {reason}")

    def _require_running(self, error: BaseException) -> None:
        """Raise ``UsageError`` if Spark itself failed, rather than a run."""
        try:
            self.session.range(1).count()
        except Exception:
            raise UsageError(f"Spark has stopped: {first_line(error)}") from None
