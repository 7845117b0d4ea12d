"""A batch of failovers on Spark against the same batch in one process, and what a batch keeps."""

from __future__ import annotations

import tempfile
from typing import Any

from benchmarks.common import in_child, line

RUNS = 500
SHAPE: dict[str, Any] = {"session_timeout_ms": 6000, "rate_per_s": 100}
"""About 0.2 s a run."""
SPARK_SHARE = 0.58
"""Of the time in one process, with two cores: half of it, and what Spark costs."""
TASK_MS = 15

KEEPS = """
import json, resource, sys
from pathlib import Path
from fakekafka.spark_bench.engines.engine import SerialEngine
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench import batch
runs, out = int(sys.argv[1]), Path(sys.argv[2])
first = {}
def again(self, plan, specs):  # the results of many runs, without their time
    for spec in specs:
        if not first:
            first["outcome"] = carry_out(plan, spec)
        outcome = first["outcome"]
        outcome.row = {**outcome.row, "run_id": spec.run_id, "seed": spec.seed}
        yield outcome
SerialEngine.run = again
batch.run_suite("failover", runs=runs, engine="serial", out=out, matrix={}, **SHAPE)
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
""".replace("SHAPE", repr(SHAPE))
EMPTY = '"""Nothing."""\ndef scenario(run): pass\n'


def measure() -> None:
    """Print wall times without the start of the engine, and whether the rows agree."""
    from pathlib import Path

    from fakekafka.spark_bench.batch import run_suite
    from fakekafka.spark_bench.engines.engine import java_problem

    serial = run_suite("failover", runs=RUNS, engine="serial", matrix={}, **SHAPE)
    line(f"failover x {RUNS}, serial", f"{serial.wall_s:.1f} s")
    engines = ["process"] if java_problem() else ["process", "spark"]
    for engine in engines:
        batch = run_suite("failover", runs=RUNS, engine=engine, matrix={}, **SHAPE)
        ratio = batch.wall_s / serial.wall_s
        target = (f"<= {SPARK_SHARE}", ratio <= SPARK_SHARE) if engine == "spark" else ("", None)
        line(f"  {engine} ({batch.setup_s:.1f} s to start)", f"{batch.wall_s:.1f} s")
        line("    ratio to serial", f"{ratio:.2f}", *target)
        line("    rows equal", str(batch.rows == serial.rows), "True", batch.rows == serial.rows)
    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder, "nothing.py")
        suite.write_text(EMPTY)
        if "spark" in engines:
            nothing = run_suite(str(suite), runs=2000, engine="spark")
            task_ms = nothing.wall_s / 2000 * 1000
            line("  a run of nothing", f"{task_ms:.1f} ms", f"<= {TASK_MS} ms", task_ms <= TASK_MS)
        few, many = (float(in_child(KEEPS, str(n), f"{folder}/{n}")) for n in (100, 5000))
        grown = many - few
        line("  memory of the driver, 100 and 5,000 runs", f"{few:.0f} MB, {many:.0f} MB")
        line("    grown by", f"{grown:.0f} MB", "<= 60 MB", grown <= 60)
