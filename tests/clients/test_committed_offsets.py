"""Committed offsets of clients with manual assignment, and topics created by use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from fakekafka import Cluster

pytestmark = [pytest.mark.clients, pytest.mark.slow]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, topics={"orders": 2}) as cluster:
        yield cluster
        assert cluster.failures == []


def consumer_of(cluster: Cluster) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "readers",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )


def coordinator_of(cluster: Cluster) -> tuple[int, int]:
    """Return the partition of the offsets topic and the broker that coordinates the group."""
    broker = next(p.broker for p in cluster.processes.values() if p.broker is not None)
    number = broker.groups.partition_for("readers")
    leader = cluster.partition("__consumer_offsets", number).leader
    assert leader is not None
    return number, leader


def test_committed_offsets_survive_the_coordinators_death(cluster: Cluster) -> None:
    """Another broker loads them from the replicated topic, and reading resumes where it stopped."""
    for number in range(10):
        cluster.produce("orders", f"{number}", partition=0)
    parts = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    consumer = consumer_of(cluster)
    consumer.assign([TopicPartition("orders", 0, 0)])
    read = [message.value() for message in consumer.consume(4, 10)]
    assert read == [b"0", b"1", b"2", b"3"]
    consumer.commit(offsets=[TopicPartition("orders", 0, 4)], asynchronous=False)
    assert [p.offset for p in consumer.committed(parts, timeout=10)] == [4, -1001]
    number, before = coordinator_of(cluster)
    cluster.broker(before).kill()
    cluster.wait_until(
        lambda: cluster.partition("__consumer_offsets", number).leader not in (None, before)
    )
    assert [p.offset for p in consumer.committed(parts, timeout=20)] == [4, -1001]
    consumer.commit(offsets=[TopicPartition("orders", 1, 0)], asynchronous=False)
    consumer.close()
    cluster.broker(before).start()
    other = consumer_of(cluster)
    assert [p.offset for p in other.committed(parts, timeout=20)] == [4, 0]
    other.assign([TopicPartition("orders", 0)])
    assert [message.value() for message in other.consume(6, 10)] == [
        b"4",
        b"5",
        b"6",
        b"7",
        b"8",
        b"9",
    ]
    other.close()


def produced(cluster: Cluster, topic: str) -> list[str | None]:
    """Produce one record and return the names of the errors that the client gets, or None for
    success.
    """
    told: list[str | None] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
            "message.timeout.ms": 10_000,
            "topic.metadata.propagation.max.ms": 500,
        }
    )
    producer.produce(
        topic, b"x", on_delivery=lambda error, _: told.append(error.name() if error else None)
    )
    producer.flush(20)
    return told


def test_producing_to_a_missing_topic_creates_it() -> None:
    """The topic has the broker's default numbers of partitions and replicas."""
    config = {"num.partitions": 3, "default.replication.factor": 2}
    with Cluster(3, config=config) as cluster:
        assert produced(cluster, "fresh") == [None]
        assert cluster.topics() == ["fresh"]
        assert len(cluster.partition("fresh", 2).replicas) == 2
        assert sum(cluster.partition("fresh", n).log_end_offset for n in range(3)) == 1
        assert cluster.failures == []


def test_no_topic_is_created_if_auto_creation_is_disabled() -> None:
    with Cluster(1, config={"auto.create.topics.enable": "false"}) as cluster:
        (error,) = produced(cluster, "fresh")
        assert error in ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")
        assert cluster.topics() == []
        assert cluster.failures == []


def test_committed_offsets_go_with_their_topic(cluster: Cluster) -> None:
    """A new topic of the same name has no offsets, even if another coordinator loads the log."""
    consumer = consumer_of(cluster)
    part = TopicPartition("orders", 0, 2)
    consumer.commit(offsets=[part], asynchronous=False)
    assert [p.offset for p in consumer.committed([part], timeout=10)] == [2]
    cluster.delete_topic("orders")
    cluster.create_topic("orders", partitions=2, replication_factor=3)
    assert [p.offset for p in consumer.committed([part], timeout=10)] == [-1001]
    _, before = coordinator_of(cluster)
    cluster.broker(before).shutdown()
    assert [p.offset for p in consumer.committed([part], timeout=20)] == [-1001]
    consumer.close()


def test_a_connected_consumer_finds_no_old_offsets_after_a_reset(cluster: Cluster) -> None:
    """Committed offsets are deleted with the internal topic."""
    consumer = consumer_of(cluster)
    part = TopicPartition("orders", 0, 2)
    consumer.commit(offsets=[part], asynchronous=False)
    cluster.reset()
    cluster.create_topic("orders", partitions=2, replication_factor=3)
    answers: list[int] = []

    def is_answered() -> bool:
        try:
            answers.extend(p.offset for p in consumer.committed([part], timeout=20))
        except KafkaException as error:  # until the client has found the coordinator again
            if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
        return bool(answers)

    cluster.wait_until(is_answered)
    assert answers == [-1001]
    consumer.close()
