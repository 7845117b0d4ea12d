"""Kafka's view of ZooKeeper: topics, configurations, notifications
(docs/kafka/zookeeper.md#znodes)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import znode_paths
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.values import LeaderAndIsr, ReplicaAssignment, TopicPartition
from fakekafka.statemachines.zookeeper.topics import TopicIdReplicaAssignment
from fakekafka.tests.support.run_now import run_now
from fakekafka.tests.support.zookeeper_fixture import T1, T2, TP, ZkFixture, decision
from fakekafka.zkfake.messages import ZkCode, ZooKeeperError

U0 = TopicPartition("u", 0)


# --- topics


def test_topics_are_read_as_written(fixture: ZkFixture) -> None:
    """This includes assignments, ids and partitions; missing topics are left out."""
    zk = fixture.zk
    moving = ReplicaAssignment((1, 2)).reassign_to((2, 3))
    run_now(zk.topics.create_topic_assignment("t", {1: ReplicaAssignment((2,)), 0: moving}, "id"))
    run_now(zk.topics.create_topic_assignment("u", {0: ReplicaAssignment((1,))}))
    assert run_now(zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t", "gone"])) == [
        TopicIdReplicaAssignment("t", "id", ((TP, moving), (T1, ReplicaAssignment((2,)))))
    ]
    assert run_now(zk.topics.get_replica_assignment_and_topic_ids_for_topics(["u"])) == [
        TopicIdReplicaAssignment("u", None, ((U0, ReplicaAssignment((1,))),))
    ]
    assert run_now(zk.topics.get_full_replica_assignment_for_topics(["t", "u"])) == {
        TP: moving,
        T1: ReplicaAssignment((2,)),
        U0: ReplicaAssignment((1,)),
    }
    assert run_now(zk.topics.topic_exists("t"))
    with pytest.raises(ZooKeeperError, match="NODEEXISTS"):
        run_now(zk.topics.create_topic_assignment("t", {}))


def test_a_topics_assignment_is_replaced_as_a_whole(fixture: ZkFixture) -> None:
    """CP-203: the id is part of the payload, and must be passed to be kept."""
    zk = fixture.zk
    run_now(zk.topics.create_topic_assignment("t", {0: ReplicaAssignment((1,))}, "id"))
    run_now(zk.topics.set_topic_assignment("t", "id", {TP: ReplicaAssignment((2,))}))
    assert run_now(zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t"])) == [
        TopicIdReplicaAssignment("t", "id", ((TP, ReplicaAssignment((2,))),))
    ]
    with pytest.raises(ZooKeeperError, match="NONODE"):
        run_now(zk.topics.set_topic_assignment("gone", None, {}))


@pytest.mark.parametrize("version", ["1.1", "2.8"])
def test_topic_ids_are_back_filled(version: str) -> None:
    """CP-203: they are written with the assignment, if the release has ids."""
    made = ZkFixture(version)
    run_now(made.zk.topics.create_topic_assignment("t", {0: ReplicaAssignment((1,))}))
    [topic] = run_now(made.zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t"]))
    assert topic.topic_id is None
    run_now(made.zk.topics.set_topic_ids([TopicIdReplicaAssignment("t", "new", topic.assignment)]))
    [topic] = run_now(made.zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t"]))
    assert topic.topic_id == ("new" if version == "2.8" else None)
    assert topic.assignment == ((TP, ReplicaAssignment((1,))),)


def test_partition_states_are_created_with_their_parents(fixture: ZkFixture) -> None:
    """Existing parents are no error, an existing state is one."""
    zk = fixture.zk
    run_now(zk.topics.create_topic_assignment("t", {0: ReplicaAssignment((1, 2))}))
    for expected in (ZkCode.OK, ZkCode.NODEEXISTS):
        [answer] = run_now(zk.topics.create_topic_partition_states_raw({TP: decision()}))
        assert answer.code == expected
    assert run_now(zk.topics.get_topic_partition_state(TP)) == decision()
    assert run_now(zk.topics.get_topic_partition_states([T1, TP])) == {TP: decision()}


def test_updates_of_leadership_sort_themselves(fixture: ZkFixture) -> None:
    """CP-74: one result has the states written with version + 1, those to retry, and those
    failed."""
    zk = fixture.zk
    run_now(zk.requests.create_recursive("/brokers/topics/t"))
    run_now(zk.topics.create_topic_partition_states_raw({TP: decision(), T1: decision()}))
    right, stale = LeaderAndIsr(2, 1, (2,), 0), LeaderAndIsr(2, 1, (2,), 7)
    result = run_now(zk.topics.update_leader_and_isr({TP: right, T1: stale, T2: right}, 1))
    assert result.to_retry == [T1]
    assert result.finished[TP] == right.with_zk_version(1)
    failure = result.finished[T2]
    assert isinstance(failure, ZooKeeperError)
    assert failure.code == ZkCode.NONODE
    empty = run_now(zk.topics.update_leader_and_isr({}, 1))
    assert (empty.finished, empty.to_retry) == ({}, [])


def test_an_exception_fails_every_update(fixture: ZkFixture) -> None:
    """ControllerMoved is raised instead."""
    error = RuntimeError("lost")
    fixture.client.fail_next(lambda r: True, error)
    result = run_now(fixture.zk.topics.update_leader_and_isr({TP: decision().leader_and_isr}, 1))
    assert (result.finished, result.to_retry) == ({TP: error}, [])


def test_a_leader_writes_its_isr(fixture: ZkFixture) -> None:
    """CP-187: with the right version, the wrong one, and after a lost answer of a stored write."""
    zk = fixture.zk
    run_now(zk.requests.create_recursive("/brokers/topics/t"))
    run_now(zk.topics.create_topic_partition_states_raw({TP: decision()}))
    shrunk = LeaderAndIsr(1, 0, (1,), 0)
    assert run_now(zk.topics.update_partition_isr(TP, shrunk, 1)) == 1
    assert run_now(zk.topics.update_partition_isr(TP, shrunk, 1)) == 1
    assert run_now(zk.topics.update_partition_isr(TP, LeaderAndIsr(1, 0, (1, 2), 0), 1)) is None
    assert run_now(zk.topics.update_partition_isr(T1, shrunk, 1)) is None


def test_a_leader_does_not_take_another_write_for_its_own(fixture: ZkFixture) -> None:
    """A write with another leader epoch, controller epoch or ISR is not its own."""
    zk = fixture.zk
    run_now(zk.requests.create_recursive("/brokers/topics/t"))
    run_now(zk.topics.create_topic_partition_states_raw({TP: decision()}))
    assert run_now(zk.topics.update_partition_isr(TP, LeaderAndIsr(1, 3, (1,), 0), 2)) == 1
    for epoch, isr, controller_epoch in ((2, (1,), 2), (3, (1,), 1), (3, (1, 2), 2)):
        wanted = LeaderAndIsr(1, epoch, isr, 0)
        assert run_now(zk.topics.update_partition_isr(TP, wanted, controller_epoch)) is None


def test_partitions_with_equal_states_have_versions_and_controllers_of_their_own(
    fixture: ZkFixture,
) -> None:
    """Equal values are shared."""
    zk = fixture.zk
    run_now(zk.requests.create_recursive("/brokers/topics/t"))
    run_now(zk.topics.create_topic_partition_states_raw({TP: decision(), T1: decision()}))
    same = decision().leader_and_isr
    run_now(zk.topics.update_leader_and_isr({T1: same}, 1))
    found = run_now(zk.topics.get_topic_partition_states((TP, T1)))
    assert [found[tp].leader_and_isr.zk_version for tp in (TP, T1)] == [0, 1]
    run_now(zk.topics.update_leader_and_isr({TP: same}, 2))
    found = run_now(zk.topics.get_topic_partition_states((TP, T1)))
    assert [found[tp].controller_epoch for tp in (TP, T1)] == [2, 1]


# --- configurations, notifications


def test_log_configs_merge_overrides_and_keep_failures_apart(fixture: ZkFixture) -> None:
    """A topic without a node has the broker's values (docs/kafka/election.md#unclean-election)."""
    zk, name = fixture.zk, "unclean.leader.election.enable"
    run_now(zk.admin.set_or_create_entity_configs("topics", "t", {name: "true"}))
    run_now(zk.requests.create_recursive("/config/topics/bad", b"{"))
    configs, failed = run_now(zk.admin.get_log_configs(["t", "plain", "bad"], BrokerConfig()))
    assert {topic: config[name] for topic, config in configs.items()} == {"t": True, "plain": False}
    assert list(failed) == ["bad"]


