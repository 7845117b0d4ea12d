"""Fault exploration: runs per second, the cost of invariants, and the speedup by more cores."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection

from benchmarks.figures import IS_SMALL, line, sized

RUNS = sized(60, 2)
ENGINE_RUNS = sized(480, 4)
ROUNDS = sized(3, 1)
VERSION = "3.9"
COST_MAX = 0.40
"""Maximum share of a run's time for all invariants together."""


def measure() -> None:
    """Print runs per second of one core, the invariants' share, and the speedup by each engine."""
    line("cores, load before", f"{os.cpu_count()}, {os.getloadavg()[0]:.2f}")
    _run_all(2, None)  # to import modules before the measurement
    watched_s, bare_s = 0.0, 0.0
    for _ in range(ROUNDS):  # in turn, as the speed of the machine may change
        watched_s += _run_all(RUNS, None)
        bare_s += _run_all(RUNS, frozenset())
    line(f"runs of {VERSION} a second and core", f"{ROUNDS * RUNS / watched_s:.2f}")
    share = 1 - bare_s / watched_s
    target = f"<= {COST_MAX:.0%}"
    line("  of that time all invariants", f"{share:.0%}", target, share <= COST_MAX)
    _measure_engines()


def _run_all(runs: int, only: Collection[str] | None) -> float:
    """Return the CPU time of the runs of the first ``runs`` seeds."""
    from fakekafka.exploration.campaign import Trial, target_of
    from fakekafka.exploration.history import run

    began_s = time.process_time()
    for seed in range(1, runs + 1):
        trial = Trial(seed, target_of(seed, VERSION), seed)
        run(trial.history(VERSION), only=only)
    return time.process_time() - began_s


def _measure_engines() -> None:
    """Compare an exploration in one process, in one process per core, and on Spark."""
    from fakekafka.spark_bench.engines.engine import java_problem

    # At the small size each start of Spark takes longer than all runs together.
    problem = "it takes long to start" if IS_SMALL else java_problem()
    if problem:
        line("  Spark is not measured", problem)
    serial_s, expected = _explored("serial")
    cores = os.cpu_count() or 1
    for engine in ("process",) if problem else ("process", "spark"):
        elapsed_s, results = _explored(engine)
        share = serial_s / elapsed_s / cores
        line(f"  {engine} on {cores} cores, share of linear", f"{share:.0%}")
        line("    results equal", str(results == expected), "True", results == expected)


def _explored(engine: str) -> tuple[float, object]:
    """Return the seconds of an exploration without the start of its engine, and its results."""
    from fakekafka.exploration.explorer import ClusterExploration, explore
    from fakekafka.exploration.settings import Settings
    from fakekafka.spark_bench.engines.engine import open_engine

    exploration = ClusterExploration(Settings(VERSION, 1, ENGINE_RUNS))
    with open_engine(engine) as opened:
        began_s = time.perf_counter()
        explore(exploration, lambda: contextlib.nullcontext(opened))
        elapsed_s = time.perf_counter() - began_s
    return elapsed_s, (sorted(exploration.reached), exploration.counts, exploration.figures)
