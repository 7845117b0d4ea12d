"""Real admin clients against a cluster that carries out their requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
)
from fakekafka import Cluster
from fakekafka.tests.support.client_drivers import KAFKA_PYTHON_WARNS

pytestmark = [pytest.mark.clients, pytest.mark.slow, *KAFKA_PYTHON_WARNS]


@pytest.fixture(scope="module")
def one() -> Iterator[Cluster]:
    with Cluster(4) as cluster:
        yield cluster


@pytest.fixture
def cluster(one: Cluster) -> Iterator[Cluster]:
    one.create_topic("orders", assignment={0: [1, 2, 3], 1: [2, 3, 1]})
    yield one
    failures = list(one.failures)
    one.reset()
    assert failures == []


def confluent_of(cluster: Cluster) -> AdminClient:
    """Return a new client, as librdkafka reports NOT_CONTROLLER if the controller it knew died."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


@pytest.fixture
def confluent(cluster: Cluster) -> AdminClient:
    return confluent_of(cluster)


@contextmanager
def python_admin_of(cluster: Cluster) -> Iterator[Any]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    try:
        yield admin
    finally:
        admin.close()


@pytest.fixture
def python_admin(cluster: Cluster) -> Iterator[Any]:
    with python_admin_of(cluster) as admin:
        yield admin


def result(futures: Any) -> Any:
    """Return the result of the only future of a call."""
    if hasattr(futures, "result"):
        return futures.result(20)
    (future,) = futures.values()
    return future.result(20)


def refusal(futures: Any) -> str:
    with pytest.raises(KafkaException) as raised:
        result(futures)
    name: str = raised.value.args[0].name()
    return name


def lose_and_regain(cluster: Cluster, broker_id: int) -> None:
    """Kill and restart a broker until it is in every ISR again and leads nothing."""
    cluster.broker(broker_id).kill()
    cluster.wait_until(
        lambda: all(cluster.partition("orders", n).leader != broker_id for n in (0, 1))
    )
    cluster.broker(broker_id).start()
    cluster.wait_until(lambda: all(broker_id in cluster.partition("orders", n).isr for n in (0, 1)))
    cluster.wait_until(lambda: cluster.running.is_settled)


def lose_the_isr(cluster: Cluster) -> None:
    """Make partition 0 of ``lonely`` (replicas 1 and 2) offline by killing its only ISR member,
    broker 1.
    """
    cluster.create_topic("lonely", assignment={0: [1, 2]})
    cluster.broker(2).kill()
    cluster.wait_until(lambda: cluster.partition("lonely", 0).isr == (1,))
    cluster.broker(1).kill()
    cluster.wait_until(lambda: cluster.partition("lonely", 0).leader is None)
    cluster.broker(2).start()
    cluster.wait_until(lambda: cluster.partition("lonely", 0).state == "OfflinePartition")
    cluster.wait_until(lambda: cluster.running.is_settled)


def test_confluent_kafka_creates_expands_and_deletes(
    cluster: Cluster, confluent: AdminClient
) -> None:
    result(confluent.create_topics([NewTopic("new", 2, 3, config={"retention.ms": "9000"})]))
    cluster.wait_until(lambda: "new" in cluster.topics())
    assert len(cluster.partition("new", 1).replicas) == 3
    assert refusal(confluent.create_topics([NewTopic("new", 1, 1)])) == "TOPIC_ALREADY_EXISTS"
    assert refusal(confluent.create_topics([NewTopic("x", 1, 9)])) == "INVALID_REPLICATION_FACTOR"
    assert refusal(confluent.create_topics([NewTopic("no name", 1, 1)])) == "TOPIC_EXCEPTION"
    result(confluent.create_partitions([NewPartitions("new", 4)]))
    cluster.wait_until(lambda: cluster.partition("new", 3).leader is not None)
    assert refusal(confluent.create_partitions([NewPartitions("new", 3)])) == "INVALID_PARTITIONS"
    result(confluent.delete_topics(["new"]))
    cluster.wait_until(lambda: "new" not in cluster.topics())
    assert refusal(confluent.delete_topics(["new"])) == "UNKNOWN_TOPIC_OR_PART"


def test_confluent_kafka_describes(cluster: Cluster, confluent: AdminClient) -> None:
    described = confluent.describe_cluster().result(20)
    assert sorted(node.id for node in described.nodes) == [1, 2, 3, 4]
    assert described.controller.id == cluster.controller.id
    topics = confluent.describe_topics(confluent_kafka.TopicCollection(["orders"]))
    partition = result(topics).partitions[1]
    assert partition.leader.id == 2
    assert [node.id for node in partition.replicas] == [2, 3, 1]
    assert sorted(node.id for node in partition.isr) == [1, 2, 3]


