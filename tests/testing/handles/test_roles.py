"""Broker roles, accepted wherever a broker is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fakekafka import Cluster, Simulation, UsageError
from fakekafka.protocol.errors import NotThereYet
from fakekafka.testing.emulated_cluster import EmulatedCluster
from fakekafka.testing.handles.roles import BrokerReference


@pytest.fixture(scope="module")
def looked_at() -> Iterator[Simulation]:
    """Start a read-only cluster in which broker 2 leads, 3 and 4 follow, and 1 is dead."""
    with Simulation(4, seed=1, topics={"orders": {"assignment": {0: [1, 2, 3, 4]}}}) as made:
        made.broker(1).kill()
        made.wait_for_leader("orders", other_than=1, timeout_s=60)
        yield made


@pytest.fixture
def simulation() -> Iterator[Simulation]:
    with Simulation(3, seed=1, topics={"orders": {"assignment": {0: [2, 3, 1]}}}) as made:
        yield made


@pytest.mark.parametrize(
    ("role", "broker"),
    [
        (2, 2),
        ("broker-3", 3),
        ("leader:orders-0", 2),
        ("preferred:orders-0", 1),
        ("follower:orders-0", 3),
        ("follower:orders-0:1", 3),
        ("follower:orders-0:2", 4),
    ],
)
def test_a_broker_is_found_by_its_role(looked_at: Simulation, role: Any, broker: int) -> None:
    """A role names one broker; live followers are numbered in the order of the assignment."""
    assert looked_at.broker(role).id == broker


def test_the_controller_is_a_role(looked_at: Simulation) -> None:
    assert looked_at.broker("controller").id == looked_at.controller.id


def test_a_random_broker_lives(looked_at: Simulation) -> None:
    assert {looked_at.broker("random").id for _ in range(50)} == {2, 3, 4}


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("leader:nothing-0", r"there is no partition nothing-0; topics are \['orders'\]"),
        ("leader:orders-7", "there is no partition orders-7; 'orders' has 1"),
        ("follower:orders-0:3", "no broker has the role 'follower:orders-0:3' now"),
        ("coordinator:shop", "no broker has the role 'coordinator:shop' now"),
        ("transaction-coordinator:a", "no broker has the role 'transaction-coordinator:a' now"),
    ],
)
def test_a_role_without_a_broker_raises_not_there_yet(
    looked_at: Simulation, role: str, message: str
) -> None:
    with pytest.raises(NotThereYet, match=message):
        looked_at.broker(role)


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("leadr:orders-0", "did you mean 'leader:orders-0'?"),
        ("follower:orders-0:0", "names no broker"),
        ("broker-9", "there is no broker 'broker-9'; there are broker-1, broker-2"),
        ("", "'' names no broker"),
    ],
)
def test_a_role_that_does_not_exist_is_refused(
    looked_at: Simulation, role: str, message: str
) -> None:
    """An unknown role is a usage error, not a role that a wait may still see filled."""
    with pytest.raises(UsageError, match=re.escape(message)) as refused:
        looked_at.broker(role)
    assert not isinstance(refused.value, NotThereYet)


USES: dict[str, Callable[[EmulatedCluster], object]] = {
    "records": lambda c: c.records("orders", 0, replica="follower:orders-0"),
    "log_bytes": lambda c: c.log_bytes("orders", 0, replica="leader:orders-0"),
    "expire_session": lambda c: c.zookeeper.expire_session("leader:orders-0"),
    "move_to": lambda c: c.controller.move_to("leader:orders-0"),
    "inject": lambda c: c.inject("Fetch", delay_ms=1, broker="leader:orders-0"),
    "partition": lambda c: c.network.partition(["leader:orders-0"], ["follower:orders-0"]),
    "isolate": lambda c: c.network.isolate("controller"),
    "latency": lambda c: c.network.latency(1, source="leader:orders-0", target="zk-1"),
    "kill": lambda c: c.broker("leader:orders-0").kill(),
}


@pytest.mark.parametrize("name", USES)
def test_a_role_can_be_used_wherever_a_broker_is_named(simulation: Simulation, name: str) -> None:
    leader = simulation.partition("orders", 0).leader
    USES[name](simulation)
    if name == "move_to":
        assert simulation.controller.id == leader
    if name == "kill":
        assert not simulation.broker(leader or 0).is_alive
    if name == "partition":
        assert simulation.runtime.network.is_cut("broker-2", "broker-3")


@pytest.mark.parametrize("version", ["0.10", "3.9"])
def test_the_coordinator_of_a_group_is_the_leader_of_its_partition(version: str) -> None:
    """The role ``coordinator:GROUP`` is the broker that FindCoordinator returns."""
    from fakekafka.protocol import data

    with Cluster(brokers=3, kafka_version=version, config={"offsets.topic.num.partitions": 7}) as c:
        request = data.FindCoordinatorRequest(("checkout",))
        c.wait_until(lambda: c.ask(1, request).coordinators[0].error == 0)
        asked = c.ask(1, request).coordinators[0]
        assert c.broker("coordinator:checkout").id == asked.node_id


def test_references_with_the_same_text_are_equal() -> None:
    assert BrokerReference("leader:a-0") == BrokerReference("leader:a-0")
    assert len({BrokerReference("leader:a-0"), BrokerReference("leader:a-0")}) == 1
    assert BrokerReference("leader:a-0") != BrokerReference("leader:a-1")
