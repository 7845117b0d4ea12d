"""Replays KAFKA-5642 in virtual time: published figures of the control plane, and the model's.

Since Kafka 1.1 the controller sends a window of ZooKeeper requests rather than one at a time. Each
run below is a whole cluster whose messages take the times in ``PUBLISHED_2018``; no formula adds
them up. "Synchronous" is the emulated version 0.10, whose controller works like that of 1.0 here.
"""

from __future__ import annotations

from benchmarks.figures import in_child, line, sized

CODE = """
import dataclasses, json, sys, time
from fakekafka.spark_bench.measuring.run import Run
from fakekafka.spark_bench.suites.large_clusters import failover_ms, loaded_cluster, shutdown_ms
from fakekafka.actors.network.costs import PUBLISHED_2018
what, version = sys.argv[1:3]
topics, partitions, factor, in_flight, logs = map(int, sys.argv[3:8])
costs = PUBLISHED_2018 if logs else dataclasses.replace(PUBLISHED_2018, logged_partition_ms=0.0)
started = time.perf_counter()
simulation = loaded_cluster(Run(0), costs, version, (topics, partitions, factor), in_flight)
measure = failover_ms if what == "failover" else shutdown_ms
print(json.dumps({"ms": measure(simulation), "wall_s": time.perf_counter() - started}))
"""
SYNCHRONOUS, PIPELINED = "0.10", "1.1"
LIMIT = 0.25
PART = 5
"""Times that are linear in the number of topics are measured with 1/PART of them, and scaled up."""
FAILOVERS = (((2_000, 50, 1), (28.0, 14.0)), ((100_000, 1, 1), (63.0, 17.0)))[: sized(2, 1)]
"""Topics, partitions and replicas; published seconds without and with the window."""
SHRUNK = sized(1, 200)
"""Divisor of every number of topics."""


def virtual_s(
    scenario: str,
    version: str,
    shape: tuple[int, int, int],
    in_flight: int = 10,
    logs: bool = False,
) -> float:
    """Return the seconds of virtual time that a failover or a controlled shutdown takes.

    With ``logs`` the cluster has its full size, as the cost of the log line is quadratic.
    """
    topics, partitions, factor = shape
    part = 1 if logs else PART
    topics //= part * SHRUNK
    outcome = in_child(CODE, scenario, version, topics, partitions, factor, in_flight, int(logs))
    return float(outcome["ms"]) * part / 1000


def _row(title: str, measured: tuple[float, float], published: tuple[float, float]) -> None:
    ratio, published_ratio = measured[0] / measured[1], published[0] / published[1]
    deviation = ratio / published_ratio - 1
    line(f"  {title}", f"{measured[0]:,.1f} s / {measured[1]:,.1f} s", "virtual time")
    line("    published", f"{published[0]:,.1f} s / {published[1]:,.1f} s")
    line(
        "    ratio, published ratio",
        f"{ratio:.2f}, {published_ratio:.2f}",
        f"{deviation:+.0%}, within {LIMIT:.0%}",
        abs(deviation) <= LIMIT,
    )


def measure() -> None:
    """Print the published pairs of figures beside the model's."""
    shape = (25_000, 1, 2)
    print("  controlled shutdown, 25,000 topics, RF 2: 10,000 replicas on the broker")
    logging = virtual_s("shutdown", SYNCHRONOUS, shape, logs=True)
    synchronous = virtual_s("shutdown", SYNCHRONOUS, shape)
    pipelined = virtual_s("shutdown", PIPELINED, shape)
    _row("1.0.0 / without the log line", (logging, synchronous), (390.0, 30.0))
    _row("without the log line / 1.1.0", (synchronous, pipelined), (30.0, 3.0))
    windows = [virtual_s("shutdown", PIPELINED, shape, in_flight) for in_flight in (1, 2)]
    _row("1.1: requests in flight 1 / 2", (windows[0], windows[1]), (9.7, 6.2))
    print("  controller failover, 100,000 partitions, RF 1")
    for shape, published in FAILOVERS:
        pair = (virtual_s("failover", SYNCHRONOUS, shape), virtual_s("failover", PIPELINED, shape))
        _row(f"synchronous / pipelined, {shape[0]:,} x {shape[1]}", pair, published)
