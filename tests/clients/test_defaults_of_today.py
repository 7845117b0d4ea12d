"""Current clients with only addresses configured, against every release."""

from __future__ import annotations

import kafka
import pytest
from fakekafka import Cluster
from fakekafka.protocol.versions import KAFKA_VERSIONS

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.mark.parametrize("kafka_version", KAFKA_VERSIONS)
def test_kafka_python_produces_and_consumes(kafka_version: str) -> None:
    """Its producers are idempotent by default and fail without a producer id."""
    with Cluster(3, topics={"t": 1}, kafka_version=kafka_version) as cluster:
        producer = kafka.KafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        sent = [producer.send("t", b"%d" % number) for number in range(3)]
        assert [future.get(20).offset for future in sent] == [0, 1, 2]
        producer.close()
        consumer = kafka.KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
        consumer.assign([kafka.TopicPartition("t", 0)])
        consumer.seek_to_beginning()
        read: list[bytes] = []
        while len(read) < 3:
            found = consumer.poll(timeout_ms=20_000)
            assert found
            read += [record.value for records in found.values() for record in records]
        consumer.close()
        assert read == [b"0", b"1", b"2"]
        assert cluster.failures == []
