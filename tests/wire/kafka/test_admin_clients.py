"""Admin clients of real libraries and the codec: all their admin APIs, in both directions."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.protocol import admin, data, groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition, uuid_text
from fakekafka.wire.kafka.listener import KafkaListener
from fakekafka.wire.kafka.service import BrokerService

pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

NONE = ErrorCode.NONE
ORDERS_0 = TopicPartition("orders", 0)
ORDERS_ID = bytes(range(16))
TOPIC = admin.ConfigResource(admin.TOPIC_RESOURCE, "orders")
ENTRY = admin.ConfigEntry(
    "retention.ms", "7", 1, False, False, 5, False, (("retention.ms", "7", 1),), "how long"
)


class AdminBackend:
    """A backend with one broker and the topic ``orders``, which accepts every request."""

    def __init__(self, kafka_version: str) -> None:
        self.kafka_version = kafka_version
        self.requests: list[Any] = []
        self.port = 0

    def submit(
        self, broker_id: int, connection_name: Any, request: Any, context: Any, respond: Any
    ) -> None:
        self.requests.append(request)
        respond(getattr(self, type(request).__name__)(request))

    def topic_id(self, broker_id: int, topic: Any) -> Any:
        return ORDERS_ID if topic == "orders" else None

    def topic_name(self, broker_id: int, topic_id: Any) -> Any:
        return "orders" if topic_id == ORDERS_ID else None

    def received(self, message_type: type) -> Any:
        """Return the only request of this type."""
        (request,) = [r for r in self.requests if isinstance(r, message_type)]
        return request

    def MetadataRequest(self, request: Any) -> Any:  # noqa: N802
        broker = BrokerInfo(1, (EndPoint("127.0.0.1", self.port),), "rack-a")
        partition = data.MetadataPartition(NONE, 0, 1, 3, (1,), (1,), ())
        topic = data.MetadataTopic(NONE, "orders", False, (partition,), uuid_text(ORDERS_ID))
        topics = () if request.topics == () and not request.topic_ids else (topic,)
        return data.MetadataResponse((broker,), "the-cluster", 1, topics)

    def CreateTopicsRequest(self, request: Any) -> Any:  # noqa: N802
        results = [
            admin.TopicResult(t.name, NONE, None, uuid_text(ORDERS_ID), 2, 1)
            for t in request.topics
        ]
        return admin.CreateTopicsResponse(tuple(results))

    def DeleteTopicsRequest(self, request: Any) -> Any:  # noqa: N802
        results = [admin.TopicResult(name, NONE) for name in request.topics]
        return admin.DeleteTopicsResponse(tuple(results))

    def CreatePartitionsRequest(self, request: Any) -> Any:  # noqa: N802
        results = [admin.TopicResult(t.name, NONE) for t in request.topics]
        return admin.CreatePartitionsResponse(tuple(results))

    def ElectLeadersRequest(self, request: Any) -> Any:  # noqa: N802
        return admin.ElectLeadersResponse(
            NONE, ((ORDERS_0, ErrorCode.ELECTION_NOT_NEEDED, "it leads already"),)
        )

    def AlterPartitionReassignmentsRequest(self, request: Any) -> Any:  # noqa: N802
        return admin.AlterPartitionReassignmentsResponse(
            NONE, tuple((tp, NONE, None) for tp, _ in request.reassignments)
        )

    def ListPartitionReassignmentsRequest(self, request: Any) -> Any:  # noqa: N802
        ongoing = admin.OngoingReassignment(ORDERS_0, (1, 2), (2,), (1,))
        return admin.ListPartitionReassignmentsResponse(NONE, (ongoing,))

    def DescribeConfigsRequest(self, request: Any) -> Any:  # noqa: N802
        results = [
            admin.DescribeConfigsResult(resource, NONE, None, (ENTRY,))
            for resource, _ in request.resources
        ]
        return admin.DescribeConfigsResponse(tuple(results))

    def AlterConfigsRequest(self, request: Any) -> Any:  # noqa: N802
        return admin.AlterConfigsResponse(
            tuple((resource, NONE, None) for resource, _ in request.resources)
        )

    def DeleteRecordsRequest(self, request: Any) -> Any:  # noqa: N802
        return data.DeleteRecordsResponse(tuple((tp, NONE, o) for tp, o in request.offsets))

    def ListOffsetsRequest(self, request: Any) -> Any:  # noqa: N802
        return data.ListOffsetsResponse(
            tuple(
                data.ListOffsetsPartitionResponse(p.topic_partition, NONE, -1, 12, 3)
                for p in request.partitions
            )
        )

    def FindCoordinatorRequest(self, request: Any) -> Any:  # noqa: N802
        return data.FindCoordinatorResponse(
            tuple(data.Coordinator(key, NONE, 1, "127.0.0.1", self.port) for key in request.keys)
        )

    def OffsetFetchRequest(self, request: Any) -> Any:  # noqa: N802
        offset = groups.CommittedOffset(ORDERS_0, NONE, 41, 3, "note")
        return groups.OffsetFetchResponse(NONE, (offset,))


@pytest.fixture(params=["2.8", "3.9"])
def backend(request: pytest.FixtureRequest) -> Iterator[AdminBackend]:
    """Serve a backend on a thread of its own while the clients block."""
    loop = asyncio.new_event_loop()
    served = AdminBackend(request.param)
    listener = KafkaListener(loop, "127.0.0.1", 0, BrokerService(loop, 1, served))
    served.port = listener.bind()
    thread = threading.Thread(target=loop.run_forever)
    loop.call_soon(listener.serve)
    thread.start()
    yield served
    loop.call_soon_threadsafe(listener.close)
    for _ in range(1000):
        if not listener.connections and not listener.is_serving:
            break
        time.sleep(0.001)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
def confluent(backend: AdminBackend) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{backend.port}",
            "log_level": 0,
            "socket.timeout.ms": 5000,
        }
    )


def result(futures: Any) -> Any:
    """Return the result of the only future of an admin call."""
    if hasattr(futures, "result"):
        return futures.result(5)
    (future,) = futures.values()
    return future.result(5)


def test_confluent_kafka_describes_the_cluster_and_lists_topics(
    backend: Any, confluent: Any
) -> None:
    """Metadata is right in both directions, with racks, controller and epochs."""
    listed = confluent.list_topics(timeout=5)
    assert (listed.cluster_id, listed.controller_id) == ("the-cluster", 1)
    assert listed.topics["orders"].partitions[0].isrs == [1]
    described = confluent.describe_cluster(include_authorized_operations=True).result(5)
    assert described.cluster_id == "the-cluster"
    assert len(described.authorized_operations) == 7


def test_confluent_kafka_creates_expands_and_deletes_topics(backend: Any, confluent: Any) -> None:
    """CreateTopics, CreatePartitions and DeleteTopics arrive with all their values."""
    from confluent_kafka.admin import NewPartitions, NewTopic

    config = {"retention.ms": "7"}
    assert result(confluent.create_topics([NewTopic("orders", 2, 1, config=config)])) is None
    (topic,) = backend.received(admin.CreateTopicsRequest).topics
    assert topic == admin.NewTopic("orders", 2, 1, (), (("retention.ms", "7"),))
    assert result(confluent.create_partitions([NewPartitions("orders", 5)])) is None
    (grown,) = backend.received(admin.CreatePartitionsRequest).topics
    assert grown == admin.NewPartitions("orders", 5)
    assert result(confluent.delete_topics(["orders"])) is None
    assert backend.received(admin.DeleteTopicsRequest).topics == ("orders",)


def test_confluent_kafka_elects_leaders(backend: Any, confluent: Any) -> None:
    """Preferred and unclean elections arrive, and each partition has its error."""
    import confluent_kafka

    partition = confluent_kafka.TopicPartition("orders", 0)
    for election, sent in [
        (confluent_kafka.ElectionType.PREFERRED, admin.PREFERRED),
        (confluent_kafka.ElectionType.UNCLEAN, admin.UNCLEAN),
    ]:
        backend.requests.clear()
        (outcome,) = confluent.elect_leaders(election, [partition]).result(5).values()
        assert outcome.code() == ErrorCode.ELECTION_NOT_NEEDED
        request = backend.received(admin.ElectLeadersRequest)
        assert (request.election_type, request.partitions) == (sent, (ORDERS_0,))


def test_confluent_kafka_describes_and_alters_configs(backend: Any, confluent: Any) -> None:
    """DescribeConfigs returns synonyms, and IncrementalAlterConfigs arrives."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    entry = result(confluent.describe_configs([resource]))["retention.ms"]
    assert (entry.value, entry.source, list(entry.synonyms)) == ("7", 1, ["retention.ms"])
    change = ConfigEntry("retention.ms", "9", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[change])
    assert result(confluent.incremental_alter_configs([resource])) is None
    request = backend.received(admin.AlterConfigsRequest)
    assert request == admin.AlterConfigsRequest(
        ((TOPIC, (("retention.ms", admin.SET, "9"),)),), incremental=True
    )


