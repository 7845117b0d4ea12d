"""After ``reset`` a cluster answers like a new one, whatever its history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakekafka import Cluster, UsageError
from fakekafka.protocol.admin import BROKER_RESOURCE, SET, AlterConfigsRequest, ConfigResource
from fakekafka.protocol.data import FindCoordinatorRequest, InitProducerIdRequest, MetadataRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import (
    ListGroupsRequest,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from fakekafka.protocol.security.acls import (
    Acl,
    AclEntry,
    AclOperation,
    CreateAclsRequest,
    Permission,
    Resource,
    ResourceType,
)
from fakekafka.protocol.security.delegation_tokens import CreateDelegationTokenRequest
from fakekafka.protocol.security.quotas import AlterClientQuotasRequest, QuotaAlteration
from fakekafka.protocol.transactions import (
    AddPartitionsToTxnRequest,
    ListTransactionsRequest,
    TransactionPartitions,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.testing.checks import fully_replicated
from fakekafka.tests.support.examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ORDERS = TopicPartition("orders", 0)
SECURITY = {
    "listeners": ["PLAINTEXT", "SASL_PLAINTEXT"],
    "users": {"alice": "secret"},
    "mechanisms": ("PLAIN", "SCRAM-SHA-256"),
    "authorizer": True,
    "super_users": ("User:ANONYMOUS", "User:admin"),
    "delegation_token_key": "key",
}

QUOTA = AlterClientQuotasRequest(
    (QuotaAlteration((("client-id", "y"),), (("producer_byte_rate", 10.0),)),)
)
ACL = Acl(
    Resource(ResourceType.TOPIC, "orders"),
    AclEntry("User:eve", "*", AclOperation.READ, Permission.ALLOW),
)


def ask(cluster: Cluster, request: Any, broker: int | None = None) -> Any:
    """Return the response of the given broker, or of the first live one."""
    living = [b for b in cluster.broker_ids if cluster.broker(b).is_alive]
    name = f"broker-{living[0] if broker is None else broker}"

    async def asked() -> Any:
        return await cluster.running.admin.ask(name, request, 5000)

    return cluster.call(asked, 10_000)


def coordinator(cluster: Cluster, key: str, key_type: int) -> int:
    """Return the id of the coordinator once it is available."""
    found: list[int] = []

    def is_found() -> bool:
        (one,) = ask(cluster, FindCoordinatorRequest((key,), key_type)).coordinators
        found.append(one.node_id)
        return bool(one.error is ErrorCode.NONE and cluster.broker(one.node_id).is_alive)

    cluster.wait_until(is_found)
    return found[-1]


def create(cluster: Cluster) -> None:
    """Create the topic unless it exists or its deletion waits for a dead broker."""
    if "orders" not in cluster.zookeeper.children("/brokers/topics"):
        cluster.create_topic("orders", replication_factor=2, config={"retention.ms": "77"})


def commit(cluster: Cluster, offset: int = 5) -> int:
    """Commit an offset of a group and return the offset committed then."""
    create(cluster)
    request = OffsetCommitRequest("group", -1, "", None, (OffsetCommitPartition(ORDERS, offset),))

    def is_done() -> bool:
        answer = ask(cluster, request, coordinator(cluster, "group", 0))
        return all(error is ErrorCode.NONE for _, error in answer.partitions)

    cluster.wait_until(is_done)
    fetched = ask(cluster, OffsetFetchRequest("group", (ORDERS,)), coordinator(cluster, "group", 0))
    return int(fetched.partitions[0].offset)


def begin(cluster: Cluster) -> tuple[int, int]:
    """Begin a transaction and return the producer's id and epoch."""
    create(cluster)
    told: list[Any] = []

    def is_known() -> bool:
        broker = coordinator(cluster, "id", 1)
        told.append(ask(cluster, InitProducerIdRequest("id", 60_000), broker))
        return bool(told[-1].error is ErrorCode.NONE)

    cluster.wait_until(is_known)
    producer = told[-1].producer_id, told[-1].producer_epoch
    partitions = TransactionPartitions("id", *producer, (ORDERS,))
    ask(cluster, AddPartitionsToTxnRequest((partitions,)), coordinator(cluster, "id", 1))
    return producer


def bounce(cluster: Cluster, topic: str) -> None:
    """Kill and restart the leader of a topic's first partition."""
    if topic not in cluster.topics() or not cluster.broker(1).is_alive:
        return
    cluster.wait_until(lambda: fully_replicated(cluster, [topic]))
    leader = cluster.partition(topic, 0).leader
    if leader is not None:
        cluster.broker(leader).kill(expire_session=True)
        cluster.wait_until(lambda: cluster.partition(topic, 0).leader not in (None, leader))
        cluster.broker(leader).start()


def kill(cluster: Cluster) -> None:
    """Kill the first broker once every partition has another replica that can lead it."""
    if cluster.broker(1).is_alive:
        cluster.wait_until(lambda: fully_replicated(cluster, cluster.topics()))
        cluster.broker(1).kill(expire_session=True)
        cluster.wait_until(lambda: cluster.controller.id not in (None, 1))


