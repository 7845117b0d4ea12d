"""Errors and metadata in which brokers before 2.0, 2.1, 2.4 and 2.8 differ."""

from __future__ import annotations

import pytest
from fakekafka.protocol.control import UpdateMetadataPartitionState, UpdateMetadataRequest
from fakekafka.protocol.data import (
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.replication.partition.metadata_cache import MetadataCache
from fakekafka.tests.support.replica_cluster import TP, encode, led


@pytest.mark.parametrize(("version", "isr"), [("0.10", ()), ("1.1", ()), ("2.8", (2,))])
def test_the_isr_of_a_leaderless_partition(version: str, isr: tuple[int, ...]) -> None:
    """Since 2.1 Metadata answers the ISR of a leaderless partition (KAFKA-7333); before, an empty
    one."""
    cache = MetadataCache(1, behaviour=behaviour(version))
    state = UpdateMetadataPartitionState("t", 0, 1, -1, 3, (2,), 0, (2,), ())
    brokers = (BrokerInfo(1, (EndPoint("h", 9092),)),)
    cache.update(UpdateMetadataRequest(1, 1, -1, (state,), brokers, ()))
    (partition,) = cache.metadata_topic("t", "PLAINTEXT").partitions
    assert (partition.error, partition.isr) == (ErrorCode.LEADER_NOT_AVAILABLE, isr)


@pytest.mark.parametrize(
    ("version", "error"),
    [("1.1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("2.8", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_metadata_of_an_invalid_name(version: str, error: ErrorCode) -> None:
    """Before 2.8 Metadata treats an invalid topic name as an unknown topic."""
    answer = MetadataCache(1, behaviour=behaviour(version)).metadata(MetadataRequest(("a b",)))
    assert [topic.error for topic in answer.topics] == [error]


@pytest.mark.parametrize(
    ("version", "error"),
    [("1.1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("2.8", ErrorCode.NOT_LEADER_OR_FOLLOWER)],
)
def test_a_broker_without_replica(version: str, error: ErrorCode) -> None:
    """KAFKA-6796 (2.0): a partition hosted by other brokers is not unknown."""
    cluster = led(version, brokers=2)
    elsewhere = TopicPartition("elsewhere", 0)
    state = UpdateMetadataPartitionState("elsewhere", 0, 1, 1, 3, (1,), 0, (1,), ())
    cluster[0].manager.metadata_cache.update(UpdateMetadataRequest(1, 1, -1, (state,), (), ()))
    assert cluster[0].manager.hosted.lookup_error(elsewhere) is error


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", ErrorCode.CORRUPT_MESSAGE), ("2.8", ErrorCode.INVALID_RECORD)]
)
def test_invalid_records_were_corrupt_ones(version: str, error: ErrorCode) -> None:
    """KIP-467 (2.4) introduced INVALID_RECORD, for instance for a missing key in a compacted
    topic."""
    manager = led(version, brokers=2)[0].manager
    assert manager.produce.failed_produce(TP, ErrorCode.INVALID_RECORD).error is error


@pytest.mark.parametrize(
    ("version", "error"), [("1.1", ErrorCode.CORRUPT_MESSAGE), ("2.8", ErrorCode.INVALID_RECORD)]
)
def test_a_record_without_a_key_was_corrupt(version: str, error: ErrorCode) -> None:
    """A record without a key in a compacted topic gets the error of the release."""
    cluster = led(version, brokers=1, topic={"cleanup.policy": "compact"})
    answers: list[ProduceResponse] = []
    request = ProduceRequest(1, 1000, (ProducePartition(TP, encode("a")),))
    cluster[0].manager.produce.append_records(request, RequestContext(), answers.append)
    assert answers[0].partitions[0].error is error


@pytest.mark.parametrize(("version", "is_told"), [("1.1", False), ("2.8", True)])
def test_the_last_stable_offset_is_sent_to_all_consumers_since_2_1(
    version: str, is_told: bool
) -> None:
    """Since 2.1 (KAFKA-7395) all consumers learn the last stable offset; before, only
    READ_COMMITTED ones."""
    cluster = led(version, brokers=1)
    cluster.produce(0, "a")
    for offset in (0, 1):
        (answer,) = cluster.fetch(0, offset)
        assert answer.last_stable_offset == (1 if is_told else -1)
        (answer,) = cluster.fetch(0, offset, isolation_level=1)
        assert answer.last_stable_offset == 1
