"""Kafka's view of ZooKeeper: election and guarded writes (docs/kafka/controller-failover.md)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from fakekafka.protocol.values import ReplicaAssignment
from fakekafka.protocol.znode_paths import CONTROLLER_EPOCH
from fakekafka.statemachines.zookeeper.client import KafkaZkClient
from fakekafka.statemachines.zookeeper.errors import ControllerMoved
from fakekafka.statemachines.zookeeper.topics import TopicIdReplicaAssignment
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import T2, TP, ZkFixture, decision, is_election
from fakekafka.zkfake.messages import (
    CheckRequest,
    CreateRequest,
    DeleteRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)

# --- controller


def test_the_first_controller_has_epoch_one(fixture: ZkFixture) -> None:
    """CP-67, CP-68, CP-69: the epoch outlives the controller, and the next one has epoch two."""
    zk = fixture.zk
    assert run_now(zk.brokers.register_controller_and_increment_controller_epoch(1, 99)) == (1, 1)
    assert fixture.zookeeper.get("/controller") == (b'{"version":1,"brokerid":1,"timestamp":"99"}')
    assert run_now(zk.brokers.get_controller_id()) == 1
    fixture.client.close()
    after = fixture.beside()
    assert run_now(after.zk.brokers.get_controller_id()) is None
    assert run_now(after.zk.brokers.get_controller_epoch()) == (1, 1)
    assert run_now(after.zk.brokers.register_controller_and_increment_controller_epoch(1)) == (2, 2)


def test_the_epoch_node(fixture: ZkFixture) -> None:
    """CP-71: set, create, create again, and set twice with version 0."""
    zk = fixture.zk
    assert run_now(zk.brokers.get_controller_epoch()) is None
    assert run_now(zk.brokers.set_controller_epoch(1, 0))[0] == ZkCode.NONODE
    assert run_now(zk.brokers.create_controller_epoch(0)) == ZkCode.OK
    assert run_now(zk.brokers.create_controller_epoch(0)) == ZkCode.NODEEXISTS
    assert run_now(zk.brokers.set_controller_epoch(1, 0)) == (ZkCode.OK, 1)
    assert run_now(zk.brokers.set_controller_epoch(1, 0))[0] == ZkCode.BADVERSION


def test_a_controller_can_give_up(fixture: ZkFixture) -> None:
    """CP-72: it uses the version it registered with; doing so twice is no error."""
    zk = fixture.zk
    _, version = run_now(zk.brokers.register_controller_and_increment_controller_epoch(1))
    run_now(zk.brokers.delete_controller(version))
    assert run_now(zk.brokers.get_controller_id()) is None
    run_now(zk.brokers.delete_controller(version))


@pytest.mark.parametrize("version", ["0.10", "1.1", "2.8", "3.9"])
def test_the_election_has_one_winner(version: str) -> None:
    """The loser gets an error, and the epoch does not change
    (docs/kafka/controller-failover.md#election)."""
    winner = ZkFixture(version)
    loser = winner.beside()
    assert run_now(winner.zk.brokers.register_controller_and_increment_controller_epoch(1)) == (
        1,
        1,
    )
    with pytest.raises(ControllerMoved):
        run_now(loser.zk.brokers.register_controller_and_increment_controller_epoch(2))
    assert run_now(loser.zk.brokers.get_controller_id()) == 1
    known = run_now(loser.zk.brokers.get_controller_epoch())
    assert known is not None
    assert known[0] == 1


def test_before_2_1_the_epoch_was_created_as_one() -> None:
    """Its version is assumed; the second controller reads the true one."""
    first = ZkFixture("1.1")
    assert run_now(first.zk.brokers.register_controller_and_increment_controller_epoch(1)) == (1, 1)
    assert run_now(first.zk.brokers.get_controller_epoch()) == (1, 0)
    first.client.close()
    second = first.beside()
    assert run_now(second.zk.brokers.register_controller_and_increment_controller_epoch(2)) == (
        2,
        1,
    )


def test_before_2_1_a_raced_epoch_means_the_controller_moved() -> None:
    """The ephemeral node was created, but the conditional set failed."""
    made = ZkFixture("1.1")
    run_now(made.zk.brokers.create_controller_epoch(4))
    made.client.fail_next(lambda r: isinstance(r, SetDataRequest), ZkCode.BADVERSION)
    with pytest.raises(ControllerMoved):
        run_now(made.zk.brokers.register_controller_and_increment_controller_epoch(1))


def test_before_2_1_the_epoch_is_raised_by_one_of_two() -> None:
    """The write expects the version that was read; the other broker has been deposed already."""
    fixture = ZkFixture("1.1")
    zk, other = fixture.zk, fixture.beside().zk
    run_now(zk.brokers.create_controller_epoch(7))
    raced: list[object] = []

    def race(request: object) -> bool:
        if isinstance(request, SetDataRequest) and request.path == CONTROLLER_EPOCH and not raced:
            raced.append(request)
            run_now(other.brokers.set_controller_epoch(8, 0))
        return False

    fixture.client.fail_next(race, ZkCode.OK)
    with pytest.raises(ControllerMoved, match="another broker raised the controller epoch"):
        run_now(zk.brokers.register_controller_and_increment_controller_epoch(1))
    assert run_now(zk.brokers.get_controller_epoch()) == (8, 1)


def test_a_repeated_election_recognises_its_own_success(fixture: ZkFixture) -> None:
    """The answer to the first attempt was lost (docs/kafka/controller-failover.md#election)."""
    fixture.client.fail_next(is_election, ZkCode.CONNECTIONLOSS, applied=True)
    zk = fixture.zk
    assert run_now(zk.brokers.register_controller_and_increment_controller_epoch(1)) == (1, 1)


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_an_epoch_that_another_has_raised_is_not_taken(version: str) -> None:
    """The other controller came between reading the epoch and the transaction, and disappeared
    again."""
    made = ZkFixture(version)
    run_now(made.zk.brokers.create_controller_epoch(4))
    other = made.beside()
    raced: list[tuple[int, int]] = []

    def race(request: Any) -> bool:
        if is_election(request) and not raced:
            brokers = other.zk.brokers
            raced.append(run_now(brokers.register_controller_and_increment_controller_epoch(2)))
            other.client.close()
        return False

    made.client.fail_next(race, ZkCode.OK)
    with pytest.raises(ControllerMoved):
        run_now(made.zk.brokers.register_controller_and_increment_controller_epoch(1))
    assert raced == [(5, 1)]
    assert run_now(made.zk.brokers.get_controller_epoch()) == (5, 1)
    assert run_now(made.zk.brokers.get_controller_id()) is None


def test_an_election_that_another_won_in_the_same_epoch_is_lost(fixture: ZkFixture) -> None:
    """Both read the same epoch, and the stored one equals the one that the loser wanted to
    write."""
    other = fixture.beside()
    raced: list[tuple[int, int]] = []

    def race(request: Any) -> bool:
        if is_election(request) and not raced:
            brokers = other.zk.brokers
            raced.append(run_now(brokers.register_controller_and_increment_controller_epoch(2)))
        return False

    fixture.client.fail_next(race, ZkCode.OK)
    with pytest.raises(ControllerMoved, match="broker 2 won the controller election"):
        run_now(fixture.zk.brokers.register_controller_and_increment_controller_epoch(1))
    assert raced == [(1, 1)]


def test_a_node_of_the_brokers_former_session_is_no_successful_election(fixture: ZkFixture) -> None:
    """The node names the broker, but with the previous epoch, and disappears with that session."""
    former = fixture.beside().zk.brokers
    run_now(former.register_controller_and_increment_controller_epoch(1))
    with pytest.raises(ControllerMoved, match="broker 1 won the controller election"):
        run_now(fixture.zk.brokers.register_controller_and_increment_controller_epoch(1))


def test_a_vanished_controller_is_no_success(fixture: ZkFixture) -> None:
    """There is no controller, but there was one (docs/kafka/controller-failover.md#election)."""
    fixture.client.fail_next(is_election, ZkCode.NODEEXISTS)
    with pytest.raises(ControllerMoved, match="vanished"):
        run_now(fixture.zk.brokers.register_controller_and_increment_controller_epoch(1))


def test_a_raced_epoch_creation_is_read_again(fixture: ZkFixture) -> None:
    """There are two first candidates, and the loser of the create continues with the stored
    epoch."""
    raced: list[Any] = []

    def race(request: Any) -> bool:
        if isinstance(request, CreateRequest) and not raced:
            raced.append(request)
            run_now(fixture.zk.brokers.create_controller_epoch(0))
        return False

    fixture.client.fail_next(race, ZkCode.OK)
    zk = fixture.zk
    assert run_now(zk.brokers.register_controller_and_increment_controller_epoch(1)) == (1, 1)


Write = Callable[[KafkaZkClient, int], Coroutine[Any, Any, Any]]
GUARDED: dict[str, Write] = {
    "delete ISR changes": lambda zk, v: zk.admin.delete_isr_change_notifications([0], v),
    "delete all ISR changes": lambda zk, v: zk.admin.delete_isr_change_notifications(None, v),
    "delete log dir events": lambda zk, v: zk.admin.delete_log_dir_event_notifications([0], v),
    "delete all log dir events": lambda zk, v: zk.admin.delete_log_dir_event_notifications(None, v),
    "delete topic deletions": lambda zk, v: zk.admin.delete_topic_deletions(["t"], v),
    "set reassignment": lambda zk, v: zk.admin.set_or_create_partition_reassignment({TP: [9]}, v),
    "delete reassignment": lambda zk, v: zk.admin.delete_partition_reassignment(v),
    "delete preferred election": lambda zk, v: zk.admin.delete_preferred_replica_election(v),
    "delete recursively": lambda zk, v: zk.requests.delete_recursive("/brokers/topics/t", v),
    "delete path": lambda zk, v: zk.requests.delete_path("/admin/delete_topics/t", v, False),
    "delete topic": lambda zk, v: zk.topics.delete_topic_znode("t", v),
    "delete topic configs": lambda zk, v: zk.admin.delete_topic_configs(["t"], v),
    "set configs": lambda zk, v: zk.admin.set_or_create_entity_configs(
        "topics", "t", {"a": "b"}, v
    ),
    "create states": lambda zk, v: zk.topics.create_topic_partition_states_raw({T2: decision()}, v),
    "set states": lambda zk, v: zk.topics.set_topic_partition_states_raw({TP: decision(9)}, v),
    "update leadership": lambda zk, v: zk.topics.update_leader_and_isr(
        {TP: decision(9).leader_and_isr}, 1, v
    ),
    "set assignment": lambda zk, v: zk.topics.set_topic_assignment(
        "t", None, {TP: ReplicaAssignment((9,))}, v
    ),
    "set ids": lambda zk, v: zk.topics.set_topic_ids([TopicIdReplicaAssignment("t", "i", ())], v),
    "delete controller": lambda zk, v: zk.brokers.delete_controller(v),
}


def populated(version: str = "2.8") -> tuple[ZkFixture, int]:
    """Return a cluster with a controller and one node of each kind, and the current epoch
    version."""
    made = ZkFixture(version)
    zk = made.zk
    run_now(zk.brokers.create_top_level_paths())
    _, epoch_version = run_now(zk.brokers.register_controller_and_increment_controller_epoch(1))
    run_now(zk.topics.create_topic_assignment("t", {0: ReplicaAssignment((1, 2))}))
    run_now(zk.topics.create_topic_partition_states_raw({TP: decision()}))
    run_now(zk.admin.set_or_create_entity_configs("topics", "t", {}))
    run_now(zk.admin.create_delete_topic_path("t"))
    run_now(zk.admin.propagate_isr_changes([TP]))
    run_now(zk.admin.propagate_log_dir_event(1))
    run_now(zk.admin.create_partition_reassignment({TP: (2, 1)}))
    run_now(zk.admin.create_preferred_replica_election([TP]))
    return made, epoch_version


@pytest.mark.parametrize("name", GUARDED)
def test_a_controller_that_moved_cannot_write(name: str) -> None:
    """CP-73: nothing is changed."""
    made, version = populated()
    before = made.zookeeper.tree.snapshot()._replace(last_zxid=0)
    with pytest.raises(ControllerMoved):
        run_now(GUARDED[name](made.zk, version + 1))
    assert made.zookeeper.tree.snapshot()._replace(last_zxid=0) == before


@pytest.mark.parametrize("name", GUARDED)
def test_the_right_controller_can_write(name: str) -> None:
    """The counterpart of CP-73: the same writes under the right version change something."""
    made, version = populated()
    before = made.zookeeper.tree.snapshot()
    run_now(GUARDED[name](made.zk, version))
    assert made.zookeeper.tree.snapshot().nodes != before.nodes


def test_before_2_1_nothing_was_guarded() -> None:
    """The given version does not matter."""
    made, version = populated("1.1")
    made.client.requests.clear()
    run_now(made.zk.topics.set_topic_partition_states_raw({TP: decision(9)}, version + 7))
    assert [type(request) for request in made.client.requests] == [SetDataRequest]


def test_a_guarded_write_is_a_transaction(fixture: ZkFixture) -> None:
    """It checks the epoch's version, then writes (docs/kafka/zookeeper.md#znodes)."""
    run_now(fixture.zk.brokers.register_controller_and_increment_controller_epoch(1))
    fixture.client.requests.clear()
    run_now(fixture.zk.admin.delete_topic_configs(["t"], 1))
    assert fixture.client.requests == [
        MultiRequest((CheckRequest("/controller_epoch", 1), DeleteRequest("/config/topics/t")))
    ]


def test_a_missing_epoch_node_fails_guarded_writes(fixture: ZkFixture) -> None:
    """If the node was deleted by hand, this is an error, but no other controller took over."""
    with pytest.raises(ZooKeeperError, match="NONODE"):
        run_now(fixture.zk.admin.delete_topic_configs(["t"], 1))


def test_failures_of_whole_transactions_are_the_writes(fixture: ZkFixture) -> None:
    """With an expired session there are no results per operation."""
    run_now(fixture.zk.brokers.register_controller_and_increment_controller_epoch(1))
    fixture.client.fail_next(lambda r: isinstance(r, MultiRequest), ZkCode.SESSIONEXPIRED)
    with pytest.raises(ZooKeeperError, match="SESSIONEXPIRED"):
        run_now(fixture.zk.admin.delete_topic_configs(["t"], 1))
