"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords (docs/kafka/offsets-and-epochs.md)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    READ_COMMITTED,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    ProducePartition,
    ProduceRequest,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.tests.support.batches import with_base_offset
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led

LATEST, EARLIEST, MAXIMUM = -1, -2, -3
OTHER = TopicPartition("u", 0)
NOWHERE = TopicPartition("nowhere", 0)


def append(cluster: ReplicaCluster, *values: str, timestamp: int, **more: Any) -> None:
    records = encode(*values, timestamp=timestamp, **more)
    cluster[0].manager.produce.append_records(
        ProduceRequest(1, 1000, (ProducePartition(TP, records),)), INTERNAL_CONTEXT, lambda r: None
    )


def listed(
    cluster: ReplicaCluster,
    timestamp: int,
    broker: int = 0,
    replica_id: int = -1,
    tp: TopicPartition = TP,
    epoch: int = -1,
    isolation: int = 0,
    version: int = -1,
) -> Any:
    request = ListOffsetsRequest(
        replica_id, (ListOffsetsPartition(tp, timestamp, epoch),), isolation
    )
    context = RequestContext("c", version)
    return cluster[broker].manager.offsets.list_offsets(request, context).partitions[0]


def ended(
    cluster: ReplicaCluster, epoch: int, broker: int = 0, tp: TopicPartition = TP, current: int = -1
) -> Any:
    request = OffsetForLeaderEpochRequest(-1, (OffsetForLeaderEpochPartition(tp, epoch, current),))
    return cluster[broker].manager.offsets.offsets_for_leader_epoch(request).partitions[0]


# -- ListOffsets --------------------------------------------------------------------------------


