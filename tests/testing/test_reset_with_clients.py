"""``reset`` while clients are active: recent changes, and topics created meanwhile."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fakekafka import Simulation, UsageError
from fakekafka.protocol.admin import BROKER_RESOURCE, SET, AlterConfigsRequest, ConfigResource
from fakekafka.protocol.data import (
    FetchPartition,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.groups import OffsetCommitPartition, OffsetCommitRequest
from fakekafka.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from fakekafka.protocol.security.acls import (
    Acl,
    AclEntry,
    AclFilter,
    AclOperation,
    CreateAclsRequest,
    Permission,
    Resource,
    ResourceType,
)
from fakekafka.protocol.security.authentication import (
    AlterUserScramCredentialsRequest,
    ScramUpsertion,
)
from fakekafka.protocol.security.configuration import SecurityConfig
from fakekafka.protocol.security.delegation_tokens import CreateDelegationTokenRequest
from fakekafka.protocol.security.quotas import AlterClientQuotasRequest, QuotaAlteration
from fakekafka.protocol.values import TopicPartition
from fakekafka.testing import reset as resetting
from fakekafka.testing.checks import fully_replicated
from fakekafka.testing.reset import reset
from fakekafka.testing.running import RunningCluster
from fakekafka.testing.security import ClusterSecurity
from fakekafka.tests.support.virtual_clients import VirtualClient, header, metadata
from fakekafka.tests.support.whole_clusters import ask

SECURITY = SecurityConfig.of(
    {"authorizer": True, "super_users": ("User:ANONYMOUS",), "delegation_token_key": "key"}
)
ACL = Acl(
    Resource(ResourceType.TOPIC, "orders"),
    AclEntry("User:bob", "*", AclOperation.READ, Permission.ALLOW),
)
CHANGES = {
    "quota": AlterClientQuotasRequest(
        (QuotaAlteration((("client-id", "x"),), (("producer_byte_rate", 10.0),)),)
    ),
    "ACL": CreateAclsRequest((ACL,)),
    "user": AlterUserScramCredentialsRequest(
        (), (ScramUpsertion("bob", 1, 4096, b"salt", b"x" * 32),)
    ),
    "token": CreateDelegationTokenRequest((), -1),
    "configuration of a broker": AlterConfigsRequest(
        ((ConfigResource(BROKER_RESOURCE, "1"), (("log.retention.ms", SET, "5"),)),)
    ),
    "configuration of all brokers": AlterConfigsRequest(
        ((ConfigResource(BROKER_RESOURCE, ""), (("log.retention.ms", SET, "5"),)),)
    ),
}


@contextmanager
def secured() -> Iterator[tuple[Simulation, Callable[[], None]]]:
    """Start a cluster with ACLs, quotas and tokens; yield it and the function that resets it."""
    config = SECURITY.broker_config(is_acl_authorizer=True, has_tokens=True)
    with Simulation(brokers=3, config=config, trace=False) as simulation:
        security = ClusterSecurity(SECURITY, "localhost")
        security.attach(simulation.running)
        yield simulation, lambda: reset(simulation.running, security.restore)
        assert simulation.failures == []


def known(simulation: Simulation) -> list[Any]:
    """Return the state of each broker apart from topics."""
    return [
        (
            broker.security.quotas.is_any,
            () if (rights := broker.security.authorizer) is None else rights.acls(AclFilter()),
            broker.security.scram.users("SCRAM-SHA-256"),
            broker.security.tokens.all(),
            dict(broker.config.dynamic),
        )
        for broker in simulation.running.living_brokers()
    ]


@pytest.mark.parametrize("latency_ms", [0, 20])
@pytest.mark.parametrize("name", CHANGES)
def test_reset_undoes_a_change_that_brokers_have_not_learned_of_yet(
    name: str, latency_ms: int
) -> None:
    """``reset`` undoes a client's change even before the brokers have learned of it."""
    with secured() as (simulation, reset_it):
        expected = known(simulation)
        for broker in simulation.broker_ids:
            simulation.network.latency(latency_ms)
            ask(simulation, broker, CHANGES[name])
            reset_it()
            simulation.run_for(1000)
            assert known(simulation) == expected


def settle(simulation: Simulation, condition: Callable[[], object]) -> None:
    """Evaluate a condition every 100 ms until it holds."""
    for _ in range(100):
        if condition():
            return
        simulation.run_for(100)
    pytest.fail("it does not come to hold within 10 s")


def coordinator(simulation: Simulation, key_type: int) -> int:
    """Return the coordinator of the key "one", creating its internal topic if necessary."""
    found: list[int] = []

    def is_found() -> bool:
        (one,) = ask(simulation, 1, FindCoordinatorRequest(("one",), key_type)).coordinators
        found.append(one.node_id)
        return bool(one.error is ErrorCode.NONE)

    settle(simulation, is_found)
    return found[-1]