def test_entity_configs(fixture: ZkFixture) -> None:
    """They are created with parents, replaced and listed."""
    zk = fixture.zk
    assert run_now(zk.admin.get_entity_configs("topics", "t")) == {}
    for config in ({"a": "1"}, {"b": "2"}):
        run_now(zk.admin.set_or_create_entity_configs("topics", "t", config))
        assert run_now(zk.admin.get_entity_configs("topics", "t")) == config
    run_now(zk.admin.set_or_create_entity_configs("users", "u/clients/c", {}))
    assert run_now(zk.admin.get_all_entities_with_config("topics")) == ["t"]
    assert run_now(zk.admin.get_all_entity_configs("topics")) == {"t": {"b": "2"}}
    assert run_now(zk.requests.path_exists("/config/users/u/clients/c"))


def test_config_changes_are_announced() -> None:
    """CP-201: the content is exact, and the parent is created."""
    made = ZkFixture()
    path = run_now(made.zk.admin.create_config_change_notification("topics/t"))
    assert path == "/config/changes/config_change_0000000000"
    assert made.zookeeper.get(path) == b'{"version":2,"entity_path":"topics/t"}'


def test_isr_changes_are_announced(fixture: ZkFixture) -> None:
    """CP-189: sequential nodes have exact JSON; deleting missing ones is no error."""
    zk = fixture.zk
    run_now(zk.admin.propagate_isr_changes([TP, T1]))
    run_now(zk.admin.propagate_isr_changes([TP]))
    assert fixture.zookeeper.children("/isr_change_notification") == [
        "isr_change_0000000000",
        "isr_change_0000000001",
    ]
    assert fixture.zookeeper.get("/isr_change_notification/isr_change_0000000000") == (
        b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"t","partition":1}]}'
    )
    assert run_now(zk.admin.get_all_isr_change_notifications()) == [0, 1]
    assert run_now(zk.admin.get_partitions_from_isr_change_notifications([0, 1, 9])) == [TP, T1, TP]
    run_now(zk.admin.delete_isr_change_notifications([0, 9]))
    assert run_now(zk.admin.get_all_isr_change_notifications()) == [1]
    run_now(zk.admin.delete_isr_change_notifications())
    assert run_now(zk.admin.get_all_isr_change_notifications()) == []


