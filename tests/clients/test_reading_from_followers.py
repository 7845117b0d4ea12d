"""A real consumer that names its rack is redirected to the replica in that rack (KIP-392)."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from fakekafka import Cluster
from fakekafka.actors.delivery import Delivery
from fakekafka.protocol.data import CONSUMER_REPLICA_ID, FetchRequest

pytestmark = [pytest.mark.clients, pytest.mark.slow]
SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
RACKS = {1: "a", 2: "b", 3: "c"}


def served_by(cluster: Cluster, rack: str) -> list[str]:
    """Return the brokers from which a consumer in ``rack`` fetches, in order."""
    asked: list[str] = []

    def watch(delivery: Delivery) -> None:
        message = delivery.message
        if isinstance(message, FetchRequest) and message.replica_id == CONSUMER_REPLICA_ID:
            asked.append(delivery.target.name)

    stop = cluster.observe(watch)
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "readers",
            "client.rack": rack,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition("orders", 0, 0)])
    read: list[bytes | None] = []
    while len(read) < 10:
        read += [message.value() for message in consumer.consume(10, 10) if not message.error()]
    consumer.close()
    stop()
    assert read == [f"{number}".encode() for number in range(10)]
    return list(dict.fromkeys(asked))


def test_a_consumer_reads_from_the_replica_in_its_rack() -> None:
    """It fetches from the leader first, and stays there if the leader is in its rack."""
    config = {"replica.selector.class": SELECTOR}
    with Cluster(3, racks=list(RACKS.values()), config=config) as cluster:
        cluster.create_topic("orders", partitions=1, replication_factor=3)
        leader = cluster.partition("orders", 0).leader
        assert leader is not None
        for number in range(10):
            cluster.produce("orders", f"{number}")
        near = next(broker_id for broker_id in RACKS if broker_id != leader)
        assert served_by(cluster, RACKS[near]) == [f"broker-{leader}", f"broker-{near}"]
        assert served_by(cluster, RACKS[leader]) == [f"broker-{leader}"]
        assert cluster.failures == []
