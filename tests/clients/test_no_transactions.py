"""0.10 has no transactions: producers are refused at once with an error that clients treat as
final.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import TransactionalIdAuthorizationFailed
from confluent_kafka import KafkaException, Producer
from fakekafka import Cluster
from fakekafka.protocol.data import InitProducerIdRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(1, kafka_version="0.10") as cluster:
        yield cluster
        assert cluster.failures == []


def limitations(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if "requests transactions" in r.getMessage()]


def test_confluent_kafka_fails_fatally(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """``init_transactions`` raises a fatal error at once, and a log line names the limitation."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t", "log_level": 0}
    )
    with caplog.at_level(logging.WARNING), pytest.raises(KafkaException) as raised:
        producer.init_transactions(60)
    error = raised.value.args[0]
    assert error.name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    assert "transactions are not supported" in error.str()
    assert (error.fatal(), error.retriable()) == (True, False)
    (line,) = limitations(caplog)
    assert line == (
        "producer 't' requests transactions, which Kafka has since 0.11; idempotent producers "
        "work, see docs/reference/limitations.md"
    )
    capfd.readouterr()  # librdkafka prints fatal errors


def test_kafka_python_fails(cluster: Cluster) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers.split(","), transactional_id="t"
    )
    with pytest.raises(kafka.errors.TransactionalIdAuthorizationFailedError):
        producer.init_transactions()
    producer.close(timeout=1)


def test_aiokafka_fails(cluster: Cluster) -> None:
    async def start() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id="t"
        )
        try:
            with pytest.raises(TransactionalIdAuthorizationFailed):
                await producer.start()
        finally:
            await producer.stop()

    asyncio.run(start())


@pytest.mark.parametrize(
    ("transactional_id", "error"),
    [
        ("t", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.NONE),
    ],
)
def test_init_producer_id(cluster: Cluster, transactional_id: str | None, error: ErrorCode) -> None:
    """An empty id is INVALID_REQUEST; without an id there is a new producer id."""

    async def ask() -> ErrorCode:
        request = InitProducerIdRequest(transactional_id, 60000)
        answer = await cluster.running.admin.ask("broker-1", request)
        return answer.error  # type: ignore[no-any-return]

    assert cluster.call(ask, 10_000) is error