def test_log_dir_events_are_announced(fixture: ZkFixture) -> None:
    """CP-190."""
    zk = fixture.zk
    for broker_id in (3, 4):
        run_now(zk.admin.propagate_log_dir_event(broker_id))
    assert fixture.zookeeper.get("/log_dir_event_notification/log_dir_event_0000000000") == (
        b'{"version":1,"broker":3,"event":1}'
    )
    assert run_now(zk.admin.get_all_log_dir_event_notifications()) == [0, 1]
    assert run_now(zk.admin.get_broker_ids_from_log_dir_events([0, 1, 9])) == [3, 4]
    run_now(zk.admin.delete_log_dir_event_notifications([0, 9]))
    assert run_now(zk.admin.get_all_log_dir_event_notifications()) == [1]
    run_now(zk.admin.delete_log_dir_event_notifications())
    assert run_now(zk.admin.get_all_log_dir_event_notifications()) == []


def test_requests_made_by_znode(fixture: ZkFixture) -> None:
    """Reassignment, preferred election, topic deletion."""
    zk = fixture.zk
    assert run_now(zk.admin.get_partition_reassignment()) == {}
    assert not run_now(zk.admin.reassign_partitions_in_progress())
    run_now(zk.admin.set_or_create_partition_reassignment({TP: (1, 2)}))
    run_now(zk.admin.set_or_create_partition_reassignment({T1: (2, 1)}))
    assert run_now(zk.admin.get_partition_reassignment()) == {T1: (2, 1)}
    assert run_now(zk.admin.reassign_partitions_in_progress())
    run_now(zk.admin.delete_partition_reassignment())
    run_now(zk.requests.create_recursive(znode_paths.REASSIGN_PARTITIONS, b"nonsense"))
    assert run_now(zk.admin.get_partition_reassignment()) == {}
    assert run_now(zk.admin.get_preferred_replica_election()) == []
    run_now(zk.admin.create_preferred_replica_election([TP, T1]))
    assert run_now(zk.admin.get_preferred_replica_election()) == [TP, T1]
    run_now(zk.admin.create_delete_topic_path("t"))
    assert run_now(zk.admin.get_topic_deletions()) == ["t"]
    assert run_now(zk.admin.is_topic_marked_for_deletion("t"))
    with pytest.raises(ZooKeeperError, match="NODEEXISTS"):
        run_now(zk.admin.create_delete_topic_path("t"))


# --- batches


def batch_sizes(made: ZkFixture) -> list[int]:
    """Return a list to which the size of each batch is added from now on."""
    sizes: list[int] = []
    send = made.client.handle_requests

    class Counting:
        session_id = made.client.session_id

        async def handle_requests(self, requests: Any) -> Any:
            sizes.append(len(requests))
            return await send(requests)

    made.zk.requests.client = Counting()  # type: ignore[assignment]
    return sizes


@pytest.mark.parametrize(("version", "expected"), [("2.8", [3]), ("0.10", [1, 1, 1])])
def test_reads_are_pipelined_from_1_1_on(version: str, expected: list[int]) -> None:
    """KAFKA-5642: the old client spent its time on round trips."""
    made = ZkFixture(version)
    sizes = batch_sizes(made)
    run_now(made.zk.topics.get_topic_partition_states([TP, T1, T2]))
    assert sizes == expected


def test_a_topic_is_deleted_level_by_level(fixture: ZkFixture) -> None:
    """There are five levels to list and one batch to delete, however many partitions."""
    run_now(fixture.zk.requests.create_recursive("/brokers/topics/t"))
    tps = {TopicPartition("t", n): decision() for n in range(30)}
    run_now(fixture.zk.topics.create_topic_partition_states_raw(tps))
    sizes = batch_sizes(fixture)
    run_now(fixture.zk.topics.delete_topic_znode("t"))
    assert sizes == [1, 1, 30, 30, 62]
    assert fixture.zookeeper.children("/brokers/topics") == []
