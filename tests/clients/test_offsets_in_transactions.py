"""kafka-python and aiokafka commit offsets in transactions; other tests use confluent-kafka."""

from __future__ import annotations

import asyncio
from typing import Any

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from fakekafka import Cluster
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS
from kafka.structs import OffsetAndMetadata

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]


def committed(cluster: Cluster, group: str) -> int:
    """Return the group's offset of the only partition as an administrator sees it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    asked = [ConsumerGroupTopicPartitions(group, [TopicPartition("in", 0)])]
    (future,) = admin.list_consumer_group_offsets(asked).values()
    return int(future.result(30).topic_partitions[0].offset)


def values(cluster: Cluster, count: int) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition("out", 0, 0)])
    found = [message.value() for message in consumer.consume(count, 30)]
    consumer.close()
    return found


@pytest.mark.parametrize("version", ["1.1", "2.8", "3.9"])
def test_kafka_python_commits_offsets_with_its_records(version: str) -> None:
    """An aborted transaction leaves neither records nor offsets."""
    with Cluster(1, kafka_version=version, topics={"in": 1, "out": 1}) as cluster:
        producer = kafka.KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, transactional_id="t"
        )
        producer.init_transactions()
        where = kafka.TopicPartition("in", 0)
        for offset, is_commit in ((5, True), (9, False)):
            producer.begin_transaction()
            producer.send("out", b"%d" % offset, partition=0).get(30)
            offsets = {where: OffsetAndMetadata(offset, "", -1)}
            producer.send_offsets_to_transaction(offsets, "group")
            (producer.commit_transaction if is_commit else producer.abort_transaction)()
        producer.close(timeout=5)
        cluster.wait_until(lambda: committed(cluster, "group") == 5)
        assert values(cluster, 1) == [b"5"]
        assert cluster.failures == []


@pytest.mark.parametrize("version", ["1.1", "2.8", "3.9"])
def test_aiokafka_commits_offsets_with_its_records(version: str) -> None:
    async def produce(servers: str) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="t")
        await producer.start()
        for offset in (5, 9):
            async with producer.transaction():
                await producer.send_and_wait("out", b"%d" % offset, partition=0)
                offsets = {AioTopicPartition("in", 0): offset}
                await producer.send_offsets_to_transaction(offsets, "group")
        await producer.stop()

    with Cluster(1, kafka_version=version, topics={"in": 1, "out": 1}) as cluster:
        asyncio.run(produce(cluster.bootstrap_servers))
        cluster.wait_until(lambda: committed(cluster, "group") == 9)
        assert values(cluster, 2) == [b"5", b"9"]
        assert cluster.failures == []