def test_empty_log_and_unknown_topic() -> None:
    """DP-88: an empty log answers 0 for both ends; an unknown topic is error 3 with offset -1."""
    cluster = led()
    assert listed(cluster, LATEST).offset == 0
    assert listed(cluster, EARLIEST).offset == 0
    unknown = listed(cluster, LATEST, tp=NOWHERE)
    assert (unknown.error, unknown.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_the_latest_offset_depends_on_the_reader() -> None:
    """DP-8: with three records of an open transaction and HW 1 the latest offset is 3, 1 or 0, by
    reader."""
    cluster = led()
    append(
        cluster,
        "a",
        timestamp=5,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    append(
        cluster,
        "b",
        "c",
        timestamp=5,
        producer_id=1,
        producer_epoch=0,
        base_sequence=1,
        is_transactional=True,
    )
    cluster.fetch(0, 1, replica_id=1)
    assert listed(cluster, LATEST, replica_id=1).offset == 3
    assert listed(cluster, LATEST).offset == 1
    assert listed(cluster, LATEST, isolation=READ_COMMITTED).offset == 0


def test_latest_carries_the_current_epoch() -> None:
    """DP-6: the latest offset has the current epoch even if no record was written in it."""
    cluster = led()
    cluster.produce(0, "a")
    cluster.elect(0)
    answer = listed(cluster, LATEST, replica_id=1)
    assert (answer.offset, answer.timestamp, answer.leader_epoch) == (1, -1, 1)


def test_earliest_carries_the_epoch_of_the_log_start() -> None:
    """The earliest offset comes with the epoch that covers it, if the history reaches that far."""
    cluster = led(brokers=1)
    cluster.produce(0, *"ab")
    cluster.elect(0)
    cluster.produce(0, *"cd")
    answer = listed(cluster, EARLIEST)
    assert (answer.offset, answer.timestamp, answer.leader_epoch) == (0, -1, 0)
    cluster[0].log().maybe_increment_log_start_offset(3)
    answer = listed(cluster, EARLIEST)
    assert (answer.offset, answer.leader_epoch) == (3, 1)


def test_by_time() -> None:
    """DP-90, DP-130: a timestamp finds the first record at or after it; beyond the last record
    none, without an error."""
    cluster = led(brokers=1)
    for timestamp in range(0, 100, 10):
        append(cluster, "x", timestamp=timestamp)
    found = listed(cluster, 20)
    assert (found.offset, found.timestamp, found.leader_epoch) == (2, 20, 0)
    assert listed(cluster, 15).offset == 2
    missing = listed(cluster, 91)
    assert (missing.error, missing.offset) == (ErrorCode.NONE, -1)
    assert (missing.timestamp, missing.leader_epoch) == (-1, -1)


@pytest.mark.parametrize("timestamp", [5, MAXIMUM])
def test_a_batch_that_cannot_be_read_is_corrupt(timestamp: int) -> None:
    """A batch that cannot be read, as in an old log, makes the look-up answer an error for its
    partition."""
    cluster = led("3.9", brokers=1)
    append(cluster, "a", timestamp=2)
    bad = encode("x" * 30, timestamp=9)
    bad = with_base_offset(bad[:61] + b"\xff" * 9 + bad[70:], 1, 0)
    append_as_follower(cluster[0].log(), [RecordBatch.from_bytes(bad)], cluster.clock.now_ms)
    cluster[0].partition().maybe_increment_high_watermark(cluster.clock.now_ms)
    assert listed(cluster, timestamp).error is ErrorCode.CORRUPT_MESSAGE
    assert listed(cluster, 2).offset == 0


def test_by_time_stays_below_the_bound() -> None:
    """A record at or above the reader's bound is not found by time, except by a follower."""
    cluster = led()
    append(cluster, "a", timestamp=10)
    append(cluster, "b", timestamp=20)
    cluster.fetch(0, 1, replica_id=1)
    assert listed(cluster, 20).offset == -1
    assert listed(cluster, 20, replica_id=1).offset == 1


def test_maximum_timestamp() -> None:
    """Since 3.0 timestamp -3 finds the first record with the greatest timestamp.

    Before, -3 is an ordinary timestamp: the first record is at or after it.
    """
    for version, offset in (("3.9", 1), ("2.8", 0)):
        cluster = led(version, brokers=1)
        for timestamp in (10, 30, 20, 30):
            append(cluster, "x", timestamp=timestamp)
        answer = listed(cluster, MAXIMUM)
        assert (answer.error, answer.offset) == (ErrorCode.NONE, offset)


@pytest.mark.parametrize(
    ("kafka_version", "timestamp", "api_version", "expected"),
    [
        ("3.9", MAXIMUM, 6, (ErrorCode.UNSUPPORTED_VERSION, -1)),
        ("3.9", MAXIMUM, 7, (ErrorCode.NONE, 1)),
        ("3.9", -4, 7, (ErrorCode.UNSUPPORTED_VERSION, -1)),
        ("3.9", -4, 8, (ErrorCode.NONE, 0)),
        ("3.9", -5, 9, (ErrorCode.NONE, -1)),
        ("3.9", -6, 9, (ErrorCode.UNSUPPORTED_VERSION, -1)),
        ("2.8", -3, 4, (ErrorCode.NONE, 0)),
        ("2.8", -4, 6, (ErrorCode.NONE, 0)),
        ("2.8", -9, 4, (ErrorCode.NONE, 0)),
    ],
)
def test_special_times_belong_to_versions(
    kafka_version: str, timestamp: int, api_version: int, expected: tuple[ErrorCode, int]
) -> None:
    """3.9 refuses a timestamp below -2 that the request's version does not define; 2.8 looks it
    up."""
    cluster = led(kafka_version, brokers=1)
    append(cluster, "a", timestamp=10)
    append(cluster, "b", timestamp=30)
    entries = (ListOffsetsPartition(TP, timestamp),)
    (answer,) = (
        cluster[0]
        .manager.offsets.list_offsets(
            ListOffsetsRequest(-1, entries), RequestContext(api_version=api_version)
        )
        .partitions
    )
    assert (answer.error, answer.offset) == expected


@pytest.mark.parametrize(("is_special", "expected"), [(False, -1), (True, 0)])
def test_the_first_local_offset_needs_no_record(is_special: bool, expected: int) -> None:
    """Timestamp -4 is the log start (KIP-405); before, an ordinary timestamp that no record has."""
    cluster = led("2.8", brokers=1, flags={"earliest_local_lookup": is_special})
    request = ListOffsetsRequest(-1, (ListOffsetsPartition(TP, -4),))
    (answer,) = cluster[0].manager.offsets.list_offsets(request, INTERNAL_CONTEXT).partitions
    assert (answer.error, answer.offset) == (ErrorCode.NONE, expected)


def test_repeated_partition() -> None:
    """A partition named twice in a request is INVALID_REQUEST; others are answered."""
    cluster = led()
    cluster.create((0,), OTHER)
    entries = tuple(ListOffsetsPartition(tp, LATEST) for tp in (TP, OTHER, TP))
    answers = (
        cluster[0]
        .manager.offsets.list_offsets(ListOffsetsRequest(-1, entries), INTERNAL_CONTEXT)
        .partitions
    )
    assert [a.error for a in answers] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
    ]


def test_wrong_brokers() -> None:
    """DP-89: a follower and a broker without the replica answer 6; debuggers may ask followers."""
    cluster = led(brokers=3)
    cluster.create((0, 1), OTHER)
    assert listed(cluster, LATEST, broker=1).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert listed(cluster, LATEST, broker=2, tp=OTHER).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert listed(cluster, LATEST, broker=1, replica_id=-2).error is ErrorCode.NONE


def test_epochs_are_checked() -> None:
    """DP-5, DP-89: older epochs 74, newer 75, on leaders and followers alike."""
    cluster = led()
    cluster.elect(0)
    for broker in (0, 1):
        assert listed(cluster, LATEST, broker, epoch=0).error is ErrorCode.FENCED_LEADER_EPOCH
        assert listed(cluster, 5, broker, epoch=2).error is ErrorCode.UNKNOWN_LEADER_EPOCH
        assert ended(cluster, 0, broker, current=0).error is ErrorCode.FENCED_LEADER_EPOCH
        assert ended(cluster, 0, broker, current=2).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert listed(cluster, 5, epoch=1).error is ErrorCode.NONE
    assert ended(cluster, 0, current=1).error is ErrorCode.NONE


def test_offset_not_available_after_an_election() -> None:
    """DP-7: with the HW below the epoch's start clients get 78 and followers an answer, until the
    HW moves."""
    cluster = led()
    append(cluster, "a", timestamp=10)
    append(cluster, "b", timestamp=20)
    cluster.elect(0)
    assert listed(cluster, LATEST).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(cluster, 20).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(cluster, 99).error is ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(cluster, EARLIEST).error is ErrorCode.NONE
    assert listed(cluster, LATEST, replica_id=1).offset == 2
    assert listed(cluster, LATEST, replica_id=-2).offset == 2
    cluster.fetch(0, 2, replica_id=1)
    assert listed(cluster, LATEST).offset == 2


def test_legacy_offsets() -> None:
    """DP-90: v0 answers a list of offsets, newest first, bounded by the high watermark for
    consumers."""
    cluster = led()
    cluster.produce(0, *"abc")
    legacy = cluster[0].manager.offsets.legacy_offsets
    assert legacy(TP, LATEST, 10, 1) == (ErrorCode.NONE, (3, 0))
    assert legacy(TP, LATEST, 1, -1) == (ErrorCode.NONE, (0,))
    cluster.fetch(0, 2, replica_id=1)
    assert legacy(TP, LATEST, 10, -1) == (ErrorCode.NONE, (2, 0))
    assert legacy(TP, EARLIEST, 10, -1) == (ErrorCode.NONE, (0,))
    assert legacy(NOWHERE, LATEST, 1, -1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ())
    assert cluster[1].manager.offsets.legacy_offsets(TP, LATEST, 1, -1)[0] is (
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


# -- OffsetForLeaderEpoch -----------------------------------------------------------------------


def test_epoch_ends() -> None:
    """DP-96: epochs 0, 2 and 4 have ends; a future epoch has none; a skipped one has the end of the
    one below."""
    cluster = led(brokers=1)
    for _ in range(3):
        cluster.produce(0, "x")
        cluster.elect(-1)
        cluster.elect(0)
    assert cluster[0].epochs() == [(0, 0), (2, 1), (4, 2), (6, 3)]
    answers = [(ended(cluster, e).leader_epoch, ended(cluster, e).end_offset) for e in range(8)]
    assert answers == [(0, 1), (0, 1), (2, 2), (2, 2), (4, 3), (4, 3), (6, 3), (-1, -1)]


def test_epoch_errors() -> None:
    """DP-99: a broker that is not the leader answers 6; an unknown partition is 3."""
    cluster = led()
    assert ended(cluster, 0, broker=1).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert ended(cluster, 0, tp=NOWHERE).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_old_leaders_answer_an_offset_alone() -> None:
    """KIP-101: old leaders answer an offset only, and none for an epoch in the future or before the
    history."""
    cluster = led("1.1", brokers=1)
    cluster.elect(0)
    cluster.elect(0)
    cluster.produce(0, "a")
    cluster.elect(0)
    cluster.produce(0, "b")
    assert cluster[0].epochs() == [(2, 0), (3, 1)]
    answers = [(ended(cluster, e).leader_epoch, ended(cluster, e).end_offset) for e in range(1, 5)]
    assert answers == [(-1, -1), (-1, 1), (-1, 2), (-1, -1)]