def change_config(cluster: Cluster) -> None:
    resource = ConfigResource(BROKER_RESOURCE, "1")
    ask(cluster, AlterConfigsRequest(((resource, (("log.retention.ms", SET, "5"),)),)), 1)


def leave_znodes(cluster: Cluster) -> None:
    for path in ("/mine", "/mine/too", "/consumers/old", "/admin/mine"):
        try:
            cluster.zookeeper.create(path, b"x")
        except UsageError:
            continue


HISTORY: dict[str, Callable[[Cluster], object]] = {
    "create": create,
    "produce": lambda c: c.produce("orders", "v") if "orders" in c.topics() else None,
    "commit": lambda c: commit(c) if c.broker(1).is_alive else None,
    "transaction": lambda c: begin(c) if c.broker(1).is_alive else None,
    "bounce the coordinator of groups": lambda c: bounce(c, OFFSETS_TOPIC),
    "bounce the coordinator of transactions": lambda c: bounce(c, TRANSACTIONS_TOPIC),
    "bounce the leader": lambda c: bounce(c, "orders"),
    "kill": kill,
    "delete": lambda c: c.delete_topic("orders") if "orders" in c.topics() else None,
    "configure": lambda c: change_config(c) if c.broker(1).is_alive else None,
    "quota": lambda c: c.security.set_quota(client_id="x", producer_byte_rate=10),
    "allow": lambda c: c.security.allow("User:bob", "Read", topic="orders"),
    "user": lambda c: c.security.add_user("bob", "hidden", mechanisms=["SCRAM-SHA-256"]),
    "quota of a client, a moment ago": lambda c: ask(c, QUOTA),
    "ACL of a client, a moment ago": lambda c: ask(c, CreateAclsRequest((ACL,))),
    "token": lambda c: ask(c, CreateDelegationTokenRequest((), -1)),
    "slow link": lambda c: c.network.latency(1),
    "znodes": leave_znodes,
}


def facts(cluster: Cluster) -> dict[str, Any]:
    """Return the facts that must be equal in a new cluster and a reset one."""
    brokers = cluster.running.living_brokers()
    passing = ("/controller", "/brokers/ids/", "/config/changes/")
    stored = cluster.zookeeper.tree().items()
    tree = {path: data for path, data in stored if not path.startswith(passing)}
    counted = ("IsrShrinksPerSec", "IsrExpandsPerSec", "UncleanLeaderElectionsPerSec")
    return {
        # SCRAM credentials have a new salt each time.
        "znodes": {
            path: data
            for path, data in tree.items()
            if "-" not in path and not path.startswith(("/config/users", "/latest_producer_id"))
        },
        "users": [path for path in tree if path.startswith("/config/users")],
        "acls": cluster.security.acls(),
        "topics": cluster.topics(),
        "metadata": [t.name for t in ask(cluster, MetadataRequest(None)).topics],
        "groups": [ask(cluster, ListGroupsRequest(), b).groups for b in cluster.broker_ids],
        "transactions": [
            ask(cluster, ListTransactionsRequest((), ()), b).transactions
            for b in cluster.broker_ids
        ],
        "dynamic": [(dict(b.config.dynamic), dict(b.config.dynamic_default)) for b in brokers],
        "tokens": [b.security.tokens.all() for b in brokers],
        "quotas": [b.security.quotas.is_any for b in brokers],
        "metrics": [
            {name: cluster.broker(b).metrics[name] for name in counted} for b in cluster.broker_ids
        ],
        "latency": cluster.network.rules.latency,
    }


def answers(cluster: Cluster) -> dict[str, Any]:
    """Return what the first clients get; a topic, a group and a transaction remain."""
    create(cluster)
    return {
        "offset": cluster.produce("orders", "first"),
        "committed": commit(cluster, 1),
        "producer": begin(cluster)[0] % 1000,
        "epoch": begin(cluster)[1],
    }


@pytest.mark.hypothesis
@pytest.mark.parametrize("version", ["3.9", "2.8"])
def test_a_reset_cluster_answers_as_a_new_one(version: str) -> None:
    """A reset cluster answers like a new one; brokers, as in Kafka, keep coordinator epochs, but
    none may outlive a reset.
    """
    with Cluster(brokers=3, kafka_version=version, security=SECURITY) as cluster:
        cluster.wait_until(lambda: cluster.controller.id)
        expected = facts(cluster)
        expected_answers = answers(cluster)
        cluster.reset()
        assert facts(cluster) == expected

        @settings(
            max_examples=examples(8),
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            database=None,
        )
        @given(st.lists(st.sampled_from(sorted(HISTORY)), max_size=12))
        def check(history: list[str]) -> None:
            try:
                for name in history:
                    HISTORY[name](cluster)
            finally:
                cluster.reset()  # so that a shorter history, tried next, starts clean, too
            assert facts(cluster) == expected
            assert answers(cluster) == expected_answers
            cluster.reset()
            assert facts(cluster) == expected

        check()
