"""Consumers that want to join a group are refused at once, by an error of their own library."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import kafka
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import GroupAuthorizationFailedError
from confluent_kafka import Consumer
from fakekafka import Cluster
from fakekafka.protocol.versions import KAFKA_VERSIONS
from fakekafka.tests.support.present import present

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module", params=KAFKA_VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(1, topics={"t": 1}, kafka_version=request.param) as cluster:
        yield cluster
        assert cluster.failures == []


def test_aiokafka_fails_when_it_starts(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """It asked without end while JoinGroup was missing; one log line names the limitation."""

    async def start() -> None:
        consumer = AIOKafkaConsumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id="g")
        try:
            with pytest.raises(GroupAuthorizationFailedError):
                await asyncio.wait_for(consumer.start(), 20)
        finally:
            await consumer.stop()

    with caplog.at_level(logging.WARNING, "fakekafka"):
        asyncio.run(start())
    told = [r.getMessage() for r in caplog.records if "no groups yet" in r.getMessage()]
    assert told == [
        "a consumer wants to join group 'g'; fakekafka has no groups yet: assign partitions, "
        "see docs/reference/limitations.md"
    ]


def test_kafka_python_fails_at_its_first_poll(cluster: Cluster) -> None:
    consumer = kafka.KafkaConsumer("t", bootstrap_servers=cluster.bootstrap_servers, group_id="g")
    with pytest.raises(kafka.errors.GroupAuthorizationFailedError):
        consumer.poll(timeout_ms=20_000)
    consumer.close(autocommit=False)


def test_confluent_kafka_hands_the_error_to_the_application(cluster: Cluster) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    consumer.subscribe(["t"])
    message = consumer.poll(20)
    consumer.close()
    assert message is not None
    assert present(message.error()).name() == "GROUP_AUTHORIZATION_FAILED"