def test_confluent_kafka_alters_configs(cluster: Cluster, confluent: AdminClient) -> None:
    def retention() -> Any:
        resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
        return result(confluent.describe_configs([resource]))["retention.ms"]

    assert retention().is_default
    for operation, value, wanted in [
        (AlterConfigOpType.SET, "9000", ("9000", False)),
        (AlterConfigOpType.DELETE, None, (retention().value, True)),
    ]:
        entry = ConfigEntry("retention.ms", value, incremental_operation=operation)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
        result(confluent.incremental_alter_configs([resource]))
        cluster.wait_until(
            lambda: (retention().value, retention().is_default) == wanted  # noqa: B023
        )
    entry = ConfigEntry("no.such", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders", incremental_configs=[entry])
    assert refusal(confluent.incremental_alter_configs([resource])) == "INVALID_CONFIG"


def test_confluent_kafka_elects_preferred(cluster: Cluster) -> None:
    lose_and_regain(cluster, 1)
    confluent = confluent_of(cluster)
    parts = [confluent_kafka.TopicPartition("orders", number) for number in (0, 1)]
    preferred = confluent_kafka.ElectionType.PREFERRED
    outcome = confluent.elect_leaders(preferred, parts).result(20)
    errors = {part.partition: None if e is None else e.name() for part, e in outcome.items()}
    assert errors == {0: None, 1: "ELECTION_NOT_NEEDED"}
    assert cluster.partition("orders", 0).leader == 1


def test_confluent_kafka_elects_unclean(cluster: Cluster) -> None:
    """The only ISR member is dead: a preferred election fails, an unclean one elects the live
    replica.
    """
    lose_the_isr(cluster)
    confluent = confluent_of(cluster)
    part = confluent_kafka.TopicPartition("lonely", 0)
    kinds = confluent_kafka.ElectionType
    (error,) = confluent.elect_leaders(kinds.PREFERRED, [part]).result(20).values()
    assert error.name() == "PREFERRED_LEADER_NOT_AVAILABLE"
    (error,) = confluent.elect_leaders(kinds.UNCLEAN, [part]).result(20).values()
    assert error is None
    view = cluster.partition("lonely", 0)
    assert (view.leader, view.isr) == (2, (2,))


def test_kafka_python_creates_expands_and_deletes(cluster: Cluster, python_admin: Any) -> None:
    python_admin.create_topics({"new": {"num_partitions": 2, "replication_factor": 2}})
    cluster.wait_until(lambda: "new" in cluster.topics())
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        python_admin.create_topics({"new": {"num_partitions": 1, "replication_factor": 1}})
    python_admin.create_partitions({"new": 3})
    cluster.wait_until(lambda: cluster.partition("new", 2).leader is not None)
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        python_admin.create_partitions({"new": 1})
    python_admin.delete_topics(["new"])
    cluster.wait_until(lambda: "new" not in cluster.topics())


def test_kafka_python_describes_and_alters_configs(cluster: Cluster, python_admin: Any) -> None:
    described = python_admin.describe_cluster()
    assert described["controller_id"] == cluster.controller.id
    (topic,) = python_admin.describe_topics(["orders"])
    leaders = {p["partition_index"]: p["leader_id"] for p in topic["partitions"]}
    assert leaders == {0: 1, 1: 2}
    resource = kafka.admin.ConfigResource("TOPIC", "orders", {"retention.ms": "9000"})
    python_admin.alter_configs([resource])
    broker = cluster.processes[1].broker
    assert broker is not None
    overrides = broker.dynamic_config.topic_config
    cluster.wait_until(lambda: overrides("orders").overrides.get("retention.ms") == "9000")
    resource = kafka.admin.ConfigResource("TOPIC", "orders")
    assert "9000" in str(python_admin.describe_configs([resource]))


def test_kafka_python_elects(cluster: Cluster) -> None:
    """Each loss needs a new admin client: kafka-python keeps sending to a controller that died, and
    gives up once its metadata no longer contains that broker.
    """
    lose_and_regain(cluster, 1)
    with python_admin_of(cluster) as admin:
        admin.elect_leaders(0, {"orders": [0]})
        cluster.wait_until(lambda: cluster.partition("orders", 0).leader == 1)
        # 84 is ELECTION_NOT_NEEDED, which kafka-python does not raise.
        assert "84" in str(admin.elect_leaders(0, {"orders": [0]}))
    lose_the_isr(cluster)
    with python_admin_of(cluster) as admin:
        admin.elect_leaders(1, {"lonely": [0]})
    cluster.wait_until(lambda: cluster.partition("lonely", 0).leader == 2)


def test_kafka_python_reassigns_lists_and_cancels(cluster: Cluster, python_admin: Any) -> None:
    part = kafka.TopicPartition("orders", 0)
    accepted = python_admin.alter_partition_reassignments({part: [4, 2]})
    assert list(accepted.values()) == [None]
    cluster.wait_until(lambda: cluster.partition("orders", 0).replicas == (4, 2))
    cluster.wait_until(lambda: python_admin.list_partition_reassignments() == {})
    # A broker that stands still never catches up: the move stays under way.
    cluster.produce("orders", "x")
    slow = 3 if cluster.controller.id != 3 else 1
    cluster.broker(slow).pause()
    python_admin.alter_partition_reassignments({part: [4, slow]})
    ongoing = python_admin.list_partition_reassignments()[part]
    assert (ongoing["adding_replicas"], ongoing["removing_replicas"]) == ([slow], [2])
    assert cluster.partition("orders", 0).adding == (slow,)
    cancelled = python_admin.alter_partition_reassignments({part: None})
    assert list(cancelled.values()) == [None]
    cluster.wait_until(lambda: cluster.partition("orders", 0).replicas == (4, 2))
    assert python_admin.list_partition_reassignments() == {}
    refused = python_admin.alter_partition_reassignments({part: None})
    assert list(refused.values()) == [kafka.errors.NoReassignmentInProgressError]
