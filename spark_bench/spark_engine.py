"""The Spark engine: one task per run, driven by ``spark.range`` (bench reference 4)."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .suite import RunSpec, run_one

_POLL_S = 0.2
_TASKS_PER_SLOT = 24
"""A task costs Spark some 20 ms, a tenth of a short run; so few runs share one. The last tasks
keep one slot waiting for at most about one part in so many of the whole."""
_LOGGING = (Path(__file__).parent / "log4j2.properties").as_uri()
"""Given to the JVM at its start: it would greet with a screen of its own before any setting."""
_JVM_OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j.configurationFile={_LOGGING}"
"""The JVM does little here, and its workers want every core: so no second compiler and no
collector on threads beside theirs."""
_frozen = False


def _run_partition(batches: Iterator[Any], specs: Any) -> Iterator[Any]:
    """Worker side: run the specs whose ids arrive; results travel pickled, one row a run.

    A pickled column keeps the row types exactly as the other engines give them.
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
            if "SPARK_CONF_DIR" not in os.environ:
                settings["spark.driver.extraJavaOptions"] = _JVM_OPTIONS
            for name, value in settings.items():
                builder = builder.config(name, value)
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
        done = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(count, tasks, progress, done), daemon=True
        )
        if progress is not None:
            watcher.start()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # spark.range is immune to adaptive coalescing, and keeps the order of the runs.
                table = (
                    self.session.range(0, count, 1, tasks)
                    .mapInArrow(
                        lambda batches: _run_partition(batches, broadcast),
                        "run_id long, result binary",
                    )
                    .toArrow()
                )
        finally:
            done.set()
            if progress is not None:
                watcher.join()
            broadcast.destroy()
        if progress is not None:
            progress(count, count)
        for value in table.column("result").to_pylist():
            yield pickle.loads(value)

    def _watch(
        self,
        count: int,
        tasks: int,
        progress: Callable[[int, int], object],
        done: threading.Event,
    ) -> None:
        tracker = self.session.sparkContext.statusTracker()
        while not done.wait(_POLL_S):
            for stage in tracker.getActiveStageIds():
                info = tracker.getStageInfo(stage)
                if info is not None and info.numTasks == tasks:
                    progress(info.numCompletedTasks * count // tasks, count)


def _import_all(batches: Iterator[Any]) -> Iterator[Any]:
    from ..testing import simulation  # noqa: F401

    yield from batches
