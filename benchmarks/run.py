"""``make bench``: the important figures, each beside a baseline measured in the same run.

python benchmarks/run.py [NAME ...]     run all or some of the measurements
python benchmarks/run.py --list         list the measurements

BENCH_SIZE=small runs everything at a small size, to check that it works: the figures mean nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from benchmarks import (
    batches,
    client_failover,
    connections,
    coordination,
    cost_model,
    explore,
    fixtures,
    memory,
    produce,
    programs,
    replication,
    scale,
    soak,
    start,
    storage,
    traces,
    views,
    virtual,
)
from benchmarks.figures import IS_SMALL, MeasurementFailed

MEASUREMENTS: dict[str, Callable[[], None]] = {
    "start": start.measure,
    "throughput": produce.measure_throughput,
    "latency": produce.measure_latency,
    "virtual": virtual.measure,
    "programs": programs.measure,
    "traces": traces.measure,
    "views": views.measure,
    "memory": memory.measure,
    "soak": soak.measure,
    "replication": replication.measure,
    "storage": storage.measure,
    "scale": scale.measure,
    "cost-model": cost_model.measure,
    "batches": batches.measure,
    "explore": explore.measure,
    "fixtures": fixtures.measure,
    "client-failover": client_failover.measure,
    "connections": connections.measure,
    "coordination": coordination.measure,
}


def main(names: list[str]) -> int:
    """Run the named measurements; return status 1 if one failed, 2 for an unknown name."""
    if names == ["--list"]:
        print("\n".join(MEASUREMENTS))
        return 0
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join(MEASUREMENTS)}")
        return 2
    chosen = names or list(MEASUREMENTS)
    if len(chosen) > 1:
        # Run each in a process of its own: the leftovers of one (a JVM, modules for the collector
        # to traverse, fragmented memory) make the next one up to twice as slow.
        commands = [[sys.executable, "-m", "benchmarks.run", name] for name in chosen]
        # Run all, even after a failure. The status of a killed process is negative.
        statuses = [subprocess.run(command, check=False).returncode for command in commands]
        return int(any(statuses))
    size = ", at a small size: the figures say nothing" if IS_SMALL else ""
    print(f"\n== {chosen[0]}{size}", flush=True)
    try:
        MEASUREMENTS[chosen[0]]()
    except MeasurementFailed as failure:
        print(f"{chosen[0]}: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
