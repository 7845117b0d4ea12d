"""The Spark engine: one task per run, driven by ``spark.range``."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..protocol.errors import UsageError
from .runs import RunSpec, run_one

_POLL_S = 0.2
_END_S = 10
"""For a cancelled job to end: its workers come to the end of their Python code."""
_TASKS_PER_SLOT = 24
"""A task costs Spark some 20 ms, a tenth of a short run; so few runs share one. The last tasks
keep one slot waiting for at most about one part in so many of the whole."""
_LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
"""Given to the JVM at its start: it would greet with a screen of its own before any setting."""
_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j.configurationFile={_LOGGING}"
"""The JVM does little here, and its workers want every core: so no second compiler and no
collector on threads beside theirs."""
_frozen = False


def _run_partition(batches: Iterator[Any], specs: Any, spool: str) -> Iterator[Any]:
    """Worker side: run the specs whose ids arrive; results travel pickled, one row a run.

    A pickled column keeps the row types exactly as the other engines give them. Spark hands rows
    over when all tasks have ended; a batch that is ended before finds its runs in ``spool``.
    """
    import gc

    import pyarrow

    global _frozen
    if not _frozen:
        # Spark's worker collects garbage after every task; frozen modules make that cheap.
        gc.collect()
        gc.freeze()
        _frozen = True
    schema = pyarrow.schema([("run_id", pyarrow.int64()), ("result", pyarrow.binary())])
    for batch in batches:
        for run_id in batch.column(0).to_pylist():
            result = pickle.dumps(run_one(specs.value[run_id]))
            unfinished = Path(spool, f"{run_id}.tmp")
            unfinished.write_bytes(result)
            unfinished.replace(Path(spool, f"{run_id}.done"))
            yield pyarrow.RecordBatch.from_pydict(
                {"run_id": [run_id], "result": [result]}, schema=schema
            )


class SparkEngine:
    """A local Spark session with the settings that batches of simulations need."""

    def __init__(self, session: Any) -> None:
        self.session = session

    @classmethod
    @contextlib.contextmanager
    def open(cls, workers: int | None = None) -> Iterator[SparkEngine]:
        """Start a session and warm its workers up; stopped afterwards."""
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pyspark.sql import SparkSession

            builder = SparkSession.builder.master(f"local[{workers or '*'},4]").appName("fakekafka")
            settings = {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.worker.reuse": "true",
                "spark.python.worker.faulthandler.enabled": "true",
                "spark.speculation": "false",
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.memory": "2g",
                "spark.sql.session.timeZone": "UTC",
            }
            own_logging = "SPARK_CONF_DIR" in os.environ
            if not own_logging:
                settings["spark.driver.extraJavaOptions"] = _JVM_OPTIONS
            for name, value in settings.items():
                builder = builder.config(name, value)
            with contextlib.nullcontext() if own_logging else _jvm_apart():
                session = builder.getOrCreate()
        try:
            engine = cls(session)
            engine._warm_up()
            yield engine
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                session.stop()

    def _warm_up(self) -> None:
        """Have every worker process import the package before runs are timed."""
        slots = self.session.sparkContext.defaultParallelism
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.session.range(0, slots, 1, slots).mapInArrow(_import_all, "n long").collect()

    def run(
        self, specs: list[RunSpec], progress: Callable[[int, int], object] | None
    ) -> Iterator[dict[str, Any]]:
        context = self.session.sparkContext
        broadcast = context.broadcast(specs)
        count = len(specs)
        tasks = min(count, context.defaultParallelism * _TASKS_PER_SLOT)
        with (
            tempfile.TemporaryDirectory(prefix="fakekafka-batch-") as spool,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")

            def collect() -> Any:
                # spark.range is immune to adaptive coalescing, and keeps the order of the runs.
                return (
                    self.session.range(0, count, 1, tasks)
                    .mapInArrow(
                        lambda batches: _run_partition(batches, broadcast, spool),
                        "run_id long, result binary",
                    )
                    .toArrow()
                )

            job = _Job(collect)
            try:
                while not job.ended(_POLL_S):
                    if progress is not None:
                        self._tell(count, tasks, progress)
                table = job.result()
            except (KeyboardInterrupt, SystemExit):
                context.cancelAllJobs()
                for path in Path(spool).glob("*.done"):
                    yield pickle.loads(path.read_bytes())
                raise
            finally:
                job.ended(_END_S)
                broadcast.destroy()
        if progress is not None:
            progress(count, count)
        for value in table.column("result").to_pylist():
            yield pickle.loads(value)

    def _tell(self, count: int, tasks: int, progress: Callable[[int, int], object]) -> None:
        tracker = self.session.sparkContext.statusTracker()
        for stage in tracker.getActiveStageIds():
            info = tracker.getStageInfo(stage)
            if info is not None and info.numTasks == tasks:
                progress(info.numCompletedTasks * count // tasks, count)


class _Job:
    """A Spark job in a thread of its own: a signal would only reach a thread that waits for the
    JVM when the job has ended, and as an error of Spark's."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="spark-job", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error

    def ended(self, timeout_s: float) -> bool:
        """Wait for the end of the job, but no longer than that."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def result(self) -> Any:
        """What the job gave; raises its error."""
        if self._error is not None:
            raise self._error
        return self._value


@contextlib.contextmanager
def _jvm_apart() -> Iterator[None]:
    """A JVM started in here does not share our standard error.

    What it has to say arrives as a Python exception. On its own it writes warnings at its start,
    and stack traces when workers go at its end. Should it not start, its words are ours.
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


def _import_all(batches: Iterator[Any]) -> Iterator[Any]:
    from ..testing import simulation  # noqa: F401

    yield from batches