def test_confluent_kafka_lists_and_deletes_offsets(backend: Any, confluent: Any) -> None:
    """ListOffsets, DeleteRecords and committed offsets of a group work."""
    import confluent_kafka
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import OffsetSpec

    partition = confluent_kafka.TopicPartition("orders", 0)
    latest: Any = OffsetSpec.latest
    listed = result(confluent.list_offsets({partition: latest()}))
    assert (listed.offset, listed.leader_epoch) == (12, 3)
    deleted = result(confluent.delete_records([confluent_kafka.TopicPartition("orders", 0, 5)]))
    assert deleted.low_watermark == 5
    group = result(
        confluent.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g", [partition])])
    )
    assert [p.offset for p in group.topic_partitions] == [41]


@pytest.fixture
def python_admin(backend: AdminBackend, kafka_python: Any) -> Iterator[Any]:
    client = kafka_python.KafkaAdminClient(
        bootstrap_servers=f"127.0.0.1:{backend.port}", request_timeout_ms=5000
    )
    yield client
    client.close()


def test_kafka_python_describes_cluster_topics_and_configs(
    backend: Any, kafka_python: Any, python_admin: Any
) -> None:
    """DescribeCluster at v1 and authorized operations of topics work.

    This client expects of DescribeCluster what only v1 has. Kafka 2.8 offers v0 as well
    (DescribeClusterRequest.json), and the client fails there in the same way.
    """
    if backend.kafka_version == "2.8":
        with pytest.raises(KeyError, match="endpoint_type"):
            python_admin.describe_cluster()
    else:
        cluster = python_admin.describe_cluster()
        assert (cluster["cluster_id"], cluster["controller_id"]) == ("the-cluster", 1)
    (topic,) = python_admin.describe_topics(["orders"])
    assert topic["partitions"][0]["leader_id"] == 1
    resource = kafka_python.admin.ConfigResource("TOPIC", "orders")
    described = python_admin.describe_configs([resource], include_synonyms=True)
    assert "retention.ms" in str(described)
    assert backend.received(admin.DescribeConfigsRequest).include_synonyms


