"""Transactions with real clients: commit, abort, fencing, timeout, and isolation levels."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from fakekafka import Cluster
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]

VERSIONS = ("1.1", "2.8", "3.9")


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(3, kafka_version=request.param) as cluster:
        yield cluster
        assert cluster.failures == []


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "." for c in request.node.name)[:80]
    cluster.create_topic(name, 2)
    return name


def transactional(cluster: Cluster, name: str, **config: Any) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "transactional.id": name,
            "log_level": 0,
            **config,
        }
    )
    producer.init_transactions(30)
    return producer


def send(producer: Producer, topic: str, *values: str) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value.encode(), partition=0)
    assert producer.flush(30) == 0


def read(cluster: Cluster, topic: str, isolation: str = "read_committed") -> list[str]:
    """Return all values of partition 0 up to its end, as a consumer of that isolation level reads
    them.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    try:
        while True:
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                return values
            values.append((message.value() or b"").decode())
    finally:
        consumer.close()


def test_committed_records_are_read_and_aborted_records_are_not(
    cluster: Cluster, topic: str
) -> None:
    """DP-133: only readers of committed records wait for the end of a transaction."""
    producer = transactional(cluster, topic)
    send(producer, topic, "a", "b")
    assert read(cluster, topic) == []
    assert read(cluster, topic, "read_uncommitted") == ["a", "b"]
    producer.commit_transaction(30)
    send(producer, topic, "c")
    producer.abort_transaction(30)
    send(producer, topic, "d")
    producer.commit_transaction(30)
    cluster.wait_until(lambda: read(cluster, topic) == ["a", "b", "d"])
    assert read(cluster, topic, "read_uncommitted") == ["a", "b", "c", "d"]


def test_a_second_producer_of_the_same_id_fences_the_first(
    cluster: Cluster, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """DP-133: the first producer's open transaction is aborted, and its commit fails fatally."""
    first = transactional(cluster, topic)
    send(first, topic, "zombie")
    second = transactional(cluster, topic)
    with pytest.raises(KafkaException) as raised:
        first.commit_transaction(30)
    assert raised.value.args[0].name() == "_FENCED"
    send(second, topic, "mine")
    second.commit_transaction(30)
    cluster.wait_until(lambda: read(cluster, topic) == ["mine"])
    capfd.readouterr()  # librdkafka prints fatal errors


def test_kafka_python_commits_and_aborts(cluster: Cluster, topic: str) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers.split(","), transactional_id=topic
    )
    producer.init_transactions()
    for value, is_commit in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(30)
        (producer.commit_transaction if is_commit else producer.abort_transaction)()
    producer.close(timeout=5)
    cluster.wait_until(lambda: read(cluster, topic) == ["a", "c"])


def test_aiokafka_commits_aborts_and_is_fenced(cluster: Cluster, topic: str) -> None:
    """aiokafka reads the records that it committed; a zombie gets an error."""

    async def produce() -> list[bytes]:
        servers = cluster.bootstrap_servers
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        await producer.start()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"a", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"b", partition=0)
        await producer.abort_transaction()
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"zombie", partition=0)
        successor = AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        await successor.start()
        async with successor.transaction():
            await successor.send_and_wait(topic, b"c", partition=0)
        with pytest.raises(ProducerFenced):
            await producer.commit_transaction()
        await producer.stop()
        await successor.stop()
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
        consumer.assign([AioTopicPartition(topic, 0)])
        await consumer.start()
        await consumer.seek_to_beginning()
        values = [(await asyncio.wait_for(consumer.getone(), 30)).value for _ in range(2)]
        await consumer.stop()
        return values

    assert asyncio.run(produce()) == [b"a", b"c"]


def test_a_coordinator_that_dies_leaves_its_transactions_to_the_next(
    cluster: Cluster, topic: str
) -> None:
    """The new leader of the log loads the open transaction, and the producer commits it there."""
    producer = transactional(cluster, topic)
    send(producer, topic, "a")
    leader = cluster.partition("__transaction_state", 0).leader
    assert leader is not None
    cluster.broker(leader).kill()
    producer.commit_transaction(60)
    cluster.broker(leader).start()
    cluster.wait_until(lambda: read(cluster, topic) == ["a"], timeout_s=60)
    cluster.wait_until(lambda: len(cluster.partition("__transaction_state", 0).isr) == 3)


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    """The coordinator fences the producer at the transaction's timeout, and its commit fails."""
    name = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    with Cluster(1, config={name: 200}) as cluster:
        cluster.create_topic("orders")
        producer = transactional(cluster, "slow", **{"transaction.timeout.ms": 1000})
        send(producer, "orders", "late")
        # The marker stands behind the record.
        cluster.wait_until(lambda: cluster.partition("orders", 0).replica(1).log_end_offset == 2)
        with pytest.raises(KafkaException):
            producer.commit_transaction(30)
        assert read(cluster, "orders") == []
