"""ACLs as clients see them: set by an admin client, enforced by every broker, stored in
ZooKeeper.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from fakekafka import Cluster, UsageError
from fakekafka.tests.support.secure_clients import Login, confluent_config

pytestmark = [pytest.mark.clients, pytest.mark.slow]

USERS = {"root": "r", "alice": "a"}


def make_cluster(kafka_version: str = "3.9", **config: Any) -> Cluster:
    return Cluster(
        2,
        kafka_version=kafka_version,
        topics={"orders": 1},
        config=config,
        security={
            "listeners": "SASL_PLAINTEXT",
            "mechanisms": "PLAIN",
            "users": USERS,
            "authorizer": True,
            "super_users": "User:root",
        },
    )


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with make_cluster() as cluster:
        yield cluster
        assert cluster.failures == []


def config_of(cluster: Cluster, user: str, **more: Any) -> dict[str, Any]:
    login = Login("SASL_PLAINTEXT", "PLAIN", user, USERS[user])
    return {**confluent_config(cluster, login), **more}


def produced(cluster: Cluster, user: str, topic: str = "orders") -> str:
    """Return ``ok``, or the name of the error that the user's producer gets."""
    told: list[str] = []
    producer = Producer(config_of(cluster, user))
    producer.produce(
        topic, b"x", on_delivery=lambda error, _: told.append(error.name() if error else "ok")
    )
    producer.flush(10)
    return told[0]


def binding(principal: str, operation: str, permission: str = "ALLOW") -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC,
        "orders",
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType[permission],
    )


ANY: Any = None
EVERY = AclBindingFilter(
    ResourceType.ANY,
    ANY,
    ResourcePatternType.ANY,
    ANY,
    ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


def test_an_admin_client_makes_finds_and_deletes_acls(cluster: Cluster) -> None:
    """Created ACLs are in force at once, and deleted ones no longer are."""
    admin = AdminClient(config_of(cluster, "root"))
    assert produced(cluster, "alice") == "TOPIC_AUTHORIZATION_FAILED"
    for future in admin.create_acls([binding("User:alice", "WRITE")]).values():
        future.result(10)
    cluster.wait_until(lambda: len(cluster.security.acls()) == 1)
    assert produced(cluster, "alice") == "ok"
    assert admin.describe_acls(EVERY).result(10) == [binding("User:alice", "WRITE")]
    deleted = [future.result(10) for future in admin.delete_acls([EVERY]).values()]
    assert deleted == [[binding("User:alice", "WRITE")]]
    assert admin.describe_acls(EVERY).result(10) == []
    assert produced(cluster, "alice") == "TOPIC_AUTHORIZATION_FAILED"


def test_acls_are_kept_in_zookeeper(cluster: Cluster) -> None:
    """They are in Kafka's znodes and Kafka's JSON, so that other tools can read them."""
    cluster.security.allow("User:alice", "READ", topic="orders")
    cluster.security.deny("User:*", "ALTER", topic="ord", prefix=True)
    literal = json.loads(cluster.zookeeper.get("/kafka-acl/Topic/orders") or b"")
    assert literal == {
        "version": 1,
        "acls": [
            {"principal": "User:alice", "permissionType": "Allow", "operation": "Read", "host": "*"}
        ],
    }
    prefixed = json.loads(cluster.zookeeper.get("/kafka-acl-extended/prefixed/Topic/ord") or b"")
    assert prefixed["acls"][0]["permissionType"] == "Deny"
    assert cluster.zookeeper.get("/kafka-acl-changes/acl_changes_0000000000") == b"Topic:orders"


def test_a_broker_that_starts_again_knows_the_acls(cluster: Cluster) -> None:
    """A restarted broker reads all ACLs, and then follows changes."""
    cluster.security.allow("User:alice", "WRITE", topic="orders")
    cluster.broker(1).restart()
    cluster.broker(2).restart()
    cluster.wait_until(lambda: cluster.controller.id is not None)
    assert produced(cluster, "alice") == "ok"


def test_a_user_sees_the_topics_that_it_may_describe(cluster: Cluster) -> None:
    """Other topics are omitted as if they did not exist."""
    cluster.create_topic("secret")
    cluster.security.allow("User:alice", "DESCRIBE", topic="orders")
    assert set(AdminClient(config_of(cluster, "alice")).list_topics(timeout=10).topics) == {
        "orders"
    }
    root = AdminClient(config_of(cluster, "root")).list_topics(timeout=10)
    assert {"orders", "secret"} <= set(root.topics)


def test_a_user_without_alter_on_the_cluster_cannot_change_acls(cluster: Cluster) -> None:
    """Creating and deleting ACLs is CLUSTER_AUTHORIZATION_FAILED. (confluent-kafka drops the error
    of describing them.)
    """
    admin = AdminClient(config_of(cluster, "alice"))
    futures = [
        *admin.create_acls([binding("User:alice", "WRITE")]).values(),
        *admin.delete_acls([EVERY]).values(),
    ]
    for future in futures:
        with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
            future.result(10)
    assert cluster.security.acls() == ()


def test_without_an_authorizer_there_are_no_acls() -> None:
    """The error is SECURITY_DISABLED, as in Kafka."""
    with Cluster(1) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        with pytest.raises(KafkaException, match="SECURITY_DISABLED"):
            next(iter(admin.delete_acls([EVERY]).values())).result(10)
        with pytest.raises(UsageError, match="authorizer=True"):
            cluster.security.acls()


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1", "2.8"])
def test_older_releases_have_acls(kafka_version: str) -> None:
    """0.10 had no requests for ACLs: tools wrote them to ZooKeeper."""
    with make_cluster(kafka_version) as cluster:
        cluster.security.allow("User:alice", "WRITE", topic="orders")
        assert produced(cluster, "alice") == "ok"
        cluster.create_topic("secret")
        assert produced(cluster, "alice", "secret") in (
            "TOPIC_AUTHORIZATION_FAILED",
            "_UNKNOWN_TOPIC",
            "UNKNOWN_TOPIC_OR_PART",
        )


def test_reset_takes_rights_and_users_back(cluster: Cluster) -> None:
    """No ACL and no added user is left after ``reset``."""
    cluster.security.allow("User:alice", "WRITE", topic="orders")
    cluster.reset()
    assert cluster.security.acls() == ()
