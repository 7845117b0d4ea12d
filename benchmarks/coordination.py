"""Durations of a group's rebalance and a transaction's commit, in produce round trips.

All figures are medians. The clients are in another process: confluent-kafka, and plain sockets for
members that join a new generation at once, whereas libraries wait for their timers.
``KAFKA_SERVERS`` names a cluster of real Kafka to be measured as well:
``KAFKA_SERVERS=127.0.0.1:9092 make bench NAMES=coordination``.
"""

from __future__ import annotations

import os

from benchmarks.figures import in_child, line, served_cluster, sized

REBALANCES = sized(10, 1)
TRANSACTIONS = sized(200, 5)
REBALANCE_MS_MAX = 100

ROUND_TRIP = """
import json, statistics, sys, time, uuid
from confluent_kafka import Consumer, Producer, TopicPartition
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
figures = {"round_trip_ms": statistics.median(trips[100:]) * 1e3}
"""

MEMBERS = """
import socket, struct
def text(value):
    return struct.pack(">h", len(value)) + value
def data(value):
    return struct.pack(">i", len(value)) + value
class Member:
    name = b""
    def __init__(self, group, host, port):
        self.group, self.socket = text(group), socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def send(self, key, version, body):
        self.socket.sendall(data(struct.pack(">hhih", key, version, 0, -1) + body))
    def read(self):
        size, = struct.unpack(">i", self.socket.recv(4, socket.MSG_WAITALL))
        self.left = self.socket.recv(size, socket.MSG_WAITALL)[4:]
    def take(self, kind):
        value, = struct.unpack_from(kind, self.left)
        self.left = self.left[struct.calcsize(kind):]
        return value
    def take_text(self):
        size = self.take(">h")
        value, self.left = self.left[:size], self.left[size:]
        return value
    def coordinator(self):
        self.send(10, 0, self.group)
        self.read()
        return self.take(">h"), (self.take(">i"), self.take_text(), self.take(">i"))[1:]
    def join(self):
        times = struct.pack(">ii", 30000, 30000)
        protocols = struct.pack(">i", 1) + text(b"range") + data(b"")
        self.send(11, 2, self.group + times + text(self.name) + text(b"consumer") + protocols)
    def joined(self):
        self.read()
        _, error = self.take(">i"), self.take(">h")
        self.generation, _ = self.take(">i"), self.take_text()
        self.leader, self.name = self.take_text(), self.take_text()
        return error
    def sync(self, members):
        assigned = b"".join(text(member.name) + data(b"mine") for member in members)
        count = len(members) if self.name == self.leader else 0
        self.send(14, 0, self.group + struct.pack(">i", self.generation) + text(self.name)
                  + struct.pack(">i", count) + (assigned if count else b""))
    def heartbeat(self):
        self.send(12, 0, self.group + struct.pack(">i", self.generation) + text(self.name))
        return self.error()
    def error(self):
        self.read()
        return self.take(">h")
def rebalance(members, new):
    new.join()
    for member in members:
        while member.heartbeat() != 27:  # REBALANCE_IN_PROGRESS
            pass
        member.join()
    everybody = [*members, new]
    assert [member.joined() for member in everybody] == [0] * len(everybody)
    for member in everybody:
        member.sync(everybody)
    assert [member.error() for member in everybody] == [0] * len(everybody)
bootstrap = sys.argv[1].split(",")[0].rpartition(":")
times_s = []
for number in range(rounds):
    group = f"g-{uuid.uuid4().hex[:8]}".encode()
    while True:
        error, at = Member(group, bootstrap[0], int(bootstrap[2])).coordinator()
        if not error:
            break
        time.sleep(0.05)
    members = [Member(group, *at) for _ in range(3)]
    while True:
        members[0].join()
        if not members[0].joined():
            break
        time.sleep(0.05)  # the coordinator loads
    members[0].sync(members[:1])
    assert members[0].error() == 0
    rebalance(members[:1], members[1])
    started = time.perf_counter()
    rebalance(members[:2], members[2])
    times_s.append(time.perf_counter() - started)
figures["ms"] = statistics.median(times_s) * 1e3
print(json.dumps(figures))
"""

REBALANCE = """
def poll_until(members, condition):
    deadline = time.perf_counter() + 60
    while not condition():
        assert time.perf_counter() < deadline
        for member in members:
            member.poll(0.0005)
times_s = []
for number in range(rounds):
    group = f"g-{uuid.uuid4().hex[:8]}"
    owned = {}
    def connected():
        member = Consumer({**servers, "group.id": group, "heartbeat.interval.ms": 10,
                           "session.timeout.ms": 10000, "auto.offset.reset": "earliest"})
        member.committed([TopicPartition(topic, 0)], 30)
        return member
    def join(name):
        members[name].subscribe([topic],
            on_assign=lambda _, parts: owned.__setitem__(name, len(parts)),
            on_revoke=lambda *_: owned.pop(name, None))
    members = [connected() for _ in range(3)]
    join(0)
    join(1)
    poll_until(members, lambda: sorted(owned.values()) == [1, 2])
    started = time.perf_counter()
    join(2)
    poll_until(members, lambda: sorted(owned.values()) == [1, 1, 1])
    times_s.append(time.perf_counter() - started)
    for member in members:
        member.close()
figures["ms"] = statistics.median(times_s) * 1e3
print(json.dumps(figures))
"""

COMMIT = """
producer = Producer({**servers, "transactional.id": f"t-{uuid.uuid4().hex[:8]}", "linger.ms": 0})
producer.init_transactions(30)
times_s = []
for _ in range(rounds):
    producer.begin_transaction()
    sent(producer)
    started = time.perf_counter()
    producer.commit_transaction(30)
    times_s.append(time.perf_counter() - started)
figures["ms"] = statistics.median(times_s[rounds // 5:]) * 1e3
print(json.dumps(figures))
"""


def _report(name: str, servers: str, ms_max: float | None) -> None:
    joined = in_child(ROUND_TRIP + MEMBERS, servers, REBALANCES)
    is_in_target = None if ms_max is None else joined["ms"] <= ms_max
    target = "" if ms_max is None else f"<= {ms_max} ms"
    line(
        f"{name}: third member joins, all rejoin at once",
        f"{joined['ms']:.2f} ms",
        target,
        is_in_target,
    )
    _line_in_trips(joined)
    rebalance = in_child(ROUND_TRIP + REBALANCE, servers, REBALANCES)
    line(f"{name}: the same with confluent-kafka", f"{rebalance['ms']:.1f} ms")
    commit = in_child(ROUND_TRIP + COMMIT, servers, TRANSACTIONS)
    line(f"{name}: commit of a transaction", f"{commit['ms']:.2f} ms")
    _line_in_trips(commit)


def _line_in_trips(figures: dict[str, float]) -> None:
    trip_ms = figures["round_trip_ms"]
    line("  in produce round trips", f"{figures['ms'] / trip_ms:.1f} of {trip_ms:.2f} ms")


def measure() -> None:
    """Print medians of fakekafka, and of real Kafka if there is a cluster."""
    with served_cluster(brokers=3) as cluster:
        _report("fakekafka", cluster.bootstrap_servers, REBALANCE_MS_MAX)
    if "KAFKA_SERVERS" in os.environ:
        _report("Kafka", os.environ["KAFKA_SERVERS"], None)
