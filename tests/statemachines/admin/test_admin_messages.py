"""Error messages, which are Kafka's own, as people search the web for them."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
    TopicResult,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.controller_cluster import ControllerCluster

CHARACTERS = "ASCII alphanumerics, '.', '_' and '-'"


def created(
    cluster: ControllerCluster, topic: NewTopic, broker_id: int | None = None
) -> TopicResult:
    request = CreateTopicsRequest((topic,), 1000)
    (result,) = cluster.ask(cluster.admin(broker_id).topics.create_topics(request), 1000).topics
    assert isinstance(result, TopicResult)
    return result


@pytest.mark.parametrize(
    ("kafka_version", "name", "message"),
    [
        ("3.9", "", "Topic name is invalid: the empty string is not allowed"),
        ("3.9", ".", "Topic name is invalid: '.' is not allowed"),
        ("3.9", "..", "Topic name is invalid: '..' is not allowed"),
        (
            "3.9",
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than " + CHARACTERS,
        ),
        (
            "3.9",
            "x" * 250,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed "
            "length 249",
        ),
        ("2.8", "", "Topic name is illegal, it can't be empty"),
        ("2.8", ".", 'Topic name cannot be "." or ".."'),
        (
            "2.8",
            "a b",
            'Topic name "a b" is illegal, it contains a character other than ' + CHARACTERS,
        ),
        (
            "1.1",
            "x" * 250,
            "Topic name is illegal, it can't be longer than 249 characters, topic name: "
            + "x" * 250,
        ),
    ],
)
def test_a_bad_topic_name_is_refused_in_the_words_of_the_release(
    kafka_version: str, name: str, message: str
) -> None:
    cluster = ControllerCluster([1], kafka_version)
    result = created(cluster, NewTopic(name, 1, 1))
    assert (result.error, result.error_message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, message)


def test_a_repeated_replica_is_shown_as_scala_prints_the_assignment() -> None:
    cluster = ControllerCluster([1, 2])
    result = created(cluster, NewTopic("t", -1, -1, ((0, (1, 1)), (1, (2, 1)))))
    assert (result.error, result.error_message) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Duplicate replica assignment found: "
        "HashMap(0 -> ArrayBuffer(1, 1), 1 -> ArrayBuffer(2, 1))",
    )


def test_a_partition_may_be_created_without_replicas() -> None:
    """``AdminZkClient.validateTopicCreate`` does not check this: the topic exists and never has a
    leader."""
    cluster = ControllerCluster([1, 2])
    result = created(cluster, NewTopic("t", -1, -1, ((0, ()),)))
    assert (result.error, result.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    assert cluster.topics() == ["t"]
    assert created(cluster, NewTopic("u", 1, 1)).error is ErrorCode.NONE


@pytest.mark.parametrize(("kafka_version", "message"), [("3.9", ""), ("2.8", ""), ("1.1", None)])
def test_not_controller_has_no_error_message(kafka_version: str, message: str | None) -> None:
    """Generated responses have an empty string for an unset message, earlier ones null."""
    cluster = ControllerCluster([1, 2], kafka_version)
    other = 3 - cluster.active.broker_id
    result = created(cluster, NewTopic("t", 1, 1), other)
    assert (result.error, result.error_message) == (ErrorCode.NOT_CONTROLLER, message)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            ((2, 3, 1),),
            "Inconsistent replication factor between partitions, partition 0 has 2 while "
            "partitions [3] have replication factors [3], respectively.",
        ),
        (((2, 9), (8, 1)), "Unknown broker(s) in replica assignment: 9, 8."),
        (
            ((2, 2),),
            "Duplicate brokers not allowed in replica assignment: 2, 2 for partition id 3.",
        ),
        (((),), "Cannot have replication factor of 0 for partition id 3."),
        (((1, 2), (2, 3)), None),
        (
            ((1,), (2, 3), (2,)),
            "Inconsistent replication factor between partitions, partition 0 has 2 while "
            "partitions [3, 5] have replication factors [1, 1], respectively.",
        ),
    ],
)
def test_a_bad_assignment_of_added_partitions_names_the_partition(
    lists: tuple[tuple[int, ...], ...], message: str | None
) -> None:
    cluster = ControllerCluster([1, 2, 3])
    cluster.create_topic("t", (1, 2), (2, 3), (3, 1))
    request = CreatePartitionsRequest((NewPartitions("t", 3 + len(lists), lists),), 1000)
    (result,) = cluster.ask(cluster.admin().topics.create_partitions(request), 1000).topics
    expected = ErrorCode.NONE if message is None else ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert (result.error, result.error_message) == (expected, message)
