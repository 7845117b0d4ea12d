"""Engines: the same runs in this process, in worker processes, or on Spark."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from ...protocol.errors import UsageError
from ..planning.carry_out import Outcome
from ..planning.numbered_runs import NumberedRun, Work

ENGINES = ("auto", "spark", "process", "serial")
"""The engines on which a batch can run; ``auto`` is resolved by ``choose_engine``."""


class Engine(Protocol):
    """Carries out runs, and yields each result once, in any order."""

    def run(self, work: Work, specs: Sequence[NumberedRun]) -> Iterator[Outcome]:
        """Carry out runs, starting them in the given order."""
        ...


class SerialEngine:
    """An engine that carries out one run after the other in this process."""

    def run(self, work: Work, specs: Sequence[NumberedRun]) -> Iterator[Outcome]:
        for spec in specs:
            yield work.carry_out(spec, f"process {os.getpid()}")


def java_problem() -> str | None:
    """Return the reason why Spark cannot start here; None if it may be able to."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install 'fakekafka[spark]'"
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return (
            "there is no Java: install a Java 17 runtime (on Debian openjdk-17-jre-headless) or "
            "set JAVA_HOME"
        )
    return None


def choose_engine() -> tuple[str, str]:
    """Return (engine, reason): Spark if it can run, else processes."""
    problem = java_problem()
    if problem is None:
        return "spark", "Java and pyspark are here"
    return "process", problem


@contextlib.contextmanager
def open_engine(
    name: str,
    workers: int | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    notice: Callable[[str], object] | None = None,
) -> Iterator[Engine]:
    """Open an engine, and close it at the end of the block.

    ``master`` and ``conf`` are passed to Spark: a cluster, and settings of the session. ``notice``
    is called with a text when the engine waits for a cluster.

    Raises ``UsageError`` for an unknown name, fewer than one worker, or if Spark cannot start.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be at least 1, not {workers}")
    if name != "spark" and (master or conf):
        raise UsageError(f"a master and settings belong to the engine spark, not to {name}")
    if name == "serial":
        yield SerialEngine()
    elif name == "process":
        from .process import ProcessEngine

        with ProcessEngine.open(workers) as process_engine:
            yield process_engine
    elif name == "spark":
        problem = java_problem()
        if problem is not None:
            raise UsageError(f"the spark engine cannot start: {problem}")
        from .spark import SparkEngine

        with SparkEngine.open(workers, master, conf, notice) as spark_engine:
            yield spark_engine
    else:
        raise UsageError(f"there is no engine {name!r}; there are {', '.join(ENGINES)}")