def commit(simulation: Simulation) -> bool:
    commits = (OffsetCommitPartition(TopicPartition("orders", 0), 5),)
    request = OffsetCommitRequest("one", -1, "", None, commits)
    answer = ask(simulation, coordinator(simulation, 0), request)
    return all(error is ErrorCode.NONE for _, error in answer.partitions)


def begin(simulation: Simulation) -> bool:
    request = InitProducerIdRequest("one", 60_000)
    return ask(simulation, coordinator(simulation, 1), request).error is ErrorCode.NONE


def bounce(simulation: Simulation, topic: str) -> None:
    """Give the topic's first partition another leader and a higher leader epoch."""
    leader = simulation.partition(topic, 0).leader
    assert leader is not None
    simulation.broker(leader).kill(expire_session=True)
    simulation.run_until(lambda: simulation.partition(topic, 0).leader not in (None, leader))
    simulation.broker(leader).start()
    simulation.run_until(lambda: fully_replicated(simulation, [topic]))


@pytest.mark.parametrize("version", ["3.9", "2.8", "1.1"])
def test_a_client_that_looks_up_its_coordinator_during_a_reset_finds_one_that_works(
    version: str,
) -> None:
    """A client that recreates the internal topics during a reset finds a working coordinator,
    although their epochs start below those that brokers know.
    """
    config = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
    with Simulation(brokers=3, kafka_version=version, config=config, trace=False) as simulation:
        simulation.create_topic("orders")
        settle(simulation, lambda: commit(simulation))
        settle(simulation, lambda: begin(simulation))
        for topic in (OFFSETS_TOPIC, TRANSACTIONS_TOPIC):
            bounce(simulation, topic)
            bounce(simulation, topic)

        def come_between() -> None:
            for key_type in (0, 1):
                coordinator(simulation, key_type)
            simulation.create_topic("orders", config={"retention.ms": "77"})
            simulation.run_for(500)

        reset(simulation.running, come_between)
        assert simulation.topics() == [OFFSETS_TOPIC, TRANSACTIONS_TOPIC, "orders"]
        assert b"77" in (simulation.zookeeper.get("/config/topics/orders") or b"")
        settle(simulation, lambda: commit(simulation))
        settle(simulation, lambda: begin(simulation))


def test_a_fetch_session_does_not_survive_a_reset() -> None:
    """``reset`` ends fetch sessions, with an error for their clients, to empty the cache."""
    with Simulation(brokers=1, trace=False, topics={"orders": 1}) as simulation:
        partition = FetchPartition(TopicPartition("orders", 0), 0, 1 << 20)
        full = FetchRequest(-1, 0, 1, 1 << 20, (partition,), session_epoch=0)
        session_id = ask(simulation, 1, full).session_id
        assert session_id
        reset(simulation.running, lambda: None)
        next_one = FetchRequest(-1, 0, 1, 1 << 20, (), session_id=session_id, session_epoch=1)
        assert ask(simulation, 1, next_one).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_reset_clears_the_metrics_of_controller_requests() -> None:
    with Simulation(brokers=2, trace=False, topics={"orders": 4}) as simulation:
        name = "RequestRateAndQueueTimeMs,broker-id=2"
        controller = simulation.broker(simulation.controller.id or 0)
        assert controller.metrics[name]["count"] > 0
        reset(simulation.running, lambda: None)
        assert controller.metrics[name]["count"] == 0


ONE = struct.pack(">h", 3) + b"one"


def keep_asking(simulation: Simulation, frame: bytes) -> None:
    """Let a TCP client send the same frame every half millisecond."""
    client = VirtualClient(simulation)

    def send() -> None:
        client.send(frame)
        simulation.runtime.call_later(None, 500, send)

    send()


@pytest.mark.parametrize(
    ("frame", "topic", "request_name"),
    [
        (metadata(1, ["again"]), "again", "MetadataRequest"),
        (header(10, 0, 1) + ONE, OFFSETS_TOPIC, "FindCoordinatorRequest"),
        (header(10, 1, 1) + ONE + b"\1", TRANSACTIONS_TOPIC, "FindCoordinatorRequest"),
    ],
    ids=["metadata", "group", "transaction"],
)
def test_a_client_that_creates_topics_again_and_again_is_named(
    frame: bytes, topic: str, request_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``reset`` names a client that keeps recreating topics, as only closing that client helps."""
    delete = resetting._delete

    def delete_slowly(running: RunningCluster, topics: Sequence[str]) -> None:
        delete(running, topics)
        running.wait_until(lambda: topic in simulation.topics(), 10)

    monkeypatch.setattr(resetting, "_delete", delete_slowly)
    with Simulation(brokers=3, trace=False) as simulation:
        keep_asking(simulation, frame)
        with pytest.raises(
            UsageError,
            match=rf"reset deleted every topic 5 times, .*: '{topic}' by {request_name} of client "
            r"'c' \(127\.0\.0\.1:9092-127\.0\.0\.1:50000-\d\)\. Close the clients",
        ):
            reset(simulation.running, lambda: None)
