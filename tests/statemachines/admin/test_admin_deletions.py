"""DeleteTopics: refusals, writes, waiting; topics by name and by id."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.admin import DeleteTopicsRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.controller_cluster import ControllerCluster
from fakekafka.tests.support.run_now import run_now


def delete(cluster: ControllerCluster, *names: str, **options: Any) -> list[ErrorCode]:
    request = DeleteTopicsRequest(names, **options)
    response = cluster.ask(
        cluster.admin().topics.delete_topics(request), max(0, request.timeout_ms)
    )
    return [result.error for result in response.topics]


def test_a_deleted_topic_no_longer_exists_when_the_answer_arrives(
    cluster: ControllerCluster,
) -> None:
    """CP-155, CP-162: unknown topics are refused and leave no node behind."""
    cluster.create_topic("t", (1, 2))
    assert delete(cluster, "t", "nothing") == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert cluster.topics() == []
    assert cluster.zookeeper.children("/admin/delete_topics") == []


def test_a_deletion_that_cannot_end_is_answered_late(cluster: ControllerCluster) -> None:
    """CP-163: a second request finds the topic marked for deletion, and waits as well."""
    cluster.create_topic("t", (1, 3))
    cluster.kill(3)
    # Brokers forget the topic as soon as its deletion starts; the request itself succeeds.
    assert delete(cluster, "t", timeout_ms=0) == [ErrorCode.REQUEST_TIMED_OUT]
    assert run_now(cluster.zk.admin.is_topic_marked_for_deletion("t"))
    assert delete(cluster, "t") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_topics_are_deleted_by_id(cluster: ControllerCluster) -> None:
    """Data plane 15.6: an unknown id is answered with UNKNOWN_TOPIC_ID."""
    cluster.create_topic("t", (1, 2))
    topic_id = cluster.active.context.topics.topic_ids["t"]
    request = DeleteTopicsRequest((), 1000, (topic_id, "nothing"))
    results = cluster.ask(cluster.admin().topics.delete_topics(request), 1000).topics
    assert [(r.name, r.error) for r in results] == [
        ("t", ErrorCode.NONE),
        ("", ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize("refusal", ["NOT_CONTROLLER", "TOPIC_DELETION_DISABLED"])
def test_a_refused_deletion_names_topics_as_the_request_did(refusal: str) -> None:
    """``KafkaApis.handleDeleteTopicsRequest`` looks up the names of ids, and refuses names beside
    ids, only after it has checked that the broker is the controller and that deletion is enabled.
    """
    cluster = ControllerCluster([1, 2], delete_topic_enable=refusal == "NOT_CONTROLLER")
    cluster.create_topic("t", (1,))
    topic_id = cluster.active.context.topics.topic_ids["t"]
    request = DeleteTopicsRequest(("u",), 1000, (topic_id,), 1, (("t", topic_id),))
    other = next(b for b in (1, 2) if b != cluster.active.broker_id)
    asked = other if refusal == "NOT_CONTROLLER" else cluster.active.broker_id
    results = cluster.ask(cluster.admin(asked).topics.delete_topics(request), 1000).topics
    assert {r.error for r in results} == {ErrorCode[refusal]}
    assert [(r.name, r.topic_id) for r in results] == [
        ("u", ""),
        ("", topic_id),
        ("", ""),
        ("t", topic_id),
    ]


def test_a_name_beside_an_id_refuses_the_whole_deletion(cluster: ControllerCluster) -> None:
    """The controller deletes no topic of the request (``KafkaApis.handleDeleteTopicsRequest``)."""
    cluster.create_topic("t", (1, 2))
    topic_id = cluster.active.context.topics.topic_ids["t"]
    request = DeleteTopicsRequest(("t",), 1000, (), 0, (("t", topic_id),))
    results = cluster.ask(cluster.admin().topics.delete_topics(request), 1000).topics
    assert {result.error for result in results} == {ErrorCode.INVALID_REQUEST}
    assert cluster.topics() == ["t"]


def test_deletion_may_be_disabled_and_names_may_come_twice() -> None:
    """CP-164, docs/kafka/administration.md#topics: a name that comes twice is deleted once
    (``KafkaApis``)."""
    cluster = ControllerCluster([1], delete_topic_enable=False)
    cluster.create_topic("t", (1,))
    assert delete(cluster, "t") == [ErrorCode.TOPIC_DELETION_DISABLED]
    cluster = ControllerCluster([1])
    cluster.create_topic("t", (1,))
    assert delete(cluster, "t", "t") == [ErrorCode.NONE] * 2
    assert cluster.topics() == []
