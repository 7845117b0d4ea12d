"""Every error of a fetch, in one row each (docs/kafka/partitions.md#access, docs/kafka/fetch.md,
docs/kafka/fetch-sessions.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from fakekafka.protocol.data import FetchPartition, FetchRequest, RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.leader.down_conversion import NEWEST_OLD_FETCH
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.down_conversion import down_converted
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led

NOWHERE = TopicPartition("nowhere", 0)
ELSEWHERE = TopicPartition("elsewhere", 0)
CODE = ErrorCode


def failed_disk(cluster: ReplicaCluster) -> None:
    cluster[0].manager.failures.handle_log_dir_failure(cluster[0].log().directory)


class Row(NamedTuple):
    error: ErrorCode
    offset: int = 3
    prepare: Callable[[ReplicaCluster], object] = lambda cluster: None
    topic: dict[str, str] = {}
    tp: TopicPartition = TP
    api_version: int = 12
    epoch: int = -1
    last_epoch: int = -1
    replica_id: int = -1


ZSTD = {"compression.type": "zstd"}
UNCONVERTED = {"message.downconversion.enable": "false"}
MATRIX = {
    "below the log start": Row(CODE.OFFSET_OUT_OF_RANGE, 1),
    "above the log end": Row(CODE.OFFSET_OUT_OF_RANGE, 9),
    "follower below the log start": Row(CODE.OFFSET_OUT_OF_RANGE, 1, replica_id=1),
    "follower above the log end": Row(CODE.OFFSET_OUT_OF_RANGE, 9, replica_id=1),
    "an epoch nobody knows": Row(CODE.OFFSET_OUT_OF_RANGE, last_epoch=8, replica_id=1),
    "diverging, but below the log start": Row(
        CODE.OFFSET_OUT_OF_RANGE, 1, last_epoch=0, replica_id=1
    ),
    "nobody knows the partition": Row(CODE.UNKNOWN_TOPIC_OR_PARTITION, tp=NOWHERE),
    "other brokers host it": Row(CODE.NOT_LEADER_OR_FOLLOWER, tp=ELSEWHERE),
    "a follower asks a follower": Row(
        CODE.NOT_LEADER_OR_FOLLOWER, prepare=lambda cluster: cluster.elect(1), replica_id=1
    ),
    "an old consumer asks a follower": Row(
        CODE.NOT_LEADER_OR_FOLLOWER, prepare=lambda cluster: cluster.elect(1), api_version=10
    ),
    "the disk has failed": Row(CODE.KAFKA_STORAGE_ERROR, prepare=failed_disk),
    "the disk has failed, v6": Row(CODE.KAFKA_STORAGE_ERROR, prepare=failed_disk, api_version=6),
    "the epoch is old": Row(
        CODE.FENCED_LEADER_EPOCH, prepare=lambda cluster: cluster.elect(0), epoch=0
    ),
    "the epoch is new": Row(CODE.UNKNOWN_LEADER_EPOCH, epoch=1),
    "wrong epochs come before wrong leaders": Row(
        CODE.FENCED_LEADER_EPOCH, prepare=lambda cluster: cluster.elect(1), epoch=0, api_version=10
    ),
    "zstd, v9": Row(CODE.UNSUPPORTED_COMPRESSION_TYPE, topic=ZSTD, api_version=9),
    "zstd, v1": Row(CODE.UNSUPPORTED_COMPRESSION_TYPE, topic=ZSTD, api_version=1),
    "conversion is off": Row(CODE.UNSUPPORTED_VERSION, topic=UNCONVERTED, api_version=3),
}


def fetched(cluster: ReplicaCluster, row: Row, **session: Any) -> Any:
    spec = FetchPartition(row.tp, row.offset, -1, 1 << 20, row.epoch, row.last_epoch)
    request = FetchRequest(row.replica_id, 500, 1, 1 << 20, (spec,), **session)
    manager = cluster[0].manager
    answers: list[Any] = []
    manager.fetch.fetch_messages(request, RequestContext("c", row.api_version), answers.append)
    (response,) = answers
    if row.api_version <= NEWEST_OLD_FETCH:
        response = down_converted(request, response, row.api_version, manager.hosted.partition)
    return response


def prepared(row: Row) -> ReplicaCluster:
    """Records at offsets 2 to 5, all committed."""
    cluster = led("2.8", 3, (0, 1), topic=row.topic)
    cluster.create((1, 2), ELSEWHERE)
    log = cluster[0].log()
    for value in "abcdef":
        append_as_leader(log, encode(value), 0, cluster.clock.now_ms)
    log.high_watermark = log.log_end_offset
    log.maybe_increment_log_start_offset(2)
    row.prepare(cluster)
    return cluster


@pytest.mark.parametrize("what", MATRIX)
def test_an_error_is_answered_at_once_without_records(what: str) -> None:
    """An error is answered at once, with -1 for every offset and without records
    (docs/kafka/fetch.md#positions)."""
    row = MATRIX[what]
    (answer,) = fetched(prepared(row), row).partitions
    assert (answer.topic_partition, answer.error) == (row.tp, row.error)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (
        -1,
        -1,
        -1,
    )
    assert answer.records == ()
    assert answer.diverging_epoch is None


@pytest.mark.parametrize(
    ("session_id", "session_epoch", "error"),
    [
        (9, 1, CODE.FETCH_SESSION_ID_NOT_FOUND),
        (0, 1, CODE.FETCH_SESSION_ID_NOT_FOUND),
        (None, 7, CODE.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_sessions_fail_as_a_whole(
    session_id: int | None, session_epoch: int, error: ErrorCode
) -> None:
    """A session error concerns the whole answer, which has no partitions and session 0
    (docs/kafka/fetch-sessions.md)."""
    row = Row(CODE.NONE)
    cluster = prepared(row)
    known = fetched(cluster, row, session_id=0, session_epoch=0).session_id
    asked = known if session_id is None else session_id
    response = fetched(cluster, row, session_id=asked, session_epoch=session_epoch)
    assert (response.error, response.session_id, response.partitions) == (error, 0, ())


def test_every_error_of_the_matrix_has_a_row() -> None:
    """The matrix has every error of 6.11 except moves between directories (9) and authorisation
    (29)."""
    assert {int(row.error) for row in MATRIX.values()} == {1, 3, 6, 35, 56, 74, 75, 76}
