"""The Spark engine: one task per run or few runs, driven by ``spark.range``.

A batch is several jobs, each of some seconds of work, two of them under way at a time. So results
reach the driver while the batch goes on, no task waits for the last one of a job, and the driver
never holds more than two jobs' results. Each run is part of one job, and a job is one action.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from ...protocol.errors import UsageError
from ..planning.carry_out import Outcome, lost_outcome
from ..planning.plan import BatchPlan, RunSpec
from ..planning.schedule import CostModel
from .spark_worker import SCHEMA, import_all, run_places, ship_package

_JOBS = 2
_JOB_S = 8.0
"""Work of one job, for each slot."""
TASK_S = 0.4
"""Short runs share a task until it is so long: a task costs Spark some 10 ms."""
_MOST_TASKS = 64
"""Of a job, for each slot."""
_POLL_S = 0.2
_LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
"""Given to the JVM at its start: it would greet with a screen of its own before any setting."""
_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j.configurationFile={_LOGGING}"
"""The JVM does little here, and its workers want every core: so no second compiler and no
collector on threads beside theirs."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.worker.reuse": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    "spark.speculation": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "10",
}
"""Workers over Unix sockets, which saves 20 ms a task; no second copy of a run that is slow; a
short memory of what was done, which the driver keeps also without a user interface."""


class SparkEngine:
    """A Spark session: the user's own, or one with the settings that batches need."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.slots = 1
        """Runs that go on at a time. The main thread asks the JVM for nothing while it waits:
        what Spark does at Ctrl-C would break into the question."""

    @classmethod
    @contextlib.contextmanager
    def open(
        cls,
        workers: int | None = None,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
    ) -> Iterator[SparkEngine]:
        """Use the active session, or start one that is stopped afterwards."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            existing = SparkSession.getActiveSession()
            if existing is None:
                session = _start(SparkSession, workers, master, conf or {})
            elif workers or master or conf:
                raise UsageError(
                    "there is a Spark session already, whose master and settings stay as they are: "
                    "leave workers, master and conf out"
                )
            else:
                session = existing
        try:
            engine = cls(session)
            engine._prepare()
            yield engine
        finally:
            if existing is None:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    session.stop()

    def _prepare(self) -> None:
        """Ship the package where it may be missing, and have every worker import it."""
        ship_package(self.session.sparkContext)
        with ThreadPoolExecutor(1, "spark-start") as pool:
            warmed = pool.submit(self._warm_up)
            while not warmed.done():
                wait([warmed], _POLL_S)
            warmed.result()

    def _warm_up(self) -> None:
        self._count_slots()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tasks = self.session.range(0, self.slots, 1, self.slots)
            tasks.mapInArrow(import_all, "id long").collect()

    def _count_slots(self) -> None:
        """Executors come and go."""
        self.slots = max(1, int(self.session.sparkContext.defaultParallelism))

    def run(self, plan: BatchPlan, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
        context = self.session.sparkContext
        places = {spec.run_id: place for place, spec in enumerate(plan.specs)}
        shipped = context.broadcast(plan)
        tag = f"fakekafka-{plan.batch_id}"
        model = CostModel(plan)
        waiting = list(specs)[::-1]
        jobs: dict[Future[list[Outcome]], list[RunSpec]] = {}
        pool = ThreadPoolExecutor(_JOBS, "spark-job")
        try:
            while waiting or jobs:
                while waiting and len(jobs) < _JOBS:
                    own = self._next_job(waiting, model)
                    numbers = [places[spec.run_id] for spec in own]
                    task_count = self._task_count(own, model)
                    jobs[pool.submit(self._job, shipped, numbers, task_count, tag)] = own
                # A signal reaches only a thread that wakes up now and then.
                ended, _ = wait(jobs, _POLL_S, FIRST_COMPLETED)
                for job in ended:
                    own = jobs.pop(job)
                    for outcome in self._outcomes(job, own, plan, shipped, places, tag):
                        model.observe(plan.specs[places[outcome.row["run_id"]]], outcome.wall_ms)
                        yield outcome
        except BaseException:
            context.cancelJobsWithTag(tag)
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            shipped.destroy()

    def _next_job(self, waiting: list[RunSpec], model: CostModel) -> list[RunSpec]:
        """Runs for some seconds, taken from the end of those that wait."""
        own: list[RunSpec] = []
        work_s = 0.0
        while waiting and len(own) < _MOST_TASKS * self.slots:
            if work_s >= _JOB_S * self.slots and len(own) >= self.slots:
                break
            own.append(waiting.pop())
            work_s += model.estimate_s(own[-1])
        return own

    def _task_count(self, own: list[RunSpec], model: CostModel) -> int:
        work_s = sum(model.estimate_s(spec) for spec in own)
        return max(1, min(len(own), max(int(work_s / TASK_S), 4 * self.slots)))

    def _job(self, shipped: Any, numbers: list[int], tasks: int, tag: str) -> list[Outcome]:
        """One action: every run of it once."""
        self._count_slots()
        self.session.sparkContext.addJobTag(tag)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # spark.range is immune to adaptive coalescing, and keeps the order of the runs.
            table = (
                self.session.range(0, len(numbers), 1, tasks)
                .mapInArrow(lambda batches: run_places(batches, shipped, numbers), SCHEMA)
                .toArrow()
            )
        return [pickle.loads(result) for result in table.column("result").to_pylist()]

    def _outcomes(
        self,
        job: Future[list[Outcome]],
        own: list[RunSpec],
        plan: BatchPlan,
        shipped: Any,
        places: dict[int, int],
        tag: str,
    ) -> Iterator[Outcome]:
        """The results of a job. If it failed, those of its runs one by one: Spark has tried them
        several times, and one of them takes its worker along."""
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
                told = _first_line(alone)
                yield lost_outcome(plan, spec, f"its worker died each time it was tried: {told}")

    def _require_going(self, error: BaseException) -> None:
        """Raise ``UsageError`` if Spark itself failed and not a run."""
        try:
            self.session.range(1).count()
        except Exception:
            raise UsageError(f"Spark has ended: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _start(
    session_class: Any, workers: int | None, master: str | None, conf: Mapping[str, str]
) -> Any:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    is_local = master is None or master.startswith("local")
    settings = dict(SETTINGS)
    if is_local:
        # Workers of this machine are this interpreter, whatever PATH says.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings |= LOCAL_SETTINGS
    own_logging = "SPARK_CONF_DIR" in os.environ
    if not own_logging:
        settings["spark.driver.extraJavaOptions"] = _JVM_OPTIONS
    builder = session_class.builder.master(master or f"local[{workers or '*'},4]")
    for name, value in {"spark.app.name": "fakekafka", **settings, **conf}.items():
        builder = builder.config(name, value)
    with contextlib.nullcontext() if own_logging else _jvm_apart():
        return builder.getOrCreate()


@contextlib.contextmanager
def _jvm_apart() -> Iterator[None]:
    """A JVM started in here does not share our standard error.

    What it has to say arrives as a Python exception. On its own it writes warnings at its start,
    and stack traces when workers go at its end. If it does not start, its output becomes ours.
    """
    with tempfile.TemporaryFile() as words:
        sys.stderr.flush()
        ours = os.dup(2)
        os.dup2(words.fileno(), 2)
        try:
            yield
        except Exception as error:
            words.seek(0)
            told = words.read().decode(errors="replace").strip() or str(error)
            raise UsageError(f"the spark engine cannot start: {told}") from None
        finally:
            os.dup2(ours, 2)
            os.close(ours)
