"""Engines: the same runs in this process, in worker processes, or on Spark."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..protocol.errors import UsageError
from .runs import RunSpec, run_one

Progress = Callable[[int, int], object]
ENGINES = ("auto", "spark", "process", "serial")
"""What a batch can be asked to run on; ``auto`` is what ``choose_engine`` says."""


class Engine(Protocol):
    """Carries out runs; results may come in any order."""

    def run(self, specs: list[RunSpec], progress: Progress | None) -> Iterator[dict[str, Any]]: ...


class SerialEngine:
    """One run after the other, in this process."""

    def run(self, specs: list[RunSpec], progress: Progress | None) -> Iterator[dict[str, Any]]:
        for done, spec in enumerate(specs, 1):
            yield run_one(spec)
            if progress is not None:
                progress(done, len(specs))


class ProcessEngine:
    """One worker process per core; a run is handed out whenever a worker is free."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def run(self, specs: list[RunSpec], progress: Progress | None) -> Iterator[dict[str, Any]]:
        results = self._pool.imap_unordered(run_one, specs, chunksize=1)
        for done, result in enumerate(results, 1):
            yield result
            if progress is not None:
                progress(done, len(specs))


def java_problem() -> str | None:
    """Why Spark cannot start here; None when it can be tried."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install 'fakekafka[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return "there is no Java: install a Java 17 runtime or set JAVA_HOME"
    return None


def choose_engine() -> tuple[str, str]:
    """(engine, reason): Spark where it can run, else processes."""
    problem = java_problem()
    if problem is None:
        return "spark", "Java and pyspark are here"
    return "process", problem


@contextlib.contextmanager
def open_engine(name: str, workers: int | None = None) -> Iterator[Engine]:
    """An engine ready to run, closed afterwards.

    Raises ``UsageError`` for an unknown name, fewer than one worker, or for Spark where it cannot
    start.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    if name == "serial":
        yield SerialEngine()
    elif name == "process":
        # Started afresh: a forked child would inherit event loops and threads.
        context = multiprocessing.get_context("spawn")
        # Ctrl-C reaches every process of the terminal; the parent ends the workers.
        ignore = (signal.SIGINT, signal.SIG_IGN)
        with context.Pool(workers or os.cpu_count() or 1, signal.signal, ignore) as pool:
            yield ProcessEngine(pool)
    elif name == "spark":
        problem = java_problem()
        if problem is not None:
            raise UsageError(f"the spark engine cannot start: {problem}")
        from .spark_engine import SparkEngine

        with SparkEngine.open(workers) as engine:
            yield engine
    else:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(ENGINES)}")
