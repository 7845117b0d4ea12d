"""Produce throughput and latency of confluent-kafka in another process, RF 3, acks=all."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.client import LoadClient
from benchmarks.figures import in_child, line, mock_cluster, served_cluster, sized, spread

TOPIC = "bench"
ROUNDS = sized(5, 1)
LOADS = sized(((100, 500_000), (1000, 200_000)), ((100, 2000), (1000, 2000)))
"""Pairs of bytes per record and number of records."""
TIMED = sized(3000, 50)

THROUGHPUT = """
import json, sys, time
from confluent_kafka import Producer
servers, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
partitions = int(sys.argv[4])
p = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5,
              "batch.size": 1000000, "queue.buffering.max.messages": 10000000,
              "queue.buffering.max.kbytes": 2000000})
acked = [0]
def delivered(error, message):
    if error is None:
        acked[0] += 1
value = b"x" * size
p.produce("bench", value, partition=0); p.flush()
started = time.perf_counter()
for i in range(count):
    while True:
        try:
            p.produce("bench", value, partition=i % partitions, on_delivery=delivered)
            break
        except BufferError:
            p.poll(0.01)
    if i % 1000 == 0:
        p.poll(0)
p.flush()
elapsed = time.perf_counter() - started
print(json.dumps({"elapsed": elapsed, "acked": acked[0]}))
"""

COUNT = """
import json, sys
from confluent_kafka import Consumer, TopicPartition
c = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "enable.partition.eof": True,
              "auto.offset.reset": "earliest", "enable.auto.commit": False})
partitions = int(sys.argv[2])
c.assign([TopicPartition("bench", n, 0) for n in range(partitions)])
read, ended = 0, set()
while len(ended) < partitions:
    for m in c.consume(10000, 1.0):
        if m.error() is None:
            read += 1
        else:
            ended.add(m.partition())
print(json.dumps({"read": read}))
"""


def throughput(servers: str, size: int, count: int, partitions: int = 3) -> dict[str, Any]:
    """Produce ``count`` records and read them back, each in a process of its own."""
    produced = in_child(THROUGHPUT, servers, size, count, partitions)
    read = in_child(COUNT, servers, partitions)
    kept = min(1.0, read["read"] / (produced["acked"] + 1))
    return {
        "records_per_s": count / produced["elapsed"],
        "kept": kept,
    }


def measure_throughput() -> None:
    """Print medians over rounds for records of 100 B and 1 kB, in turns with librdkafka's mock."""
    for size, count in LOADS:
        mock_results, results = [], []
        for _ in range(ROUNDS):
            with mock_cluster() as servers:
                mock_results.append(throughput(servers, size, count))
            with served_cluster(brokers=3) as cluster:
                cluster.create_topic(TOPIC, partitions=3, replication_factor=3)
                results.append(throughput(cluster.bootstrap_servers, size, count))
                assert not cluster.failures, cluster.failures
        rates = [result["records_per_s"] for result in results]
        mock_rates = [result["records_per_s"] for result in mock_results]
        ratio = statistics.median(rates) / statistics.median(mock_rates)
        line(f"{size} B, RF 3, acks=all: ours, k/s", spread([rate / 1e3 for rate in rates], 0))
        line("  ours, MB/s", f"{statistics.median(rates) * size / 1e6:,.0f}")
        line("  librdkafka's mock, k/s", spread([rate / 1e3 for rate in mock_rates], 0))
        line("  ratio of the medians", f"{ratio:.2f}", ">= 0.5", ratio >= 0.5)
        kept = min(result["kept"] for result in results)
        line(
            "  kept and readable: ours, mock",
            f"{kept:.1%}, {max(result['kept'] for result in mock_results):.1%}",
            "ours 100 %",
            kept == 1.0,
        )


def measure_latency() -> None:
    """Print the latency of one record at a time, with acks=all and RF 3."""
    with mock_cluster() as servers, LoadClient(servers) as client:
        mock = client.time_records(TOPIC, TIMED)
    with served_cluster(brokers=3) as cluster:
        cluster.create_topic(TOPIC, partitions=1, replication_factor=3)
        with LoadClient(cluster.bootstrap_servers) as client:
            ours = client.time_records(TOPIC, TIMED)
    line(
        "one record at a time, RF 3, acks=all: median",
        f"{ours['median_us']:.0f} us",
        "<= 350 us",
        ours["median_us"] <= 350,
    )
    line("  99th percentile", f"{ours['p99_us']:.0f} us")
    line("  librdkafka's mock: median", f"{mock['median_us']:.0f} us")
