"""Clients like those of 0.8 to 0.10, which send and fetch message sets of format v0 and v1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import kafka
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from fakekafka import Cluster
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]

# Long, and with several partitions: librdkafka cannot read a very short Metadata v0.
TOPIC = "orders-of-clients-from-long-ago"


@pytest.fixture(scope="module", params=["2.8", "3.9"])
def one(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(1, kafka_version=request.param) as cluster:
        yield cluster


@pytest.fixture
def cluster(one: Cluster) -> Iterator[Cluster]:
    one.create_topic(TOPIC, 3, 1)
    yield one
    failures = list(one.failures)
    one.reset()
    assert failures == []


def spoken(cluster: Cluster, *names: str) -> set[tuple[str, int]]:
    """Return a set that collects (request, version) of later requests of these names."""
    seen: set[tuple[str, int]] = set()

    def note(delivery: Any) -> None:
        name = type(delivery.message).__name__
        if name in names and delivery.context is not None:
            seen.add((name, delivery.context.api_version))

    cluster.observe(note)
    return seen


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize(("release", "versions"), [("0.8.2", (0, 0)), ("0.9.0", (1, 1))])
def test_librdkafka_with_old_messages(
    cluster: Cluster, release: str, versions: tuple[int, int], codec: str
) -> None:
    """It uses Produce v0 and v1, Fetch v0 and v1, and format v0, compressed or not."""
    seen = spoken(cluster, "ProduceRequest", "FetchRequest")
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "api.version.request": False,
        "broker.version.fallback": release,
        "log_level": 0,
    }
    told: list[Any] = []
    producer = Producer({**config, "compression.type": codec, "linger.ms": 20})
    for number in range(50):
        producer.produce(
            TOPIC,
            b"%d" % number * 20,
            key=b"k",
            partition=1,
            on_delivery=lambda error, message: told.append(error or message.offset()),
        )
    producer.flush(20)
    assert told == list(range(50))
    consumer = Consumer({**config, "group.id": "old", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 1, 3)])
    read: list[tuple[int | None, bytes | None, bytes | None]] = []
    while len(read) < 47:
        messages = consumer.consume(47 - len(read), 10)
        assert messages, f"nothing came after {len(read)} records"
        for message in messages:
            assert message.error() is None
            read.append((message.offset(), message.key(), message.value()))
    consumer.close()
    assert read == [(number, b"k", b"%d" % number * 20) for number in range(3, 50)]
    assert seen == {("ProduceRequest", versions[0]), ("FetchRequest", versions[1])}


@pytest.mark.parametrize(
    ("api_version", "versions", "has_time"),
    [
        ((0, 8, 2), (0, 0, 0), False),
        ((0, 9), (1, 1, 0), False),
        ((0, 10, 0), (2, 2, 0), True),
        ((0, 10, 1), (2, 3, 1), True),
    ],
)
def test_kafka_python_with_old_messages(
    cluster: Cluster, api_version: tuple[int, ...], versions: tuple[int, int, int], has_time: bool
) -> None:
    """It uses Produce v0 to v2, Fetch v0 to v3, ListOffsets v0 and v1; format v1 has timestamps."""
    requests = ("ProduceRequest", "FetchRequest", "ListOffsetsRequest")
    seen = spoken(cluster, *requests)
    servers = cluster.bootstrap_servers.split(",")
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers, api_version=api_version, acks="all", enable_idempotence=False
    )
    for number in range(5):
        future = producer.send(TOPIC, b"%d" % number, partition=2, timestamp_ms=1000 + number)
        assert future.get(10).offset == number
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, api_version=api_version, auto_offset_reset="earliest"
    )
    part = kafka.TopicPartition(TOPIC, 2)
    consumer.assign([part])
    assert consumer.end_offsets([part]) == {part: 5}
    read: list[tuple[int, bytes, int | None]] = []
    while len(read) < 5:
        found = consumer.poll(10_000)
        assert found, f"nothing came after {len(read)} records"
        read += [(r.offset, r.value, r.timestamp) for records in found.values() for r in records]
    consumer.close()
    times = [1000 + number if has_time else None for number in range(5)]
    assert read == [(number, b"%d" % number, time) for number, time in enumerate(times)]
    assert seen == set(zip(requests, versions, strict=True))
