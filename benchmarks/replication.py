"""The cost of replication: throughput, CPU time and memory by replication factor.

The brokers run in one process, the client in another. Every round measures every factor, each round
begins with a different one, and medians are printed with their spread, so that other load on the
machine affects all factors alike. Both processes keep the memory they allocate, and the brokers'
process touches its memory beforehand: otherwise the first factor would pay for page faults that the
others do not have, which on virtual machines cost more than all the rest.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from typing import NamedTuple

from benchmarks.client import LoadClient
from benchmarks.figures import (
    in_child,
    line,
    mock_cluster,
    require_success,
    served_cluster,
    sized,
    spread,
)

FACTORS = sized((1, 2, 3, 5), (1, 3))
SIZE = 1000
PARTITIONS = 3

KEPT_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
}
"""Environment that lets glibc keep freed memory; without effect elsewhere."""

MEMORY = """
import gc, json, os, sys
from fakekafka import Cluster
def rss():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
factor, size, records, batches = map(int, sys.argv[1:])
batch = [b"x" * size] * records
with Cluster(brokers=5) as cluster:
    cluster.create_topic("bench", partitions=1, replication_factor=factor)
    for _ in range(batches // 4):  # until what does not grow with the log has its size
        cluster.produce("bench", batch)
    before = rss()
    for _ in range(batches):
        cluster.produce("bench", batch)
    cluster.wait_until(lambda: len({r.log_end_offset for r in
        cluster.partition("bench", 0)._replicas.values()}) == 1)
    after = rss()
    everything = len(cluster.log_bytes("bench", 0, cluster.partition("bench", 0).leader))
stored = everything * batches / (batches + batches // 4)
print(json.dumps({"ratio": (after - before) / stored}))
"""

MEMORY_FACTORS = sized((1, 3, 5), (3,))
MEMORY_LOADS = sized(
    ((1000, 1000, 40, 1.1), (1000, 1, 12_000, 1.1), (100, 1, 40_000, None)),
    ((1000, 1000, 4, 1.1), (1000, 1, 100, 1.1), (100, 1, 100, None)),
)
"""Bytes per record, records per batch, batches, and the target, if any. A batch costs a few dozen
bytes on top of its own, which matters only for tiny ones."""


def measure() -> None:
    """Print the figures of every factor, compared with RF 1."""
    command = [sys.executable, "-m", "benchmarks.replication"]
    environment = {**os.environ, **KEPT_MEMORY}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    require_success(done, done.stderr)
    for size, records, batches, target in MEMORY_LOADS:
        for factor in MEMORY_FACTORS:
            memory = in_child(MEMORY, factor, size, records, batches)["ratio"]
            line(
                f"memory per stored byte, {size} B, {records} a batch, RF {factor}",
                f"{memory:.3f}",
                "" if target is None else f"<= {target}",
                None if target is None else memory <= target,
            )


# -- the process of the brokers -------------------------------------------------------------------


class _Load(NamedTuple):
    """The load of a comparison of factors."""

    factors: tuple[int, ...]
    rounds: int
    records: int
    batch_bytes: int


LARGE = _Load(FACTORS, sized(4, 1), sized(300_000, 10_000), 1_000_000)
SMALL = _Load((1, 3), sized(3, 1), sized(60_000, 10_000), 16_384)
"""Loads with the default batch sizes of librdkafka, and of the Java client, which sends 15 of these
records per request."""


class _Figures:
    """The figures of one factor, a value per round."""

    def __init__(self) -> None:
        self.produce_per_s: list[float] = []
        self.fetch_per_s: list[float] = []
        self.produce_cpu_ms: list[float] = []
        """Broker CPU time in milliseconds per MB of records."""
        self.fetch_cpu_ms: list[float] = []
        self.produce_client: list[float] = []
        """Number of CPU cores that the client kept busy."""
        self.fetch_client: list[float] = []

    @property
    def fetch_to_produce(self) -> list[float]:
        return [f / p for f, p in zip(self.fetch_per_s, self.produce_per_s, strict=True)]


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _measure_once(client: LoadClient, topic: str, records: int, figures: _Figures) -> None:
    before_s = _cpu_s()
    produced = client.produce(topic, PARTITIONS, SIZE, records)
    between_s = _cpu_s()
    fetched = client.fetch(topic, PARTITIONS)
    after_s = _cpu_s()
    assert produced["records"] == records, produced
    assert fetched["records"] == records + PARTITIONS, fetched
    megabytes = records * SIZE / 1e6
    figures.produce_per_s.append(records / produced["seconds"])
    figures.fetch_per_s.append(fetched["timed_records"] / fetched["seconds"])
    figures.produce_cpu_ms.append((between_s - before_s) / megabytes * 1e3)
    figures.fetch_cpu_ms.append((after_s - between_s) / megabytes * 1e3)
    figures.produce_client.append(produced["cpu_s"] / produced["seconds"])
    figures.fetch_client.append(fetched["cpu_s"] / fetched["seconds"])


def _run_rounds(load: _Load) -> dict[int, _Figures]:
    factors = load.factors
    figures = {factor: _Figures() for factor in factors}
    with (
        served_cluster(brokers=max(FACTORS)) as cluster,
        LoadClient(cluster.bootstrap_servers, load.batch_bytes) as client,
    ):

        def run(factor: int, figures: _Figures) -> None:
            topic = f"bench-{factor}"
            cluster.create_topic(topic, partitions=PARTITIONS, replication_factor=factor)
            _measure_once(client, topic, load.records, figures)
            cluster.delete_topic(topic)

        run(factors[-1], _Figures())  # to warm up
        for number in range(load.rounds):
            first = number % len(factors)
            for factor in factors[first:] + factors[:first]:
                run(factor, figures[factor])
        assert not cluster.failures, cluster.failures
    return figures


def _print_client_alone() -> None:
    with mock_cluster() as servers, LoadClient(servers) as client:
        client.produce("warm", PARTITIONS, SIZE, LARGE.records)
        produced = client.produce("bench", PARTITIONS, SIZE, LARGE.records)
    line(
        "this client against librdkafka's mock, 1 kB, acks=all",
        f"{LARGE.records / produced['seconds'] / 1e3:,.0f} k/s",
    )
    line("  cores the client keeps busy", f"{produced['cpu_s'] / produced['seconds']:.2f}")


def _print_factor(factor: int, figures: _Figures) -> None:
    line(f"produce, RF {factor}, k/s", spread([rate / 1e3 for rate in figures.produce_per_s], 0))
    line("  broker CPU time per MB, ms", spread(figures.produce_cpu_ms, 2))
    line("  cores the client keeps busy", spread(figures.produce_client, 2))
    line("fetch, k/s", spread([rate / 1e3 for rate in figures.fetch_per_s], 0))
    line("  broker CPU time per MB, ms", spread(figures.fetch_cpu_ms, 2))
    line("  cores the client keeps busy", spread(figures.fetch_client, 2))
    ratio = statistics.median(figures.fetch_to_produce)
    line("  fetch / produce", spread(figures.fetch_to_produce, 2), ">= 1.0", ratio >= 1.0)


def _print_cost(base: _Figures, replicated: _Figures, title: str, target: float | None) -> None:
    pairs = zip(replicated.produce_per_s, base.produce_per_s, strict=True)
    costs = [1 - rate / base_rate for rate, base_rate in pairs]
    cost = 1 - statistics.median(replicated.produce_per_s) / statistics.median(base.produce_per_s)
    line(
        f"replication costs of produce throughput, {title}",
        f"{cost:.0%} ({min(costs):.0%} to {max(costs):.0%})",
        "" if target is None else f"<= {target:.0%}",
        None if target is None else cost <= target,
    )


def main() -> None:
    """Measure and print the throughput of all factors."""
    touched = [b"x" * (1 << 20) for _ in range(2 * LARGE.records * SIZE >> 20)]
    del touched
    print("  medians over rounds (least-most); 1 kB records, acks=all, batches up to 1 MB")
    _print_client_alone()
    figures = _run_rounds(LARGE)
    for factor, factor_figures in figures.items():
        _print_factor(factor, factor_figures)
    for factor in FACTORS[1:]:
        target = 0.25 if factor == 3 else None
        _print_cost(figures[1], figures[factor], f"RF 1 to RF {factor}", target)
    print("  the same with batches up to 16 kB, where requests cost more than bytes")
    small = _run_rounds(SMALL)
    for factor, factor_figures in small.items():
        _print_factor(factor, factor_figures)
    _print_cost(small[1], small[3], "RF 1 to RF 3", None)


if __name__ == "__main__":
    main()