def test_kafka_python_creates_expands_and_deletes_topics(
    backend: Any, kafka_python: Any, python_admin: Any
) -> None:
    """The same APIs work in the versions that kafka-python chooses."""
    new = kafka_python.admin.NewTopic("orders", replica_assignments={0: [1]})
    python_admin.create_topics([new])
    (topic,) = backend.received(admin.CreateTopicsRequest).topics
    assert topic.assignment == ((0, (1,)),)
    python_admin.create_partitions({"orders": kafka_python.admin.NewPartitions(3, [[1], [1]])})
    (grown,) = backend.received(admin.CreatePartitionsRequest).topics
    assert grown == admin.NewPartitions("orders", 3, ((1,), (1,)))
    python_admin.delete_topics(["orders"])
    assert backend.received(admin.DeleteTopicsRequest).topics == ("orders",)


def test_kafka_python_elects_and_reassigns(
    backend: Any, kafka_python: Any, python_admin: Any
) -> None:
    """ElectLeaders and the reassignment APIs, which librdkafka does not have, work."""
    partition = kafka_python.TopicPartition("orders", 0)
    python_admin.elect_leaders(0, {"orders": [0]}, raise_errors=False)
    assert backend.received(admin.ElectLeadersRequest).partitions == (ORDERS_0,)
    python_admin.alter_partition_reassignments({partition: [2, 1]})
    python_admin.alter_partition_reassignments({partition: None})
    targets = [
        r.reassignments
        for r in backend.requests
        if isinstance(r, admin.AlterPartitionReassignmentsRequest)
    ]
    assert targets == [((ORDERS_0, (2, 1)),), ((ORDERS_0, None),)]
    listed = python_admin.list_partition_reassignments()
    assert listed[partition]["adding_replicas"] == [2]


def test_kafka_python_alters_configs_and_deletes_records(
    backend: Any, kafka_python: Any, python_admin: Any
) -> None:
    """AlterConfigs or IncrementalAlterConfigs, DeleteRecords and committed offsets work."""
    resource = kafka_python.admin.ConfigResource("TOPIC", "orders", {"retention.ms": "9"})
    python_admin.alter_configs([resource])
    ((altered, entries),) = backend.received(admin.AlterConfigsRequest).resources
    assert (altered, entries) == (TOPIC, (("retention.ms", admin.SET, "9"),))
    partition = kafka_python.TopicPartition("orders", 0)
    python_admin.delete_records({partition: 5})
    assert backend.received(data.DeleteRecordsRequest).offsets == ((ORDERS_0, 5),)
    assert "41" in str(python_admin.list_group_offsets({"g": [partition]}))


def test_aiokafka_admin_starts_and_creates_a_topic(backend: Any) -> None:
    """Wire 2: the client begins with ApiVersions v0, and asserts that the table is sane."""
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    async def run() -> Any:
        client = AIOKafkaAdminClient(bootstrap_servers=f"127.0.0.1:{backend.port}")
        await client.start()
        try:
            await client.create_topics([NewTopic("orders", 2, 1)])
            return await client.describe_cluster()
        finally:
            await client.close()

    described = asyncio.run(run())
    assert described["cluster_id"] == "the-cluster"
    (topic,) = backend.received(admin.CreateTopicsRequest).topics
    assert (topic.name, topic.partitions) == ("orders", 2)
