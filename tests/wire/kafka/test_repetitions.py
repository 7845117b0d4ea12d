"""Repeated names in a request: which releases merge them, and which of them counts."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol import admin, data, groups, transactions
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.wire.kafka.api import CodecAnswer
from fakekafka.wire.kafka.repetitions import collectors, last_of_each

A, B = TopicPartition("a", 0), TopicPartition("a", 1)
TOPIC = admin.ConfigResource(2, "a")
OLD = ("0.10", "1.1")


def _collected(kafka_version: str, key: int, request: Any, version: int = 1) -> Any:
    collect = collectors(behaviour(kafka_version)).get(key)
    return request if collect is None else collect(request, version)


def test_the_last_mention_counts_where_the_first_one_was() -> None:
    entries = (("a", 1), ("b", 2), ("a", 3))
    assert last_of_each(entries, lambda entry: entry[0]) == (("a", 3), ("b", 2))


@pytest.mark.parametrize("kafka_version", ["0.10", "1.1", "2.8", "3.9"])
def test_names_are_collected_until_apis_are_generated(kafka_version: str) -> None:
    """DescribeGroups, DeleteTopics, DescribeConfigs and AlterConfigs of 1.1 build maps and sets."""
    once = kafka_version in OLD
    described = groups.DescribeGroupsRequest(("g", "h", "g"))
    expected = ("g", "h") if once else ("g", "h", "g")
    assert _collected(kafka_version, 15, described).group_ids == expected
    deleted = admin.DeleteTopicsRequest(("t", "t"))
    assert _collected(kafka_version, 20, deleted).topics == (("t",) if once else ("t", "t"))
    changes = ((TOPIC, (("x", 0, "1"),)), (TOPIC, (("x", 0, "2"),)))
    altered = admin.AlterConfigsRequest(changes, False, False)
    assert _collected(kafka_version, 33, altered).resources == (changes[1:] if once else changes)


@pytest.mark.parametrize(
    ("kafka_version", "expected"), [("1.1", (A, B)), ("2.8", (A, B)), ("3.9", (A, B, A))]
)
def test_partitions_of_a_transaction_are_collected_before_3_5(
    kafka_version: str, expected: tuple[TopicPartition, ...]
) -> None:
    asked = transactions.TransactionPartitions("t", 1, 0, (A, B, A))
    request = transactions.AddPartitionsToTxnRequest((asked,))
    (collected,) = _collected(kafka_version, 24, request).transactions
    assert collected.partitions == expected


@pytest.mark.parametrize(("kafka_version", "version", "count"), [("2.8", 0, 1), ("3.9", 0, 2)])
def test_commits_to_zookeeper_are_collected_before_3_5(
    kafka_version: str, version: int, count: int
) -> None:
    commit = groups.OffsetCommitPartition(A, 5)
    request = groups.OffsetCommitRequest("g", -1, "", None, (commit, commit))
    assert len(_collected(kafka_version, 8, request, version).partitions) == count


@pytest.mark.parametrize(("kafka_version", "count"), [("0.10", 2), ("1.1", 1), ("3.9", 1)])
def test_fetched_partitions_are_collected_since_0_11(kafka_version: str, count: int) -> None:
    """Repeated partitions are merged since 0.11; ``FetchRequest.readFrom`` of 0.10 keeps them."""
    entry = data.FetchPartition(A, 0, 100)
    request = data.FetchRequest(-1, 0, 0, 1000, (entry, entry))
    assert len(_collected(kafka_version, 1, request).partitions) == count


def test_answers_of_the_codec_are_left_alone() -> None:
    answer = CodecAnswer(data.FetchResponse(ErrorCode.NONE, 0, ()))
    assert _collected("3.9", 1, answer) is answer
