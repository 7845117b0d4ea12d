"""Time that the pytest fixtures add to a test, and duration of ``reset``."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.figures import line, require_success, sized

TESTS = sized(100, 2)
ROUNDS = sized(30, 1)
FIXTURES = sized(("shared_kafka_cluster", "kafka_cluster", "kafka_simulation"), ("kafka_cluster",))

_SUITE = """
import pytest

@pytest.mark.kafka(topics={{"orders": 3}})
@pytest.mark.parametrize("number", range({tests}))
def test_one({fixture}number):
    pass
"""


_CONFTEST = """
import json, statistics

durations_s = {{}}

def pytest_runtest_logreport(report):
    if report.when != "call":
        durations_s[report.nodeid] = durations_s.get(report.nodeid, 0) + report.duration

def pytest_sessionfinish():
    with open("durations.json", "w") as out:
        json.dump(statistics.median(durations_s.values()), out)
"""


def _each_ms(fixture: str) -> float:
    """Return the median time of set-up and tear-down of an empty test with a fixture."""
    with tempfile.TemporaryDirectory() as directory:
        source = _SUITE.format(tests=TESTS, fixture=fixture and f"{fixture}, ")
        (Path(directory) / "test_fixture.py").write_text(source)
        (Path(directory) / "conftest.py").write_text(_CONFTEST.format())
        (Path(directory) / "pytest.ini").write_text("[pytest]\n")
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command = [sys.executable, "-m", "pytest", *options, directory]
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        require_success(done, done.stdout + done.stderr)
        return float(json.loads((Path(directory) / "durations.json").read_text())) * 1000


def _resets_ms(has_transactions: bool) -> list[float]:
    from confluent_kafka import Consumer, Producer
    from fakekafka import Cluster

    durations_ms = []
    with Cluster(brokers=3) as cluster:
        for number in range(ROUNDS):
            cluster.create_topic("orders", partitions=3, replication_factor=3)
            cluster.produce("orders", [b"value"] * 10)
            if has_transactions:
                servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
                transactional = Producer({**servers, "transactional.id": f"t{number}"})
                transactional.init_transactions(10)
                transactional.begin_transaction()
                transactional.produce("orders", b"value")
                transactional.commit_transaction(10)
                consumer = Consumer(
                    {**servers, "group.id": f"g{number}", "auto.offset.reset": "earliest"}
                )
                consumer.subscribe(["orders"])
                assert consumer.poll(10) is not None
                consumer.close()
                del transactional, consumer
            started = time.perf_counter()
            cluster.reset()
            durations_ms.append((time.perf_counter() - started) * 1000)
    return durations_ms


def measure() -> None:
    """Print the cost of each fixture over a test without one, and of ``reset``."""
    bare_ms = _each_ms("")
    for fixture in FIXTURES:
        each_ms = _each_ms(fixture) - bare_ms
        target = 25 if fixture == "shared_kafka_cluster" else None
        line(
            f"{fixture}, a topic of 3 partitions, each test",
            f"{each_ms:.1f} ms",
            "<= 25 ms" if target else "",
            each_ms <= target if target else None,
        )
    for setup, has_transactions in (("a topic", False), ("a topic, a group, a transaction", True)):
        median_ms = statistics.median(_resets_ms(has_transactions))
        line(f"reset() after {setup}, median", f"{median_ms:.1f} ms", "<= 10 ms", median_ms <= 10)
