"""Quotas as clients see them: answers have a throttle time, for which clients have to wait."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from fakekafka import Cluster, KafkaError

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(1, topics={"orders": 1}) as cluster:
        yield cluster
        assert cluster.failures == []


def throttled(cluster: Cluster, client_id: str = "loader") -> list[float]:
    """Return the first two throttle times in seconds of a producer that sends 80 kB.

    On an idle machine its third and fourth record are throttled.
    """
    told: list[float] = []

    def on_throttle(event: Any) -> None:
        if event.throttle_time > 0:
            told.append(event.throttle_time)

    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": client_id,
            "throttle_cb": on_throttle,
            "linger.ms": 0,
        }
    )
    for _ in range(8):
        producer.produce("orders", bytes(10_000))
        assert producer.flush(60) == 0
        producer.poll(0.1)
        if len(told) == 2:
            break
    return told


def test_a_producer_beyond_its_quota_waits(cluster: Cluster) -> None:
    """A record is not accepted before the throttle time of the previous one is over.

    All records take longer than the first throttle time, as that is not for the last record.
    """
    assert throttled(cluster) == []
    cluster.security.set_quota(client_id="loader", producer_byte_rate=2500)
    begun = time.monotonic()
    told = throttled(cluster)
    assert len(told) == 2
    assert round((time.monotonic() - begun) * 1000) >= round(told[0] * 1000)


def test_a_quota_applies_only_to_its_client(cluster: Cluster) -> None:
    """Other clients are served as before, and the throttling ends when the quota is removed."""
    cluster.security.set_quota(client_id="loader", producer_byte_rate=2500)
    assert throttled(cluster, "other") == []
    cluster.security.set_quota(client_id="loader", producer_byte_rate=None)
    assert throttled(cluster) == []


def test_a_quota_is_kept_in_zookeeper(cluster: Cluster) -> None:
    """A restarted broker enforces the quota."""
    cluster.security.set_quota(client_id="loader", producer_byte_rate=2500)
    assert b'"producer_byte_rate":"2500"' in (
        cluster.zookeeper.get("/config/clients/loader") or b""
    )
    cluster.broker(1).restart()
    cluster.wait_until(lambda: cluster.controller.id is not None)
    assert throttled(cluster)


def test_topics_beyond_the_quota_are_refused(cluster: Cluster) -> None:
    """The error is THROTTLING_QUOTA_EXCEEDED since KIP-599; confluent-kafka's older version of the
    request is throttled instead.
    """
    cluster.security.set_quota(user="<default>", controller_mutation_rate=1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    begun = time.monotonic()
    for name, partitions in (("a", 12), ("b", 1)):
        future = admin.create_topics([NewTopic(name, partitions, 1)])[name]
        future.result(10)
    assert time.monotonic() - begun >= 0.5


def test_an_invalid_quota_is_refused(cluster: Cluster) -> None:
    """The error has Kafka's text."""
    with pytest.raises(KafkaError, match="Invalid configuration key bytes_per_day"):
        cluster.security.set_quota(user="u", bytes_per_day=3)


def test_reset_removes_quotas(cluster: Cluster) -> None:
    """No quota is left after ``reset``."""
    cluster.security.set_quota(user="u", client_id="c", consumer_byte_rate=9)
    cluster.reset()
    assert not cluster.processes[1].broker.security.quotas.is_any  # type: ignore[union-attr]


def test_an_address_that_connects_too_often_is_closed(cluster: Cluster) -> None:
    """KIP-612: the connection is accepted, and closed after a delay without an answer."""
    cluster.security.set_quota(ip="127.0.0.1", connection_creation_rate=1)
    port = cluster.broker(1).port
    sockets = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(12)]
    sockets[-1].settimeout(10)
    assert sockets[-1].recv(1) == b""
    sockets[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        sockets[0].recv(1)
    for client in sockets:
        client.close()
    cluster.security.set_quota(ip="127.0.0.1", connection_creation_rate=None)
    assert throttled(cluster) == []


def test_a_client_whose_requests_take_too_much_time_waits(cluster: Cluster) -> None:
    """KIP-124: the quota is a percentage of a thread's time, for requests of any kind."""
    cluster.security.set_quota(client_id="loader", request_percentage=0.001)
    assert throttled(cluster)
    assert throttled(cluster, "other") == []
    cluster.security.set_quota(client_id="loader", request_percentage=None)
    assert throttled(cluster) == []
