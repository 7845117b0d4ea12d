"""Errors of ListOffsets, OffsetForLeaderEpoch and DeleteRecords in one table
(docs/kafka/offsets-and-epochs.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakekafka.protocol.data import (
    INTERNAL_CONTEXT,
    DeleteRecordsRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    RequestContext,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led

LATEST, EARLIEST = -1, -2
NOWHERE = TopicPartition("nowhere", 0)
ELSEWHERE = TopicPartition("elsewhere", 0)
CODE = ErrorCode


def listed(
    cluster: ReplicaCluster,
    tp: TopicPartition,
    epoch: int,
    timestamp: int = LATEST,
    api_version: int = 7,
    offsets_max: int = 1,
) -> Any:
    entry = ListOffsetsPartition(tp, timestamp, epoch, offsets_max)
    context = RequestContext("c", api_version)
    return (
        cluster[0]
        .manager.offsets.list_offsets(ListOffsetsRequest(-1, (entry,)), context)
        .partitions[0]
    )


def of_list_offsets(cluster: ReplicaCluster, tp: TopicPartition, epoch: int) -> Any:
    answer = listed(cluster, tp, epoch)
    return answer.error, (answer.offset, answer.timestamp, answer.leader_epoch)


def of_epochs(cluster: ReplicaCluster, tp: TopicPartition, epoch: int) -> Any:
    entry = OffsetForLeaderEpochPartition(tp, 0, epoch)
    request = OffsetForLeaderEpochRequest(-1, (entry,))
    manager = cluster[0].manager
    (answer,) = manager.offsets.offsets_for_leader_epoch(request).partitions
    return answer.error, (answer.end_offset, -1, answer.leader_epoch)


def of_delete_records(cluster: ReplicaCluster, tp: TopicPartition, _epoch: int) -> Any:
    answers: list[Any] = []
    request = DeleteRecordsRequest(1000, ((tp, 1),))
    cluster[0].manager.offsets.delete_records(request, INTERNAL_CONTEXT, answers.append)
    ((_, error, low_watermark),) = answers[0].partitions
    return error, (low_watermark, -1, -1)


def failed_disk(cluster: ReplicaCluster) -> None:
    cluster[0].manager.failures.handle_log_dir_failure(cluster[0].log().directory)


def led_again(cluster: ReplicaCluster) -> None:
    cluster.elect(0)


def following(cluster: ReplicaCluster) -> None:
    cluster.elect(1)


def nothing(_cluster: ReplicaCluster) -> None:
    pass


ASKED = {
    "ListOffsets": of_list_offsets,
    "OffsetForLeaderEpoch": of_epochs,
    "DeleteRecords": of_delete_records,
}
SITUATIONS: dict[str, tuple[Callable[[ReplicaCluster], None], TopicPartition, int, ErrorCode]] = {
    "nobody knows it": (nothing, NOWHERE, -1, CODE.UNKNOWN_TOPIC_OR_PARTITION),
    "others host it": (nothing, ELSEWHERE, -1, CODE.NOT_LEADER_OR_FOLLOWER),
    "another leads": (following, TP, -1, CODE.NOT_LEADER_OR_FOLLOWER),
    "the disk has failed": (failed_disk, TP, -1, CODE.KAFKA_STORAGE_ERROR),
    "old epoch": (led_again, TP, 0, CODE.FENCED_LEADER_EPOCH),
    "old epoch at a follower": (following, TP, 0, CODE.FENCED_LEADER_EPOCH),
    "new epoch": (nothing, TP, 1, CODE.UNKNOWN_LEADER_EPOCH),
}


@pytest.mark.parametrize(
    ("asked", "situation"),
    [
        (asked, situation)
        for asked in ASKED
        for situation, (_, _, epoch, _) in SITUATIONS.items()
        if epoch < 0 or asked != "DeleteRecords"  # DeleteRecords requests name no epoch
    ],
)
def test_a_lookup_that_cannot_be_answered_gets_its_error(asked: str, situation: str) -> None:
    """Every request gets the same errors, with -1 in place of the answer
    (docs/kafka/offsets-and-epochs.md, docs/kafka/partitions.md)."""
    prepare, tp, epoch, error = SITUATIONS[situation]
    cluster = led("2.8", 3, (0, 1))
    cluster.create((1, 2), ELSEWHERE)
    prepare(cluster)
    assert ASKED[asked](cluster, tp, epoch) == (error, (-1, -1, -1))


@pytest.mark.parametrize(
    ("message_format", "api_version", "error"),
    [("0.9.0", 1, CODE.UNSUPPORTED_FOR_MESSAGE_FORMAT), ("0.10.0", 1, CODE.NONE)],
)
def test_timestamp_lookups_need_a_format_with_timestamps(
    message_format: str, api_version: int, error: ErrorCode
) -> None:
    """Format v0 has no timestamps to search; both ends of the log are known nevertheless
    (docs/kafka/offsets-and-epochs.md#listoffsets)."""
    cluster = led("2.8", 1, topic={"message.format.version": message_format})
    assert listed(cluster, TP, -1, 5, api_version).error is error
    assert listed(cluster, TP, -1, EARLIEST, api_version).offset == 0


def test_version_0_lists_up_to_the_requested_number_of_offsets() -> None:
    """DP-90: v0 answers up to the requested number of segment starts, newest first, even in a
    format without times."""
    cluster = led("2.8", 1, topic={"segment.bytes": "100", "message.format.version": "0.9.0"})
    log = cluster[0].log()
    for value in "abc":
        append_as_leader(log, encode(value), 0, cluster.clock.now_ms)
    cluster[0].partition().maybe_increment_high_watermark(cluster.clock.now_ms)
    for offsets_max, expected in ((1, (3,)), (3, (3, 2, 1)), (9, (3, 2, 1, 0))):
        answer = listed(cluster, TP, -1, LATEST, 0, offsets_max)
        assert (answer.error, answer.old_style_offsets) == (CODE.NONE, expected)
    assert listed(cluster, TP, -1, EARLIEST, 0, 5).old_style_offsets == (0,)
    assert listed(cluster, TP, -1, cluster.clock.now_ms, 0, 9).error is CODE.NONE
    assert listed(cluster, NOWHERE, -1, LATEST, 0).error is CODE.UNKNOWN_TOPIC_OR_PARTITION
