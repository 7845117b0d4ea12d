"""The limit of partitions that one request may create."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.controller_cluster import ControllerCluster

TEXT = (
    "Excessively large number of partitions per request: max.partitions.per.request is 10000, "
    "with 10 replicas each."
)


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    "topic",
    [
        NewTopic("t", 10_001, 1),
        NewTopic("t", 1_000_000, 1),
        NewTopic("t", 2**31 - 1, 3),
        NewTopic("t", -1, -1, ((0, tuple(range(100_001))),)),
        NewTopic("t", -1, -1, tuple((number, ()) for number in range(10_001))),
    ],
    ids=["one more", "a million", "all there are", "replicas", "lists"],
)
def test_a_topic_of_too_many_partitions_is_refused(
    cluster: ControllerCluster, topic: NewTopic, validate_only: bool
) -> None:
    """POLICY_VIOLATION names the setting, also if the request is only validated."""
    request = CreateTopicsRequest((topic, NewTopic("u", 1, 1)), 0, validate_only)
    refused, other = cluster.ask(cluster.admin().topics.create_topics(request)).topics
    assert (refused.error, refused.error_message) == (ErrorCode.POLICY_VIOLATION, TEXT)
    assert other.error in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)


def test_the_topics_of_a_request_count_together(cluster: ControllerCluster) -> None:
    """Topics that still fit are created."""
    cluster.processes[1].config.static["max.partitions.per.request"] = 5
    cluster.processes[1].config.set_dynamic({})
    topics = tuple(NewTopic(name, count, 1) for name, count in (("a", 3), ("b", 3), ("c", 2)))
    request = CreateTopicsRequest(topics, 0)
    results = cluster.ask(cluster.admin().topics.create_topics(request)).topics
    assert [result.error for result in results] == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.REQUEST_TIMED_OUT,
    ]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("count", [10_003, 1_000_000, 2**31 - 1])
def test_a_topic_grows_by_no_more_either(
    cluster: ControllerCluster, count: int, validate_only: bool
) -> None:
    """Only added partitions count."""
    cluster.create_topic("t", (1,), (1,))
    request = CreatePartitionsRequest((NewPartitions("t", count),), 0, validate_only)
    (result,) = cluster.ask(cluster.admin().topics.create_partitions(request)).topics
    assert (result.error, result.error_message) == (ErrorCode.POLICY_VIOLATION, TEXT)
