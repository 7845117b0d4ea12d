"""What replication costs: throughput and memory over replication factors, fetch against produce."""

from __future__ import annotations

from benchmarks.common import in_child, line, served_cluster
from benchmarks.produce import TOPIC, throughput

RECORDS = 200_000
SIZE = 1000
FACTORS = (1, 2, 3, 5)

MEMORY = """
import gc, json, os, sys
from fakekafka import Cluster
def rss():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
factor = int(sys.argv[1])
batch = [b"x" * 1000] * 1000
with Cluster(brokers=5) as cluster:
    cluster.create_topic("bench", partitions=1, replication_factor=factor)
    cluster.produce("bench", batch)
    before, stored = rss(), len(cluster.log_bytes("bench", 0, cluster.partition("bench", 0).leader))
    for _ in range(100):
        cluster.produce("bench", batch)
    leader = cluster.partition("bench", 0).leader
    cluster.wait_until(lambda: len({r.log_end_offset for r in
        cluster.partition("bench", 0)._replicas.values()}) == 1)
    after = rss()
    stored = len(cluster.log_bytes("bench", 0, leader)) - stored
print(json.dumps({"ratio": (after - before) / stored}))
"""


def measure() -> None:
    """Print every factor beside RF 1."""
    rates: dict[int, float] = {}
    for factor in FACTORS:
        with served_cluster(brokers=5) as cluster:
            cluster.create_topic(TOPIC, partitions=3, replication_factor=factor)
            outcome = throughput(cluster.bootstrap_servers, SIZE, RECORDS)
        rates[factor] = outcome["records_per_s"]
        ratio = outcome["fetch_per_s"] / outcome["records_per_s"]
        line(f"produce, RF {factor}, 1 kB, acks=all", f"{rates[factor] / 1e3:,.0f} k/s")
        line("  fetch / produce", f"{ratio:.2f}", ">= 1.0", ratio >= 1.0)
    cost = 1 - rates[3] / rates[1]
    line("  replication costs, RF 1 to RF 3", f"{cost:.0%}", "<= 25 %", cost <= 0.25)
    for factor in (1, 3, 5):
        memory = in_child(MEMORY, factor)["ratio"]
        line(f"memory per stored byte, RF {factor}", f"{memory:.2f}", "<= 1.1", memory <= 1.1)
