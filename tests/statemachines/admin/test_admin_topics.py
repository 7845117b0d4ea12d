"""CreateTopics and CreatePartitions: refusals, writes, waiting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from fakekafka.protocol.admin import (
    TOPIC_RESOURCE,
    ConfigResource,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    TopicResult,
)
from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.topic_names import TakenNames
from fakekafka.protocol.values import ReplicaAssignment, TopicPartition
from fakekafka.statemachines.zookeeper.admin import ZkAdmin
from fakekafka.statemachines.zookeeper.topics import ZkTopics
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now
from fakekafka.zkfake.messages import DeleteRequest

TP = TopicPartition("t", 0)
T = ConfigResource(TOPIC_RESOURCE, "t")


def create(cluster: ControllerCluster, *topics: NewTopic, **options: Any) -> list[TopicResult]:
    request = CreateTopicsRequest(topics, **options)
    advance_ms = max(0, request.timeout_ms)
    return list(cluster.ask(cluster.admin().topics.create_topics(request), advance_ms).topics)


def create_one(cluster: ControllerCluster, topic: NewTopic, **options: Any) -> ErrorCode:
    (result,) = create(cluster, topic, **options)
    return result.error


def test_a_topic_is_created_with_its_configuration(cluster: ControllerCluster) -> None:
    """The response has counts, configurations and the id, and the znodes exist (CP-82)."""
    topic = NewTopic("t", 2, 3, (), (("min.insync.replicas", "2"),))
    (result,) = create(cluster, topic)
    assert (result.error, result.partitions, result.replication_factor) == (ErrorCode.NONE, 2, 3)
    assert result.topic_id == cluster.active.context.topics.topic_ids["t"]
    entries = {entry.name: entry for entry in result.config_entries}
    assert (entries["min.insync.replicas"].value, entries["min.insync.replicas"].source) == ("2", 1)
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == ("604800000", 5)
    assert cluster.zookeeper.get("/config/topics/t") == (
        b'{"version":1,"config":{"min.insync.replicas":"2"}}'
    )
    assert cluster.zookeeper.children("/config/changes") == []
    assert cluster.state("t").leader_epoch == 0
    nodes = cluster.zookeeper.tree.nodes  # a broker that makes the log finds its configuration
    assert nodes["/config/topics/t"].czxid < nodes["/brokers/topics/t"].czxid


@pytest.mark.parametrize(
    ("version", "error", "text"),
    [
        ("2.8", ErrorCode.NONE, None),
        ("3.9", ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' is marked for deletion."),
    ],
)
def test_a_topic_is_not_created_while_its_deletion_is_marked(
    version: str, error: ErrorCode, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since 3.1 the name stays taken until the deletion is complete (KAFKA-13175)."""
    cluster = ControllerCluster([1, 2, 3], version, delete_topic_enable=True)
    answers: list[TopicResult] = []
    original = ZkAdmin.delete_topic_deletions

    async def create_in_between(zk: ZkAdmin, *arguments: Any) -> Any:
        request = CreateTopicsRequest((NewTopic("t", 1, 1),), 0, True)
        answers.extend((await cluster.admin().topics.create_topics(request)).topics)
        return await original(zk, *arguments)

    cluster.create_topic("t", (1, 2))
    monkeypatch.setattr(ZkAdmin, "delete_topic_deletions", create_in_between)
    cluster.delete_topic("t")
    assert "t" not in cluster.topics()
    assert [(answer.error, answer.error_message) for answer in answers] == [(error, text)]


