"""Consumers that subscribe: members join, leave and die, and so does their coordinator."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from fakekafka import Cluster
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS
from fakekafka.tests.support.present import present

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]
RECORDS = 30


@pytest.fixture(params=JUDGED_VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(3, topics={"t": 6}, kafka_version=request.param) as cluster:
        for number in range(RECORDS):
            cluster.produce("t", str(number), partition=number % 6)
        yield cluster
        assert cluster.failures == []


class Member(threading.Thread):
    """A confluent-kafka consumer that reads until it leaves or stops without leaving."""

    def __init__(self, cluster: Cluster, name: str, **settings: object) -> None:
        super().__init__(name=name, daemon=True)
        self.owned: set[int] = set()
        self.read: list[bytes] = []
        self._leaves = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "client.id": name,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 100,
                "topic.metadata.refresh.interval.ms": 500,
                "log_level": 0,
                **settings,
            }
        )
        self.start()

    def run(self) -> None:
        consumer = self._consumer

        def assigned(_: object, partitions: list[kafka.TopicPartition]) -> None:
            self.owned |= {p.partition for p in partitions}

        def revoked(_: object, partitions: list[kafka.TopicPartition]) -> None:
            self.owned -= {p.partition for p in partitions}

        consumer.subscribe(["t"], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        while not self._leaves.is_set():
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                self.read.append(present(message.value()))
        consumer.close()

    def leave(self) -> None:
        self._leaves.set()
        self.join(20)


def partitions_are_shared(members: list[Member]) -> Callable[[], bool]:
    """Return a condition: the members own all partitions, each at least one, and none twice."""

    def are_shared() -> bool:
        owned = [number for member in members for number in member.owned]
        return all(member.owned for member in members) and sorted(owned) == list(range(6))

    return are_shared


def read_by(members: list[Member]) -> list[bytes]:
    """Return what members have read; values not committed before a rebalance may be read twice."""
    return [value for member in members for value in member.read]


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_of_confluent_kafka_join_and_leave(cluster: Cluster, strategy: str) -> None:
    """Every partition has one owner and every record is read; a late record only by its owner."""
    members = [
        Member(cluster, f"m{n}", **{"partition.assignment.strategy": strategy}) for n in range(3)
    ]
    try:
        cluster.wait_until(partitions_are_shared(members), 20)
        cluster.wait_until(lambda: len(read_by(members)) >= RECORDS, 20)
        members[0].leave()
        cluster.wait_until(partitions_are_shared(members[1:]), 20)
        cluster.produce("t", "late", partition=0)
        cluster.wait_until(lambda: b"late" in read_by(members), 20)
    finally:
        for member in members:
            member.leave()
    read = read_by(members)
    assert {value.decode() for value in read} == {*map(str, range(RECORDS)), "late"}
    assert read.count(b"late") == 1


def test_the_group_survives_its_coordinator(cluster: Cluster) -> None:
    """Another broker loads the group; its members continue and read no committed record again."""
    members = [Member(cluster, f"m{n}", **{"auto.commit.interval.ms": 100}) for n in range(3)]
    try:
        cluster.wait_until(partitions_are_shared(members), 20)
        cluster.wait_until(lambda: sum(cluster.group("g").offsets.values()) == RECORDS, 20)
        count = len(read_by(members))
        leader = present(cluster.partition("__consumer_offsets", 0).leader)
        cluster.broker(leader).kill()
        cluster.wait_until(
            lambda: cluster.partition("__consumer_offsets", 0).leader not in (None, leader), 20
        )
        members.append(Member(cluster, "m3"))
        cluster.wait_until(partitions_are_shared(members), 30)
        cluster.broker(leader).start()
        cluster.produce("t", "late", partition=5)
        cluster.wait_until(lambda: len(read_by(members)) > count, 20)
        assert len(read_by(members)) == count + 1
    finally:
        for member in members:
            member.leave()


def test_members_of_aiokafka_share_a_topic(cluster: Cluster) -> None:
    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            consumers = []
            for number in range(3):
                consumer = AIOKafkaConsumer(
                    "t",
                    bootstrap_servers=cluster.bootstrap_servers,
                    group_id="g",
                    client_id=f"m{number}",
                    auto_offset_reset="earliest",
                    heartbeat_interval_ms=100,
                    retry_backoff_ms=50,
                )
                await consumer.start()
                stack.push_async_callback(consumer.stop)
                consumers.append(consumer)
            deadline = time.monotonic() + 20
            read: list[bytes] = []
            while time.monotonic() < deadline and not (
                len(read) >= RECORDS and all(len(c.assignment()) == 2 for c in consumers)
            ):
                for consumer in consumers:
                    batches = await consumer.getmany(timeout_ms=50)
                    read += [record.value for batch in batches.values() for record in batch]
            assert [len(consumer.assignment()) for consumer in consumers] == [2, 2, 2]
            assert {int(value) for value in read} == set(range(RECORDS))

    asyncio.run(run())


def test_members_of_kafka_python_share_a_topic(cluster: Cluster) -> None:
    consumers = [
        kafka.KafkaConsumer(
            "t",
            bootstrap_servers=cluster.bootstrap_servers,
            group_id="g",
            client_id=f"m{number}",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=100,
            session_timeout_ms=6000,
        )
        for number in range(3)
    ]
    owned: dict[int, int] = {}
    read: list[bytes] = []
    done = threading.Event()

    def poll(number: int) -> None:
        consumer = consumers[number]
        while not done.is_set():
            batches = consumer.poll(timeout_ms=50)
            read.extend(record.value for batch in batches.values() for record in batch)
            owned[number] = len(consumer.assignment())
        consumer.close()

    threads = [threading.Thread(target=poll, args=(n,), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        cluster.wait_until(lambda: owned == {0: 2, 1: 2, 2: 2} and len(read) >= RECORDS, 30)
    finally:
        done.set()
        for thread in threads:
            thread.join(20)
    assert {int(value) for value in read} == set(range(RECORDS))
