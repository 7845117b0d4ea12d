"""An impossible operation is answered with Kafka's error, which names its subject, and changes
nothing.

docs/kafka/topics.md, docs/kafka/reassignment.md, docs/kafka/election.md#rebalancing, through the
API that users call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakekafka import KafkaError, Simulation
from fakekafka.protocol.admin import (
    PREFERRED,
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    NewPartitions,
    NewTopic,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS
from fakekafka.tests.support.whole_clusters import CURRENT, ask, running, stored

TP = TopicPartition("t", 0)
DELETES = {"delete.topic.enable": True}

Operation = Callable[[Simulation], Any]

TOPICS = {"t": {"assignment": {0: [1, 2], 1: [2, 1]}}, "a.b": {"assignment": {0: [1]}}}


def create(name: str = "new", **arguments: Any) -> Operation:
    return lambda cluster: cluster.create_topic(name, **arguments)


def assigned(*pairs: tuple[int, list[int]], **arguments: Any) -> Operation:
    return lambda cluster: cluster.create_topic("new", assignment=dict(pairs), **arguments)


def grow(topic: str, count: int, *lists: list[int]) -> Operation:
    return lambda cluster: cluster.create_partitions(topic, count, lists)


def delete(topic: str) -> Operation:
    return lambda cluster: cluster.delete_topic(topic)


def alter(topic: str, name: str, value: str) -> Operation:
    return lambda cluster: cluster.alter_config(topic, {name: value})


def move(topic: str, partition: int, target: list[int] | None) -> Operation:
    return lambda cluster: cluster.reassign_partitions({(topic, partition): target})


ANY_VERSION: list[tuple[Operation, str, str]] = [
    # topic names
    (create(""), "INVALID_TOPIC_EXCEPTION", "topic ''"),
    (create("."), "INVALID_TOPIC_EXCEPTION", "topic '.'"),
    (create(".."), "INVALID_TOPIC_EXCEPTION", "topic '..'"),
    (create("x" * 250), "INVALID_TOPIC_EXCEPTION", "249"),
    (create("with space"), "INVALID_TOPIC_EXCEPTION", "with space"),
    (create("sla/sh"), "INVALID_TOPIC_EXCEPTION", "sla/sh"),
    (create("a_b"), "INVALID_TOPIC_EXCEPTION", "collides with existing topics: a.b"),
    (create("t"), "TOPIC_ALREADY_EXISTS", "Topic 't' already exists"),
    (create("a.b"), "TOPIC_ALREADY_EXISTS", "Topic 'a.b' already exists"),
    # counts
    (create(partitions=0), "INVALID_PARTITIONS", "new"),
    (create(partitions=-2), "INVALID_PARTITIONS", "new"),
    (create(replication_factor=0), "INVALID_REPLICATION_FACTOR", "new"),
    (create(replication_factor=-2), "INVALID_REPLICATION_FACTOR", "new"),
    (create(replication_factor=4), "INVALID_REPLICATION_FACTOR", "4"),
    # assignments
    (assigned((0, [1, 1])), "INVALID_REPLICA_ASSIGNMENT", "Duplicate"),
    (assigned((0, [1, 2]), (1, [1])), "INVALID_REPLICA_ASSIGNMENT", "same number"),
    # configurations
    (alter("t", "nonsense", "1"), "INVALID_CONFIG", "nonsense"),
    (alter("t", "num.partitions", "2"), "INVALID_CONFIG", "num.partitions"),
    # deletion and expansion
    (delete("unknown"), "UNKNOWN_TOPIC_OR_PARTITION", "unknown"),
    (grow("unknown", 2), "UNKNOWN_TOPIC_OR_PARTITION", "unknown"),
    (grow("t", 2), "INVALID_PARTITIONS", "already has 2 partitions"),
    (grow("t", 1), "INVALID_PARTITIONS", "currently has 2 partitions"),
    (grow("t", 0), "INVALID_PARTITIONS", "currently has 2 partitions"),
    (grow("t", -1), "INVALID_PARTITIONS", "currently has 2 partitions"),
    (grow("t", 4, [1, 2]), "INVALID_REPLICA_ASSIGNMENT", "by 2 but 1"),
    (grow("t", 3, [1, 2], [2, 3]), "INVALID_REPLICA_ASSIGNMENT", "by 1 but 2"),
    (grow("t", 3, [1, 9]), "INVALID_REPLICA_ASSIGNMENT", "9"),
    (grow("t", 3, [1, 1]), "INVALID_REPLICA_ASSIGNMENT", "Duplicate"),
    (grow("t", 3, [1]), "INVALID_REPLICA_ASSIGNMENT", "partition 0 has 2"),
    (grow("t", 3, []), "INVALID_REPLICA_ASSIGNMENT", "0"),
]

SINCE_2_3: list[tuple[Operation, str, str]] = [
    (assigned((1, [1]), (2, [2])), "INVALID_REPLICA_ASSIGNMENT", "consecutive"),
    (assigned((0, [1]), (3, [2])), "INVALID_REPLICA_ASSIGNMENT", "consecutive"),
    (create(config={"nonsense": 1}), "INVALID_CONFIG", "nonsense"),
    (create(config={"retention.ms": "soon"}), "INVALID_CONFIG", "soon"),
    (create(config={"cleanup.policy": "burn"}), "INVALID_CONFIG", "burn"),
    (alter("unknown", "retention.ms", "1"), "UNKNOWN_TOPIC_OR_PARTITION", "unknown"),
    (alter("with space", "retention.ms", "1"), "UNKNOWN_TOPIC_OR_PARTITION", "with space"),
]

BAD_VALUES: list[tuple[Operation, str]] = [
    (alter("t", "retention.ms", "soon"), "soon"),
    (alter("t", "min.insync.replicas", "0"), "at least 1"),
]

SINCE_2_4: list[tuple[Operation, str, str]] = [
    (move("unknown", 0, [1]), "UNKNOWN_TOPIC_OR_PARTITION", "unknown-0"),
    (move("t", 2, [1]), "UNKNOWN_TOPIC_OR_PARTITION", "t-2"),
    (move("t", 0, []), "INVALID_REPLICA_ASSIGNMENT", "t-0"),
    (move("t", 0, [3, 3]), "INVALID_REPLICA_ASSIGNMENT", "t-0"),
    (move("t", 0, [1, -3]), "INVALID_REPLICA_ASSIGNMENT", "t-0"),
    (move("t", 0, [1, 9]), "INVALID_REPLICA_ASSIGNMENT", "t-0"),
    (move("t", 0, None), "NO_REASSIGNMENT_IN_PROGRESS", "t-0"),
    (move("unknown", 0, None), "NO_REASSIGNMENT_IN_PROGRESS", "unknown-0"),
]


def assert_refused(cluster: Simulation, operation: Operation, code: str, text: str) -> None:
    """Assert that the operation raises the error with the text in its message, and leaves ZooKeeper
    as it was."""
    before = cluster.zookeeper.tree()
    with pytest.raises(KafkaError) as refused:
        operation(cluster)
    assert refused.value.code is ErrorCode[code]
    assert text in str(refused.value)
    cluster.run_for(1000)
    assert cluster.zookeeper.tree() == before


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_impossible_operations_on_topics_are_refused(version: str) -> None:
    """CP-85 to CP-91, CP-106, CP-118, CP-162."""
    with running(3, version, topics=TOPICS, config=DELETES) as cluster:
        for operation, code, text in ANY_VERSION:
            assert_refused(cluster, operation, code, text)


@pytest.mark.parametrize("version", CURRENT)
def test_operations_that_only_older_releases_accept_are_refused(version: str) -> None:
    """Older releases accept, or refuse otherwise: gaps (KAFKA-7864), bad configurations at
    creation, configurations of unknown topics."""
    with running(3, version, topics=TOPICS, config=DELETES) as cluster:
        for operation, code, text in SINCE_2_3:
            assert_refused(cluster, operation, code, text)


@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_a_topic_without_partition_0_is_created_before_2_3(version: str) -> None:
    """Partition numbers need not begin at 0 before KAFKA-7864."""
    with running(3, version) as cluster:
        assigned((1, [1]), (2, [2]))(cluster)
        assert [cluster.partition("new", n).leader for n in (1, 2)] == [1, 2]


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_bad_values_of_configurations_are_refused(version: str) -> None:
    """Bad values of configurations get INVALID_CONFIG in 3.9, INVALID_REQUEST before
    (ZkAdminManager.alterConfigs)."""
    with running(3, version, topics=TOPICS) as cluster:
        code = "INVALID_CONFIG" if version == "3.9" else "INVALID_REQUEST"
        for operation, text in BAD_VALUES:
            assert_refused(cluster, operation, code, text)


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_an_empty_list_of_replicas_is_accepted_and_has_no_leader(version: str) -> None:
    """Replica lists are only checked for equal lengths and repetitions
    (AdminZkClient.validateTopicCreate)."""
    with running(3, version) as cluster:
        with pytest.raises(KafkaError) as refused:
            assigned((0, []))(cluster)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert cluster.controller.partition_state("new", 0) == "NewPartition"


@pytest.mark.parametrize("version", CURRENT)
def test_impossible_reassignments_are_refused(version: str) -> None:
    """CP-145, CP-146: impossible reassignments are refused, each with its own partition."""
    with running(3, version, topics=TOPICS) as cluster:
        for operation, code, text in SINCE_2_4:
            assert_refused(cluster, operation, code, text)


@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_operations_without_a_request_in_old_versions_are_refused(version: str) -> None:
    """Before 2.4 no request cancels reassignments or elects leaders uncleanly
    (docs/kafka/releases.md)."""
    with running(3, version, topics=TOPICS) as cluster:
        assert_refused(cluster, move("t", 0, None), "UNSUPPORTED_VERSION", "")
        unclean: Operation = lambda c: c.elect_leaders("unclean", [("t", 0)])  # noqa: E731
        assert_refused(cluster, unclean, "UNSUPPORTED_VERSION", "")


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_moving_topic_cannot_grow(version: str) -> None:
    """Growing a moving topic gets REASSIGNMENT_IN_PROGRESS; before 2.4 growing any topic while any
    partition moves (docs/kafka/topics.md#expansion)."""
    with running(3, version, topics=TOPICS) as cluster:
        cluster.broker(3).pause()
        cluster.reassign_partitions({("t", 0): [1, 3]})
        cluster.run_until(lambda: cluster.partition("t", 0).adding or stored(cluster)[1] == 1)
        assert_refused(cluster, grow("t", 3), "REASSIGNMENT_IN_PROGRESS", "'t'")
        if cluster.behaviour.reassignment_api:
            assert [o.topic_partition for o in cluster.reassignments()] == [TopicPartition("t", 0)]
        else:
            assert_refused(cluster, grow("a.b", 2), "REASSIGNMENT_IN_PROGRESS", "'a.b'")
            assert_refused(cluster, move("a.b", 0, [2]), "REASSIGNMENT_IN_PROGRESS", "")


@pytest.mark.parametrize("version", CURRENT)
def test_a_topic_marked_for_deletion_is_left_alone(version: str) -> None:
    """CP-147: operations on a topic whose deletion waits for a broker are refused."""
    with running(3, version, topics={"t": {"assignment": {0: [1, 3]}}}) as cluster:
        cluster.broker(3).shutdown()
        cluster.run_until(lambda: stored(cluster)[2] == [1])
        cluster.delete_topic("t")
        cluster.run_for(1000)
        assert_refused(cluster, delete("t"), "UNKNOWN_TOPIC_OR_PARTITION", "'t'")
        assert_refused(cluster, grow("t", 2), "INVALID_TOPIC_EXCEPTION", "queued for deletion")
        assert_refused(cluster, create("t"), "TOPIC_ALREADY_EXISTS", "'t'")
        assert_refused(cluster, alter("t", "retention.ms", "1"), "UNKNOWN_TOPIC_OR_PARTITION", "t")
        assert_refused(cluster, move("t", 0, [2]), "UNKNOWN_TOPIC_OR_PARTITION", "t-0")
        answers = cluster.elect_leaders("preferred", [("t", 0)])
        assert list(answers.values()) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert cluster.elect_leaders("preferred") == {}


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_deletion_may_be_switched_off(version: str) -> None:
    """CP-164: deletion that is disabled gets TOPIC_DELETION_DISABLED since 2.1, a timeout before.
    The mark stays in 0.10, whose controller does not listen then
    (PartitionStateMachine.registerListeners)."""
    config = {"delete.topic.enable": False}
    with running(3, version, topics=TOPICS, config=config) as cluster:
        if version == "0.10":
            with pytest.raises(KafkaError, match="REQUEST_TIMED_OUT"):
                cluster.delete_topic("t")
            assert cluster.zookeeper.children("/admin/delete_topics") == ["t"]
            return
        code = "TOPIC_DELETION_DISABLED" if version in CURRENT else "REQUEST_TIMED_OUT"
        assert_refused(cluster, delete("t"), code, "'t'")


@pytest.mark.parametrize("version", CURRENT)
def test_elections_answer_partition_by_partition(version: str) -> None:
    """CP-124, CP-126, CP-127, CP-129 to CP-131: an election answers each partition with its own
    code, and changes nothing."""
    topics = {
        "well": {"assignment": {0: [1, 2]}},
        "down": {"assignment": {0: [3, 1]}},
        "dead": {"assignment": {0: [3]}},
    }
    with running(3, version, topics=topics) as cluster:
        cluster.broker(3).shutdown()
        cluster.run_until(lambda: stored(cluster, "dead")[0] == -1)
        before = cluster.zookeeper.tree()
        asked = [("well", 0), ("down", 0), ("dead", 0), ("well", 1), ("unknown", 0)]
        by_type = {
            "preferred": [
                "ELECTION_NOT_NEEDED",
                "PREFERRED_LEADER_NOT_AVAILABLE",
                "PREFERRED_LEADER_NOT_AVAILABLE",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "UNKNOWN_TOPIC_OR_PARTITION",
            ],
            "unclean": [
                "ELECTION_NOT_NEEDED",
                "ELECTION_NOT_NEEDED",
                "ELIGIBLE_LEADERS_NOT_AVAILABLE",
                "UNKNOWN_TOPIC_OR_PARTITION",
                "UNKNOWN_TOPIC_OR_PARTITION",
            ],
        }
        for election, expected in by_type.items():
            answers = cluster.elect_leaders(election, asked)
            assert {tuple(tp): code.name for tp, code in answers.items()} == dict(
                zip(asked, expected, strict=True)
            )
        assert cluster.zookeeper.tree() == before


TOPIC_ANSWERS = (CreateTopicsResponse, DeleteTopicsResponse, CreatePartitionsResponse)
AT_THE_WRONG_BROKER: list[Any] = [
    CreateTopicsRequest((NewTopic("new", 1, 1),)),
    DeleteTopicsRequest(("t",)),
    CreatePartitionsRequest((NewPartitions("t", 3),)),
    ElectLeadersRequest(PREFERRED, (TP,)),
    AlterPartitionReassignmentsRequest(((TP, (3,)),)),
    AlterPartitionReassignmentsRequest(((TP, None),)),
    ListPartitionReassignmentsRequest(None),
]


@pytest.mark.parametrize("version", CURRENT)
def test_only_the_controller_carries_out_its_requests(version: str) -> None:
    """Brokers other than the controller answer NOT_CONTROLLER, at the top level or per entry."""
    with running(3, version, topics=TOPICS) as cluster:
        before = cluster.zookeeper.tree()
        for request in AT_THE_WRONG_BROKER:
            answer = ask(cluster, 2, request)
            if isinstance(answer, TOPIC_ANSWERS):
                errors = [result.error for result in answer.topics]
            elif isinstance(answer, ElectLeadersResponse):
                errors = [error for _, error, _ in answer.partitions]
            else:
                errors = [answer.error]
            assert errors == [ErrorCode.NOT_CONTROLLER], type(request).__name__
        assert cluster.zookeeper.tree() == before


@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_request_that_the_controller_cannot_complete_times_out(version: str) -> None:
    """Without ZooKeeper the controller changes nothing, and the request times out."""
    topic_operations = [create(), delete("t"), grow("t", 3), alter("t", "flush.ms", "1")]
    with running(3, version, topics=TOPICS, config=DELETES) as cluster:
        cluster.zookeeper.server(1).kill()
        for operation in [*topic_operations, move("t", 0, [3])]:
            with pytest.raises(KafkaError) as refused:
                operation(cluster)
            assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT


@pytest.mark.parametrize("version", CURRENT)
def test_listing_reassignments_omits_resting_partitions(version: str) -> None:
    """CP-144, CP-148: listing reassignments omits unknown and resting partitions without an
    error."""
    with running(3, version, topics=TOPICS) as cluster:
        cluster.broker(3).pause()
        cluster.reassign_partitions({("t", 0): [1, 3]})
        asked = (TP, TopicPartition("t", 1), TopicPartition("t", 7), TopicPartition("unknown", 0))
        answer = ask(cluster, 1, ListPartitionReassignmentsRequest(asked))
        assert answer.error is ErrorCode.NONE
        (ongoing,) = answer.reassignments
        assert (ongoing.topic_partition, ongoing.replicas) == (TP, (1, 3, 2))
        assert (ongoing.adding, ongoing.removing) == ((3,), (2,))
        cluster.reassign_partitions({("t", 0): None})
        assert_refused(cluster, move("t", 0, None), "NO_REASSIGNMENT_IN_PROGRESS", "t-0")
        assert ask(cluster, 1, ListPartitionReassignmentsRequest(asked)).reassignments == ()
