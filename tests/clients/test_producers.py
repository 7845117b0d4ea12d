"""The cases of Kafka's integration tests of producers, with confluent-kafka against a cluster."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from fakekafka import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]

TOPIC = "orders"


def producer_of(cluster: Cluster, **config: Any) -> Producer:
    return Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0, **config}
    )


def send(producer: Producer, value: bytes | None, partition: int = 0, **more: Any) -> Any:
    """Return the offset of one record, or the name of the error that the client gets."""
    told: list[Any] = []
    producer.produce(
        TOPIC,
        value,
        partition=partition,
        on_delivery=lambda error, message: told.append(error.name() if error else message.offset()),
        **more,
    )
    producer.flush(30)
    return told[0]


def read(cluster: Cluster, count: int, partition: int = 0) -> list[bytes | None]:
    """Return the first ``count`` values of a partition that a consumer reads."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    messages = consumer.consume(count, 20)
    consumer.close()
    assert [message.error() for message in messages] == [None] * count
    return [message.value() for message in messages]


def test_offsets_follow_each_other_and_null_is_a_value() -> None:
    """DP-131: offsets in each partition are consecutive; null keys and values are allowed."""
    with Cluster(2) as cluster:
        cluster.create_topic(TOPIC, 2, 2)
        producer = producer_of(cluster, **{"linger.ms": 5})
        offsets: dict[int | None, list[int | None]] = {0: [], 1: []}
        for number in range(100):
            producer.produce(
                TOPIC,
                b"%d" % number,
                partition=number % 2,
                on_delivery=lambda _, message: offsets[message.partition()].append(
                    message.offset()
                ),
            )
        producer.flush(30)
        assert offsets == {0: list(range(50)), 1: list(range(50))}
        assert send(producer, None) == 50
        assert send(producer, None, key=b"k") == 51
        assert send(producer, b"v", key=None) == 52
        records = cluster.records(TOPIC, 0)
        assert [(r.key, r.value) for r in records[50:]] == [
            (None, None),
            (b"k", None),
            (None, b"v"),
        ]
        assert read(cluster, 53)[50:] == [None, None, b"v"]
        assert cluster.failures == []


def test_a_partition_that_is_not_there_yet() -> None:
    """DP-131: sending to a missing partition times out, and works after the topic has grown."""
    with Cluster(2) as cluster:
        cluster.create_topic(TOPIC, 1, 2)
        producer = producer_of(
            cluster, **{"message.timeout.ms": 300, "topic.metadata.refresh.interval.ms": 50}
        )
        assert send(producer, b"here") == 0
        told: list[str] = []
        try:
            told.append(send(producer, b"nowhere", partition=1))
        except Exception as error:  # librdkafka knows already that there is none
            told.append(error.args[0].name())
        assert told in (["_UNKNOWN_PARTITION"], ["_MSG_TIMED_OUT"])
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        admin.create_partitions([NewPartitions(TOPIC, 2)])[TOPIC].result(20)
        cluster.wait_until(lambda: cluster.partition(TOPIC, 1).leader is not None)
        assert send(producer_of(cluster), b"there", partition=1) == 0
        assert send(producer, b"still here") == 1
        assert cluster.failures == []


def is_led_by(cluster: Cluster, broker: int | None) -> bool:
    """Return whether an active controller sees this leader; None means no leader."""
    return cluster.topics() == [TOPIC] and cluster.partition(TOPIC, 0).leader == broker


def lose_all_but_a_lagging_replica(cluster: Cluster) -> tuple[int, int]:
    """Kill the leader when only it has the second of two records.

    Return that leader and the other replica, which is running.
    """
    leader = cluster.partition(TOPIC, 0).leader
    assert leader is not None
    (other,) = [broker for broker in (1, 2) if broker != leader]
    producer = producer_of(cluster)
    assert send(producer, b"first") == 0
    cluster.broker(other).shutdown()
    assert send(producer, b"second") == 1
    cluster.wait_until(lambda: cluster.partition(TOPIC, 0).isr == (leader,))
    cluster.broker(leader).kill()
    cluster.broker(other).start()
    return leader, other


def test_unclean_election_loses_what_only_the_dead_leader_had() -> None:
    """DP-129, enabled: the lagging replica leads; a consumer reads the first and third record."""
    with Cluster(2, config={"unclean.leader.election.enable": "true"}) as cluster:
        cluster.create_topic(TOPIC, 1, 2)
        leader, other = lose_all_but_a_lagging_replica(cluster)
        cluster.wait_until(lambda: is_led_by(cluster, other), 30)
        assert send(producer_of(cluster), b"third") == 1
        assert read(cluster, 2) == [b"first", b"third"]
        cluster.broker(leader).start()
        cluster.wait_until(lambda: set(cluster.partition(TOPIC, 0).isr) == {1, 2}, 30)
        assert [r.value for r in cluster.records(TOPIC, 0, replica=leader)] == [b"first", b"third"]
        assert cluster.failures == []


def test_without_unclean_election_the_partition_waits_for_its_leader() -> None:
    """DP-129, disabled: producing fails until the old leader returns, and nothing is lost."""
    with Cluster(2) as cluster:
        cluster.create_topic(TOPIC, 1, 2)
        leader, _ = lose_all_but_a_lagging_replica(cluster)
        cluster.wait_until(lambda: is_led_by(cluster, None), 30)
        refused = send(producer_of(cluster, **{"message.timeout.ms": 500}), b"lost")
        assert refused == "_MSG_TIMED_OUT"
        cluster.broker(leader).start()
        cluster.wait_until(lambda: is_led_by(cluster, leader), 30)
        assert send(producer_of(cluster), b"third") == 2
        assert read(cluster, 3) == [b"first", b"second", b"third"]
        assert cluster.failures == []


def test_clients_find_a_cluster_at_an_ipv6_address() -> None:
    """The address has brackets in bootstrap.servers and none in metadata, as with Kafka."""
    cluster = Cluster(2, host="::1", topics={TOPIC: 1})
    try:
        cluster.start()
    except OSError:  # there is no IPv6 here
        return
    try:
        assert send(producer_of(cluster), b"six") == 0
        assert read(cluster, 1) == [b"six"]
    finally:
        cluster.stop()
