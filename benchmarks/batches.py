"""A batch of failovers on Spark against the same batch in one process, and memory of batches."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import IS_SMALL, in_child, line, sized

RUNS = sized(500, 4)
SHAPE: dict[str, Any] = {"session_timeout_ms": 6000, "rate_per_s": 100}
"""Parameters with which a run takes about 0.2 s."""
SPARK_SHARE = 0.58
"""Target for Spark on two cores, as a share of the time in one process: half, plus overhead."""
TASK_MS = 15
TASKS = sized(1000, 10)
FEW, MANY = sized((100, 5000), (2, 4))
GROWN_MB = 60

WIDE = '''"""Results of the usual size, and no simulation."""
def scenario(run):
    for place in range(300):
        run.sample("response_ms", 1.03**place)
    for number in range(30):
        run.value(f"figure_{number}", number)
'''
EMPTY = '"""Nothing."""\ndef scenario(run): pass\n'
TASK_EACH = """
import json, sys
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.engines import spark
if sys.argv[3] == "alone":
    spark.TASK_S = 1e-9  # short runs share no task
batch = run_suite(sys.argv[1], runs=int(sys.argv[2]), engine="spark")
print(json.dumps(batch.wall_s))
"""
DRIVER = """
import json, re, resource, sys
from pathlib import Path
from fakekafka.spark_bench.batch import run_suite
suite, runs, engine, out = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
jvm_kb = [0]
def look(_report):
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes()
            status = (process / "status").read_text() if b"SparkSubmit" in words else ""
        except OSError:
            continue
        found = re.search(r"VmHWM:\\s+(\\d+)", status)
        if found and b"fakekafka" in words:
            jvm_kb[0] = max(jvm_kb[0], int(found[1]))
run_suite(suite, runs=runs, engine=engine, out=out, progress=look)
own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([own_kb / 1024, jvm_kb[0] / 1024]))
"""


def measure() -> None:
    """Print wall times without the start of the engine, whether the rows agree, and memory."""
    from fakekafka.spark_bench.engines.engine import java_problem

    # At the small size each start of Spark takes longer than all runs together.
    problem = "it takes long to start" if IS_SMALL else java_problem()
    engines = ["process"] if problem else ["spark", "process"]
    if problem:
        line("Spark is not measured", problem)
    _measure_times(engines)
    with tempfile.TemporaryDirectory() as folder:
        if not problem:
            _measure_tasks(Path(folder))
        _measure_memory(Path(folder), ["serial"] if problem else ["serial", "spark"])


def _measure_times(engines: list[str]) -> None:
    """Measure all engines. Half of the serial runs come before the others and half after, as the
    speed of the machine may change."""
    from fakekafka.spark_bench.batch import run_suite

    def run(engine: str, runs: int, seed: int) -> Any:
        return run_suite("failover", runs=runs, seed=seed, engine=engine, matrix={}, **SHAPE)

    line("cores, load before", f"{os.cpu_count()}, {os.getloadavg()[0]:.2f}")
    half = RUNS // 2
    first = run("serial", half, 0)
    others = {engine: run(engine, RUNS, 0) for engine in engines}
    second = run("serial", RUNS - half, half)
    serial_s = first.wall_s + second.wall_s
    halves = f"({first.wall_s:.1f} s before, {second.wall_s:.1f} s after the others)"
    line(f"failover x {RUNS}, serial", f"{serial_s:.1f} s", halves)
    rows = [_without_place(row) for row in (*first.rows, *second.rows)]
    for engine, batch in others.items():
        ratio = batch.wall_s / serial_s
        target = (f"<= {SPARK_SHARE}", ratio <= SPARK_SHARE) if engine == "spark" else ("", None)
        line(f"  {engine} ({batch.setup_s:.1f} s to start)", f"{batch.wall_s:.1f} s")
        line("    ratio to serial", f"{ratio:.3f}", *target)
        is_same = [_without_place(row) for row in batch.rows] == rows
        line("    rows equal", str(is_same), "True", is_same)


def _without_place(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its number in the batch."""
    return {name: value for name, value in row.items() if name != "run_id"}


def _measure_tasks(folder: Path) -> None:
    """Measure Spark's overhead with empty runs, each in a task of its own, and sharing tasks.

    The figure of a task is the wall time of the batch divided by the number of tasks. The time that
    a task takes on its core is that multiplied by the number of cores, which work in parallel.
    """
    suite = folder / "nothing.py"
    suite.write_text(EMPTY)
    alone_ms = in_child(TASK_EACH, suite, TASKS, "alone") / TASKS * 1000
    line("  a task", f"{alone_ms:.1f} ms", f"<= {TASK_MS} ms", alone_ms <= TASK_MS)
    line("    of a core's time", f"{alone_ms * (os.cpu_count() or 1):.1f} ms")
    shared_ms = in_child(TASK_EACH, suite, TASKS, "shared") / TASKS * 1000
    line("    where many short runs share a task, a run", f"{shared_ms:.1f} ms")


def _measure_memory(folder: Path, engines: list[str]) -> None:
    """Measure the peak memory of the driver, in small and large batches with tables."""
    suite = folder / "wide.py"
    suite.write_text(WIDE)
    for engine in engines:
        few, many = (
            in_child(DRIVER, suite, runs, engine, folder / f"{engine}-{runs}")
            for runs in (FEW, MANY)
        )
        for place, name in enumerate(("Python", "JVM") if engine == "spark" else ("Python",)):
            line(f"  memory of the driver, {engine}, {name}: {FEW} and {MANY:,} runs",
                 f"{few[place]:.0f} MB, {many[place]:.0f} MB")  # fmt: skip
            grown = many[place] - few[place]
            line("    grown by", f"{grown:.0f} MB", f"<= {GROWN_MB} MB", grown <= GROWN_MB)