def test_defaults_are_the_brokers(cluster: ControllerCluster) -> None:
    """-1 means num.partitions or default.replication.factor (docs/kafka/topics.md#creation)."""
    cluster.processes[1].config.static.update(
        {"num.partitions": 3, "default.replication.factor": 2}
    )
    cluster.processes[1].config.set_dynamic({})
    (result,) = create(cluster, NewTopic("t"))
    assert (result.partitions, result.replication_factor) == (3, 2)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (NewTopic("t", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, -1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", -1, 1, ((0, (1,)),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", 1, 1, (), (("retention.ms", None),)), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", 1, 1, (), (("retention.ms", "x"),)), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", 1, 1, (), (("nonsense", "1"),)), ErrorCode.INVALID_CONFIG),
        (
            NewTopic("t", 1, 1, (), (("unclean.leader.election.enable", "invalid"),)),
            ErrorCode.INVALID_CONFIG,
        ),
        (NewTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic(".", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("é", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("x" * 249, 1, 1), ErrorCode.NONE),
        (NewTopic("t", -1, -1, ((0, (1, 1)),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, ((0, (1, 2)), (1, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, ((1, (1,)), (2, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", -1, -1, ((0, (1,)), (3, (1,)))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (
            NewTopic("t", -1, -1, ((-1, (1,)), (1, (1,)), (2, (1,)), (4, (1,)))),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (NewTopic("t", -1, -1, ((0, (1,)), (0, (2,)))), ErrorCode.NONE),
        (NewTopic("t", -1, -1, ((0, (9, 1)),)), ErrorCode.NONE),
    ],
)
def test_a_refused_topic_is_not_created(topic: NewTopic, expected: ErrorCode) -> None:
    """CP-85, CP-118, docs/kafka/topics.md#creation; unknown brokers are no error."""
    cluster = ControllerCluster([1, 2, 3])
    assert create_one(cluster, topic) is expected
    assert (topic.name in cluster.topics()) == (expected is ErrorCode.NONE)


def test_existing_and_colliding_names_are_refused(cluster: ControllerCluster) -> None:
    """CP-86, CP-87: names that differ only in '.' and '_' collide in metrics."""
    assert create_one(cluster, NewTopic("test.topic", 1, 1)) is ErrorCode.NONE
    assert create_one(cluster, NewTopic("test.topic", 1, 1)) is ErrorCode.TOPIC_ALREADY_EXISTS
    (result,) = create(cluster, NewTopic("test_topic", 1, 1))
    assert result.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == "Topic 'test_topic' collides with existing topics: test.topic"


@pytest.mark.pure  # puts a class of its own in the place of one that is compiled
def test_names_are_compared_with_topics_created_since(
    cluster: ControllerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The taken names are updated, and built anew only after names were deleted."""
    made = []

    class Noted(TakenNames):
        def __init__(self, topics: Iterable[str]) -> None:
            made.append(topics)
            super().__init__(topics)

    monkeypatch.setattr("fakekafka.statemachines.admin.topics.TakenNames", Noted)
    admin = cluster.admin()

    def created(*names: str) -> list[ErrorCode]:
        topics = tuple(NewTopic(name, 1, 1) for name in names)
        response = cluster.ask(admin.topics.create_topics(CreateTopicsRequest(topics)))
        return [result.error for result in response.topics]

    assert created(*(f"many.{at}" for at in range(20))) == [ErrorCode.NONE] * 20
    assert created("many_7") == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert len(made) == 1
    cluster.ask(admin.topics.delete_topics(DeleteTopicsRequest(("many.7",))))
    cluster.settle()
    assert created("many_7", "many.7") == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert len(made) == 2


def test_a_topic_created_concurrently_already_exists(
    cluster: ControllerCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CP-88, CP-89: of two concurrent creations the later one gets TOPIC_ALREADY_EXISTS."""
    admin = cluster.admin()
    original = ZkTopics.topic_exists

    async def appears(zk: ZkTopics, topic: str) -> bool:
        existed = await original(zk, topic)
        await zk.create_topic_assignment(topic, {0: ReplicaAssignment((1,))})
        return existed

    monkeypatch.setattr(ZkTopics, "topic_exists", appears)
    request = CreateTopicsRequest((NewTopic("a.b", 1, 1),))
    (result,) = cluster.ask(admin.topics.create_topics(request)).topics
    assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS
    request = CreateTopicsRequest((NewTopic("plain", 1, 1),))
    (result,) = cluster.ask(admin.topics.create_topics(request)).topics
    assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_name_given_twice_spoils_only_itself(cluster: ControllerCluster) -> None:
    """Data plane 15.5 and DP-125: every entry is checked independently."""
    results = create(
        cluster, NewTopic("twice", 1, 1), NewTopic("once", 1, 1), NewTopic("twice", 1, 1)
    )
    assert [(r.name, r.error) for r in results] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("once", ErrorCode.NONE),
        ("twice", ErrorCode.INVALID_REQUEST),
    ]
    assert cluster.topics() == ["once"]


def test_only_the_controller_creates(cluster: ControllerCluster) -> None:
    """Data plane 15.5: NOT_CONTROLLER for every topic."""
    admin = cluster.admin(2)
    request = CreateTopicsRequest((NewTopic("t", 1, 1),))
    assert run_now(admin.topics.create_topics(request)).topics[0].error is ErrorCode.NOT_CONTROLLER
    delete = DeleteTopicsRequest(("t",))
    assert run_now(admin.topics.delete_topics(delete)).topics[0].error is ErrorCode.NOT_CONTROLLER
    grow = CreatePartitionsRequest((NewPartitions("t", 2),))
    assert run_now(admin.topics.create_partitions(grow)).topics[0].error is ErrorCode.NOT_CONTROLLER


def test_validating_creates_nothing(cluster: ControllerCluster) -> None:
    (result,) = create(cluster, NewTopic("t", 2, 2), validate_only=True)
    assert (result.error, result.partitions, result.topic_id) == (ErrorCode.NONE, 2, "")
    assert cluster.topics() == []


def test_without_time_a_topic_is_created_and_the_answer_is_late(cluster: ControllerCluster) -> None:
    """Data plane 15.5: timeout_ms <= 0 is answered with REQUEST_TIMED_OUT although the topic
    exists."""
    assert create_one(cluster, NewTopic("t", 1, 1), timeout_ms=0) is ErrorCode.REQUEST_TIMED_OUT
    assert cluster.topics() == ["t"]


def test_a_partition_without_leader_makes_the_answer_late(cluster: ControllerCluster) -> None:
    """The response waits until every partition has a leader in the local metadata
    (docs/kafka/topics.md#creation)."""
    topic = NewTopic("t", -1, -1, ((0, (9,)), (1, (1,))))
    task = Task(cluster.admin().topics.create_topics(CreateTopicsRequest((topic,), 1000)))
    cluster.host.advance(999)
    assert not task.done
    cluster.host.advance(1)
    assert task.result().topics[0].error is ErrorCode.REQUEST_TIMED_OUT


def test_racks_are_used_when_every_broker_has_one() -> None:
    """CP-95: it is an error if some brokers have no rack; if all have one, replicas are spread over
    racks."""
    cluster = ControllerCluster()
    for broker_id, rack in ((1, "a"), (2, "b"), (3, "a"), (4, "b")):
        cluster.start(broker_id, rack)
    assert create_one(cluster, NewTopic("t", 8, 2)) is ErrorCode.NONE
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    for number in range(8):
        replicas = cluster.assignment("t", number).replicas
        assert {racks[r] for r in replicas} == {"a", "b"}
    cluster.start(5, None)
    assert create_one(cluster, NewTopic("u", 1, 1)) is ErrorCode.UNKNOWN_SERVER_ERROR


def grow(cluster: ControllerCluster, *topics: NewPartitions, **options: Any) -> list[ErrorCode]:
    request = CreatePartitionsRequest(topics, **options)
    response = cluster.ask(
        cluster.admin().topics.create_partitions(request), max(0, request.timeout_ms)
    )
    return [result.error for result in response.topics]


def test_partitions_are_added_where_the_last_ones_stopped() -> None:
    """CP-92, CP-93: the rotation of leaders continues."""
    cluster = ControllerCluster([0, 1, 2, 3])
    cluster.create_topic("t", (1, 2))
    cluster.create_topic("u", (2, 3, 0, 1))
    assert grow(cluster, NewPartitions("t", 3), NewPartitions("u", 7)) == [ErrorCode.NONE] * 2
    assert [set(cluster.assignment("t", p).replicas) for p in (1, 2)] == [{0, 2}, {1, 3}]
    assert [cluster.assignment("t", p).replicas[0] for p in (1, 2)] == [2, 3]
    leaders = [cluster.assignment("u", p).replicas[0] for p in range(1, 7)]
    assert leaders == [3, 0, 1, 2, 3, 0]


def test_manual_lists_are_used_verbatim() -> None:
    """CP-94."""
    cluster = ControllerCluster([0, 1, 2, 3])
    cluster.create_topic("t", (1, 2))
    assert grow(cluster, NewPartitions("t", 3, ((0, 1), (2, 3)))) == [ErrorCode.NONE]
    assert [cluster.assignment("t", p).replicas for p in (1, 2)] == [(0, 1), (2, 3)]


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (NewPartitions("nothing", 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NewPartitions("t", 2), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 1), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 0), ErrorCode.INVALID_PARTITIONS),
        (NewPartitions("t", 3, ((1, 2, 3),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((1, 1),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((1, 9),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((),)), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((1, 2), (2, 3))), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewPartitions("t", 3, ((3, 2),)), ErrorCode.NONE),
    ],
)
def test_growth_is_validated(
    cluster: ControllerCluster, topic: NewPartitions, expected: ErrorCode
) -> None:
    """CP-90, docs/kafka/topics.md#expansion, docs/kafka/administration.md#topics."""
    cluster.create_topic("t", (1, 2), (2, 1))
    assert grow(cluster, topic) == [expected]
    count = len(cluster.active.context.topics.partitions_for_topic("t"))
    assert count == (3 if expected is ErrorCode.NONE else 2)


def test_partitions_are_added_on_brokers_that_are_registered() -> None:
    """Even if this broker does not know yet that a broker is gone
    (``AdminManager.createPartitions`` reads ZooKeeper)."""
    cluster = ControllerCluster([1, 2])
    cluster.create_topic("t", (1,))
    tree = cluster.zookeeper.tree
    session_id = cluster.processes[1].client.session_id
    tree.apply(tree.last_zxid + 1, 0, session_id, DeleteRequest("/brokers/ids/2", -1))
    tree.take_changes()
    added = NewPartitions("t", 2, ((2,),))
    assert grow(cluster, added) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]


def test_a_topic_without_partition_zero_cannot_grow(cluster: ControllerCluster) -> None:
    """CP-91: the error names the missing partition."""
    run_now(cluster.zk.topics.create_topic_assignment("t", {1: ReplicaAssignment((1,))}))
    cluster.settle()
    request = CreatePartitionsRequest((NewPartitions("t", 3),))
    (result,) = cluster.ask(cluster.admin().topics.create_partitions(request)).topics
    assert result.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "partition id 0 is missing" in (result.error_message or "")


def test_dying_and_moving_topics_cannot_grow(cluster: ControllerCluster) -> None:
    """Data plane 15.6: error 17 while being deleted, REASSIGNMENT_IN_PROGRESS while being
    reassigned."""
    cluster.create_topic("moving", (1,))
    cluster.reassign({TopicPartition("moving", 0): (2,)})
    cluster.create_topic("dying", (1, 3))
    cluster.kill(3)
    cluster.delete_topic("dying")
    assert grow(cluster, NewPartitions("moving", 2), NewPartitions("dying", 2)) == [
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]


def test_one_partition_on_the_move_keeps_its_topic_from_growing(cluster: ControllerCluster) -> None:
    """Other topics can grow (``ZkAdminManager.createPartitions``)."""
    cluster.create_topic("t", (1,), (1,))
    cluster.create_topic("u", (1,))
    cluster.reassign({TopicPartition("t", 1): (2,)})
    assert grow(cluster, NewPartitions("t", 3), NewPartitions("u", 2)) == [
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
        ErrorCode.NONE,
    ]


def test_before_2_4_any_reassignment_keeps_all_topics_from_growing() -> None:
    """The topics' znodes do not say which partitions are being reassigned."""
    cluster = ControllerCluster([1, 2], "2.3")
    cluster.create_topic("t", (1,))
    cluster.create_topic("u", (1,))
    moving = {TopicPartition("t", 0): (2,)}
    run_now(cluster.zk.admin.create_partition_reassignment(moving))
    cluster.settle()
    assert grow(cluster, NewPartitions("u", 2)) == [ErrorCode.REASSIGNMENT_IN_PROGRESS]
    cluster.catch_up("t")
    assert grow(cluster, NewPartitions("u", 2)) == [ErrorCode.NONE]


def test_a_topic_that_grows_keeps_its_id(cluster: ControllerCluster) -> None:
    """The id is written back with the assignment (KIP-516)."""
    create(cluster, NewTopic("t", 1, 1))

    def stored_id() -> str | None:
        (found,) = run_now(cluster.zk.topics.get_replica_assignment_and_topic_ids_for_topics(["t"]))
        return found.topic_id

    before = stored_id()
    assert before == cluster.active.context.topics.topic_ids["t"]
    assert grow(cluster, NewPartitions("t", 2)) == [ErrorCode.NONE]
    assert stored_id() == before


def test_a_topic_does_not_shrink(cluster: ControllerCluster) -> None:
    """A smaller count, or the present one, is an error."""
    cluster.create_topic("t", (1,), (1,), (1,))
    answers = [
        cluster.ask(
            cluster.admin().topics.create_partitions(
                CreatePartitionsRequest((NewPartitions("t", count),))
            )
        ).topics[0]
        for count in (2, 3)
    ]
    assert {answer.error for answer in answers} == {ErrorCode.INVALID_PARTITIONS}
    assert [answer.error_message for answer in answers] == [
        "Topic currently has 3 partitions, which is higher than the requested 2.",
        "Topic already has 3 partitions.",
    ]


def test_growth_may_be_validated_only_and_may_be_late(cluster: ControllerCluster) -> None:
    cluster.create_topic("t", (1, 2))
    assert grow(cluster, NewPartitions("t", 2), validate_only=True) == [ErrorCode.NONE]
    assert len(cluster.active.context.topics.partitions_for_topic("t")) == 1
    assert grow(cluster, NewPartitions("t", 2), NewPartitions("t", 3)) == [
        ErrorCode.INVALID_REQUEST
    ]
    assert grow(cluster, NewPartitions("t", 2), timeout_ms=0) == [ErrorCode.REQUEST_TIMED_OUT]
    assert len(cluster.active.context.topics.partitions_for_topic("t")) == 2
