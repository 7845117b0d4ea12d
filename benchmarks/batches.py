"""A batch of failovers on Spark against the same batch in one process."""

from __future__ import annotations

from benchmarks.common import line

RUNS = 200


def measure() -> None:
    """Print wall times without the start of the engine, and whether the rows agree."""
    from fakekafka.spark_bench.batch import run_suite
    from fakekafka.spark_bench.engines import java_problem

    serial = run_suite("failover", runs=RUNS, engine="serial")
    line(f"failover x {RUNS}, serial", f"{serial.wall_s:.1f} s")
    engines = ["process"] if java_problem() else ["process", "spark"]
    for engine in engines:
        batch = run_suite("failover", runs=RUNS, engine=engine)
        ratio = batch.wall_s / serial.wall_s
        target = ("<= 0.65", ratio <= 0.65) if engine == "spark" else ("", None)
        line(f"  {engine} ({batch.setup_s:.1f} s to start)", f"{batch.wall_s:.1f} s")
        line("    ratio to serial", f"{ratio:.2f}", *target)
        line("    rows equal", str(batch.rows == serial.rows), "True", batch.rows == serial.rows)
