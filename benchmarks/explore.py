"""Fault exploration: runs a second, what its invariants cost, and what processes gain."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Collection

from benchmarks.figures import line, sized

RUNS = sized(60, 2)
ROUNDS = sized(3, 1)
VERSION = "3.9"
COST_MAX = 0.40
"""Of the time of a run, all invariants together."""


def measure() -> None:
    """Print runs a second of one core, the invariants' share, and processes beside one process."""
    line("cores, load before", f"{os.cpu_count()}, {os.getloadavg()[0]:.2f}")
    _run_all(2, None)  # what is imported only once
    watched_s, bare_s = 0.0, 0.0
    for _ in range(ROUNDS):  # in turn, as the machine may change
        watched_s += _run_all(RUNS, None)
        bare_s += _run_all(RUNS, frozenset())
    line(f"runs of {VERSION} a second and core", f"{ROUNDS * RUNS / watched_s:.2f}")
    share = 1 - bare_s / watched_s
    told = f"<= {COST_MAX:.0%}"
    line("  of that time all invariants", f"{share:.0%}", told, share <= COST_MAX)
    _measure_processes()


def _run_all(runs: int, only: Collection[str] | None) -> float:
    """Processor time of the runs of so many seeds."""
    from fakekafka.exploration.campaign import Trial, target_of
    from fakekafka.exploration.history import run

    began_s = time.process_time()
    for seed in range(1, runs + 1):
        trial = Trial(seed, target_of(seed, VERSION), seed)
        run(trial.history(VERSION), only=only)
    return time.process_time() - began_s


def _measure_processes() -> None:
    """The same exploration in one process and in as many as there are cores."""
    from fakekafka.exploration.explorer import ClusterExploration, explore
    from fakekafka.exploration.settings import Settings
    from fakekafka.spark_bench.engines.engine import open_engine

    took_s, found = {}, {}
    for engine in ("serial", "process"):
        began_s = time.perf_counter()
        settings = Settings(VERSION, 1, RUNS)
        exploration = ClusterExploration(settings)
        explore(exploration, functools.partial(open_engine, engine))
        took_s[engine] = time.perf_counter() - began_s
        found[engine] = (sorted(exploration.reached), exploration.counts, exploration.figures)
    cores = os.cpu_count() or 1
    share = took_s["serial"] / took_s["process"] / cores
    line(f"  {cores} processes, share of linear", f"{share:.0%}")
    same = found["serial"] == found["process"]
    line("    results equal", str(same), "True", same)
