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
from .spark_session import first_line, refusing_to_start, start_session
from .spark_worker import SCHEMA, import_all, run_places, ship_package

_JOBS = 2
_JOB_S = 8.0
"""Seconds of work in one job, for each slot."""
TASK_S = 0.4
"""Seconds of work up to which short runs share a task, as a task costs Spark some 10 ms."""
_MOST_TASKS = 64
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
        tell = notice or (lambda _text: None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            existing = SparkSession.getActiveSession()
            if existing is None:
                if master is not None and not master.startswith("local"):
                    tell(f"connects to Spark's master {master}")
                with refusing_to_start(master):
                    session = start_session(SparkSession, workers, master, conf or {})
            elif workers or master or conf:
                raise UsageError(
                    "there is a Spark session already, whose master and settings stay as they are: "
                    "leave workers, master and conf out"
                )
            else:
                session = existing
        try:
            engine = cls(session)
            with refusing_to_start(master):
                engine._prepare(tell)
            yield engine
        finally:
            if existing is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    session.stop()

    def _prepare(self, tell: Callable[[str], object]) -> None:
        """Send the package to workers that may lack it, and let every worker import it."""
        slow_at = time.monotonic() + _SLOW_START_S
        ship_package(self.session.sparkContext)
        with ThreadPoolExecutor(1, "spark-start") as pool:
            warmed = pool.submit(self._warm_up)
            while not warmed.done():
                wait([warmed], _POLL_S)
                if time.monotonic() >= slow_at:
                    slow_at = math.inf
                    tell("waits until Spark has started a worker; its master shows whether it can")
            warmed.result()

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
        places = {spec.run_id: place for place, spec in enumerate(work.specs)}
        shipped = context.broadcast(work)
        tag = f"fakekafka-{work.batch_id}"
        model = work.costs()
        waiting = list(specs)[::-1]
        jobs: dict[Future[list[Outcome]], list[NumberedRun]] = {}
        pool = ThreadPoolExecutor(_JOBS, "spark-job")
        try:
            while waiting or jobs:
                while waiting and len(jobs) < _JOBS:
                    own = self._next_job(waiting, model)
                    numbers = [places[spec.run_id] for spec in own]
                    task_count = self._task_count(own, model)
                    jobs[pool.submit(self._job, shipped, numbers, task_count, tag)] = own
                # The main thread handles signals only when it wakes up from time to time.
                ended, _ = wait(jobs, _POLL_S, FIRST_COMPLETED)
                for job in ended:
                    own = jobs.pop(job)
                    for outcome in self._outcomes(job, own, work, shipped, places, tag):
                        model.observe(work.specs[places[outcome.row["run_id"]]], outcome.wall_ms)
                        yield outcome
        except BaseException:
            context.cancelJobsWithTag(tag)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            shipped.destroy()

    def _next_job(self, waiting: list[NumberedRun], model: RunCosts) -> list[NumberedRun]:
        """Take runs for some seconds of work from the end of the waiting ones."""
        own: list[NumberedRun] = []
        work_s = 0.0
        while waiting and len(own) < _MOST_TASKS * self.slots:
            if work_s >= _JOB_S * self.slots and len(own) >= self.slots:
                break
            own.append(waiting.pop())
            work_s += model.estimate_s(own[-1])
        return own

    def _task_count(self, own: list[NumberedRun], model: RunCosts) -> int:
        work_s = sum(model.estimate_s(spec) for spec in own)
        return max(1, min(len(own), max(int(work_s / TASK_S), 4 * self.slots)))

    def _job(self, shipped: Any, numbers: list[int], tasks: int, tag: str) -> list[Outcome]:
        """Carry out one action, which does each of its runs once."""
        self._count_slots()
        self.session.sparkContext.addJobTag(tag)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # spark.range is not subject to adaptive coalescing, and keeps the order of the runs.
            table = (
                self.session.range(0, len(numbers), 1, tasks)
                .mapInArrow(lambda batches: run_places(batches, shipped, numbers), SCHEMA)
                .toArrow()
            )
        return [pickle.loads(result) for result in table.column("result").to_pylist()]

    def _outcomes(
        self,
        job: Future[list[Outcome]],
        own: list[NumberedRun],
        work: Work,
        shipped: Any,
        places: dict[int, int],
        tag: str,
    ) -> Iterator[Outcome]:
        """Yield the results of a job. If it failed although Spark retried it, one of its runs kills
        its worker: then carry out the runs one by one."""
        error = job.exception()
        if error is None:
            yield from job.result()
            return
        self._require_going(error)
        for spec in own:
            try:
                yield from self._job(shipped, [places[spec.run_id]], 1, tag)
            except Exception as alone:
                self._require_going(alone)
                told = first_line(alone)
                yield work.lost(spec, f"its worker died each time it was tried: {told}")

    def _require_going(self, error: BaseException) -> None:
        """Raise ``UsageError`` if Spark itself failed, rather than a run."""
        try:
            self.session.range(1).count()
        except Exception:
            raise UsageError(f"Spark has ended: {first_line(error)}") from None
