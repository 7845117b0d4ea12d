"""Time from ``Cluster(brokers=3)`` to the first answered Metadata request."""

from __future__ import annotations

import statistics
import time

from benchmarks.figures import line, sized

ROUNDS = sized(9, 1)


def _ours() -> float:
    from confluent_kafka.admin import AdminClient
    from fakekafka import Cluster

    started = time.perf_counter()
    cluster = Cluster(brokers=3)
    cluster.start()
    ready = time.perf_counter()
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    metadata = client.list_topics(timeout=10)
    elapsed = time.perf_counter() - started
    assert len(metadata.brokers) == 3
    cluster.stop()
    _READY.append((ready - started) * 1000)
    return elapsed * 1000


_READY: list[float] = []


def _mock() -> float:
    from confluent_kafka import Producer

    started = time.perf_counter()
    client = Producer({"test.mock.num.brokers": 3, "bootstrap.servers": "unused"})
    metadata = client.list_topics(timeout=10)
    elapsed = time.perf_counter() - started
    assert len(metadata.brokers) == 3
    return elapsed * 1000


def measure() -> None:
    """Print the medians of fakekafka and of librdkafka's mock cluster."""
    _ours()  # to import modules before the measurement
    _READY.clear()
    ours = [_ours() for _ in range(ROUNDS)]
    mock = [_mock() for _ in range(ROUNDS)]
    median = statistics.median(ours)
    line("Cluster(brokers=3) ready, median", f"{statistics.median(_READY):.1f} ms")
    line("  to the first Metadata answered, median", f"{median:.1f} ms", "<= 40 ms", median <= 40)
    line("librdkafka's mock cluster, the same", f"{statistics.median(mock):.1f} ms")
