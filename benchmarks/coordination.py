"""How long a group takes to rebalance and a transaction to commit, in produce round trips.

The clients are confluent-kafka in another process. ``KAFKA_SERVERS`` names a cluster of real Kafka
to measure beside this one: ``KAFKA_SERVERS=127.0.0.1:9092 make bench NAMES=coordination``.
"""

from __future__ import annotations

import os

from benchmarks.common import in_child, line, served_cluster

REBALANCES = 10
TRANSACTIONS = 200
REBALANCE_MS_MAX = 100

ROUND_TRIP = """
import json, statistics, sys, time, uuid
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
servers, rounds = {"bootstrap.servers": sys.argv[1], "log_level": 0}, int(sys.argv[2])
topic = "bench-" + uuid.uuid4().hex[:8]
admin = AdminClient(servers)
admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(30)
def sent(producer):
    done = []
    producer.produce(topic, b"x" * 100, partition=0, on_delivery=lambda e, m: done.append(e))
    while not done:
        producer.poll(1)
    assert done == [None], done
plain = Producer({**servers, "acks": "all", "linger.ms": 0})
trips = []
for _ in range(300):
    started = time.perf_counter()
    sent(plain)
    trips.append(time.perf_counter() - started)
found = {"round_trip_ms": statistics.median(trips[100:]) * 1e3}
"""

REBALANCE = """
def poll_until(members, condition):
    deadline = time.perf_counter() + 60
    while not condition():
        assert time.perf_counter() < deadline
        for member in members:
            member.poll(0.0005)
taken = []
for number in range(rounds):
    group = f"g-{uuid.uuid4().hex[:8]}"
    owned = {}
    def join(name):
        member = Consumer({**servers, "group.id": group, "heartbeat.interval.ms": 10,
                           "session.timeout.ms": 10000, "auto.offset.reset": "earliest"})
        member.subscribe([topic],
                         on_assign=lambda _, parts: owned.__setitem__(name, len(parts)),
                         on_revoke=lambda *_: owned.pop(name, None))
        return member
    members = [join(0), join(1)]
    poll_until(members, lambda: sorted(owned.values()) == [1, 2])
    started = time.perf_counter()
    members.append(join(2))
    poll_until(members, lambda: sorted(owned.values()) == [1, 1, 1])
    taken.append(time.perf_counter() - started)
    for member in members:
        member.close()
found["ms"] = statistics.median(taken) * 1e3
print(json.dumps(found))
"""

COMMIT = """
producer = Producer({**servers, "transactional.id": f"t-{uuid.uuid4().hex[:8]}", "linger.ms": 0})
producer.init_transactions(30)
taken = []
for _ in range(rounds):
    producer.begin_transaction()
    sent(producer)
    started = time.perf_counter()
    producer.commit_transaction(30)
    taken.append(time.perf_counter() - started)
found["ms"] = statistics.median(taken[rounds // 5:]) * 1e3
print(json.dumps(found))
"""


def _report(whose: str, servers: str, ms_max: float | None) -> None:
    rebalance = in_child(ROUND_TRIP + REBALANCE, servers, REBALANCES)
    fits = None if ms_max is None else rebalance["ms"] <= ms_max
    target = "" if ms_max is None else f"<= {ms_max} ms"
    line(f"{whose}: third member joins, median", f"{rebalance['ms']:.1f} ms", target, fits)
    _line_in_trips(rebalance)
    commit = in_child(ROUND_TRIP + COMMIT, servers, TRANSACTIONS)
    line(f"{whose}: commit of a transaction, median", f"{commit['ms']:.2f} ms")
    _line_in_trips(commit)


def _line_in_trips(found: dict[str, float]) -> None:
    trip_ms = found["round_trip_ms"]
    line("  in produce round trips", f"{found['ms'] / trip_ms:.1f} of {trip_ms:.2f} ms")


def measure() -> None:
    """Print medians of this cluster, and of real Kafka where there is one."""
    with served_cluster(brokers=3) as cluster:
        _report("fakekafka", cluster.bootstrap_servers, REBALANCE_MS_MAX)
    if "KAFKA_SERVERS" in os.environ:
        _report("Kafka", os.environ["KAFKA_SERVERS"], None)
