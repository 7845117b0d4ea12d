"""Every error of a produce request, in one row each (docs/kafka/produce.md,
docs/kafka/log.md#validation, docs/kafka/producer-state.md#checks)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from fakekafka.protocol.data import ProducePartition, ProduceRequest, RequestContext
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.records.batch import build_batch, build_control_marker, with_timestamps
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.records.legacy import build_message
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.tests.support.hosts import START_MS
from fakekafka.tests.support.replica_cluster import TP, ReplicaCluster, encode, led

GOOD = TopicPartition("good", 0)
INTERNAL = TopicPartition("__consumer_offsets", 0)
NOWHERE = TopicPartition("nowhere", 0)
DELETED = 2
"""Log start of the partition under test, which tells apart 0, -1 and the actual log start."""

CODE = ErrorCode


def idempotent(sequence: int, epoch: int = 0, producer_id: int = 7, **more: Any) -> bytes:
    return encode(
        "i", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **more
    )


def records(*entries: Record, **more: Any) -> bytes:
    return build_batch(list(entries), **more)


VALID = records(Record(0, START_MS, b"k", b"v"))


def fill(cluster: ReplicaCluster) -> None:
    """Write two records that are then deleted, and the records of producer 7."""
    log = cluster[0].log()
    now_ms = cluster.clock.now_ms
    for _ in range(DELETED):
        append_as_leader(log, VALID, 0, now_ms)
    cluster[0].partition().maybe_increment_high_watermark(now_ms)
    log.high_watermark = log.log_end_offset
    log.maybe_increment_log_start_offset(DELETED)


def known_producer(cluster: ReplicaCluster) -> None:
    """Let producer 7 write sequence 0 in epoch 3."""
    append_as_leader(cluster[0].log(), idempotent(0, 3), 0, cluster.clock.now_ms)


def open_transaction(cluster: ReplicaCluster) -> None:
    """Let producer 7 open a transaction."""
    batch = idempotent(0, is_transactional=True)
    append_as_leader(cluster[0].log(), batch, 0, cluster.clock.now_ms)


def failed_disk(cluster: ReplicaCluster) -> None:
    manager = cluster[0].manager
    manager.failures.handle_log_dir_failure(cluster[0].log().directory)


def damaged() -> bytes:
    data = bytearray(encode("x" * 30))
    data[-1] ^= 1
    return bytes(data)


class Row(NamedTuple):
    error: ErrorCode
    log_start: int
    data: bytes | None
    prepare: Callable[[ReplicaCluster], object] = lambda cluster: None
    topic: dict[str, str] = {}
    acks: int = 1
    tp: TopicPartition = TP
    api_version: int = 9
    kafka_version: str = "2.8"


TOO_FEW = with_timestamps(
    VALID[:23] + b"\0\0\0\1" + VALID[27:57] + b"\0\0\0\2" + VALID[61:], 0, START_MS
)
OLD_TIME = records(Record(0, 5, None, b"v"))
MATRIX = {
    "the checksum is wrong": Row(CODE.CORRUPT_MESSAGE, -1, damaged()),
    "the payload is damaged": Row(
        CODE.CORRUPT_MESSAGE, -1, bytes(encode("a")[:8]) + b"\0\0\0\x05" + encode("a")[12:]
    ),
    "nobody knows the partition": Row(CODE.UNKNOWN_TOPIC_OR_PARTITION, -1, encode("a"), tp=NOWHERE),
    "another broker leads": Row(
        CODE.NOT_LEADER_OR_FOLLOWER, -1, encode("a"), lambda cluster: cluster.elect(1)
    ),
    "the batch is too large": Row(
        CODE.MESSAGE_TOO_LARGE, -1, encode("x" * 200), topic={"max.message.bytes": "100"}
    ),
    "the topic is internal": Row(CODE.INVALID_TOPIC_EXCEPTION, -1, encode("a"), tp=INTERNAL),
    "it is larger than a segment": Row(
        CODE.RECORD_LIST_TOO_LARGE, -1, encode("x" * 200), topic={"segment.bytes": "150"}
    ),
    "too few replicas are in sync": Row(
        CODE.NOT_ENOUGH_REPLICAS, DELETED, encode("a"), topic={"min.insync.replicas": "3"}, acks=-1
    ),
    "acks make no sense": Row(CODE.INVALID_REQUIRED_ACKS, -1, encode("a"), acks=2),
    "a timestamp is out of range": Row(
        CODE.INVALID_TIMESTAMP,
        DELETED,
        OLD_TIME,
        topic={"message.timestamp.difference.max.ms": "1000"},
    ),
    "a timestamp is out of range before 2.4": Row(
        CODE.INVALID_TIMESTAMP,
        -1,
        OLD_TIME,
        topic={"message.timestamp.difference.max.ms": "1000"},
        kafka_version="2.3",
    ),
    "a timestamp is out of range in 2.4": Row(
        CODE.INVALID_TIMESTAMP,
        DELETED,
        OLD_TIME,
        topic={"message.timestamp.difference.max.ms": "1000"},
        kafka_version="2.4",
    ),
    "the topic has an old format": Row(
        CODE.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        DELETED,
        idempotent(0),
        topic={"message.format.version": "0.10.2"},
    ),
    "sequences are missing": Row(
        CODE.OUT_OF_ORDER_SEQUENCE_NUMBER, DELETED, idempotent(5, 3), known_producer
    ),
    "a new epoch does not begin with 0": Row(
        CODE.OUT_OF_ORDER_SEQUENCE_NUMBER, DELETED, idempotent(1, 4), known_producer
    ),
    "the producer is fenced": Row(
        CODE.INVALID_PRODUCER_EPOCH, DELETED, idempotent(1, 2), known_producer
    ),
    "it is outside of the open transaction": Row(
        CODE.INVALID_TXN_STATE, DELETED, idempotent(1), open_transaction
    ),
    "the disk has failed": Row(CODE.KAFKA_STORAGE_ERROR, -1, encode("a"), failed_disk),
    "the producer is unknown, before 2.5": Row(
        CODE.UNKNOWN_PRODUCER_ID, DELETED, idempotent(4), api_version=5, kafka_version="1.1"
    ),
    "zstd from an old client": Row(
        CODE.UNSUPPORTED_COMPRESSION_TYPE, -1, encode("a", compression="zstd"), api_version=6
    ),
    "zstd before 2.1": Row(
        CODE.UNSUPPORTED_COMPRESSION_TYPE,
        DELETED,
        encode("a", compression="zstd"),
        api_version=7,
        kafka_version="1.1",
    ),
    "nothing at all": Row(CODE.INVALID_RECORD, -1, None),
    "no batch": Row(CODE.INVALID_RECORD, -1, b""),
    "two batches": Row(CODE.INVALID_RECORD, -1, encode("a") + encode("b")),
    "an old message": Row(CODE.INVALID_RECORD, -1, build_message(0, 1, b"k", b"v" * 60, 1)),
    "half a batch": Row(CODE.INVALID_RECORD, -1, encode("x" * 90)[:-1]),
    "an offset is given": Row(
        CODE.INVALID_RECORD, DELETED, records(Record(3, 1, None, b"v"), base_offset=3)
    ),
    "it tells of more records than there are": Row(CODE.INVALID_RECORD, DELETED, TOO_FEW),
    "no key on a compacted topic": Row(
        CODE.INVALID_RECORD, DELETED, encode("a"), topic={"cleanup.policy": "compact"}
    ),
    "a marker from a client": Row(
        CODE.INVALID_RECORD, DELETED, build_control_marker(7, 0, True, 0, 1)
    ),
    "a producer without a sequence": Row(CODE.INVALID_RECORD, DELETED, idempotent(-1)),
}


def send(cluster: ReplicaCluster, row: Row) -> list[Any]:
    """Return the answers for the partition under test and a valid partition of the same request."""
    answers: list[Any] = []
    cluster[0].manager.produce.append_records(
        ProduceRequest(
            row.acks, 1000, (ProducePartition(row.tp, row.data), ProducePartition(GOOD, VALID))
        ),
        RequestContext("c", row.api_version),
        lambda response: answers.extend(response.partitions),
    )
    return answers


def prepared(row: Row) -> ReplicaCluster:
    cluster = led(row.kafka_version, 2, topic=row.topic)
    for tp in (GOOD, INTERNAL):
        cluster.create((0,), tp)
    fill(cluster)
    row.prepare(cluster)
    return cluster


@pytest.mark.parametrize("what", MATRIX)
def test_a_refused_batch_gets_its_error_and_is_not_appended(what: str) -> None:
    """An error has its code, base offset -1, append time -1 and the log start or -1, and leaves the
    log unchanged (docs/kafka/produce.md#answers)."""
    row = MATRIX[what]
    cluster = prepared(row)
    partition = cluster[0].manager.hosted.partition(TP)  # None where the disk has failed
    log = None if partition is None else partition.log
    before = None if log is None else log.log_end_offset
    answer, good = send(cluster, row)
    assert answer.topic_partition == row.tp
    assert answer.error is row.error
    assert (answer.base_offset, answer.log_append_time_ms) == (-1, -1)
    assert answer.log_start_offset == row.log_start
    assert log is None or log.log_end_offset == before
    is_good = row.error not in (CODE.INVALID_REQUIRED_ACKS, CODE.NOT_ENOUGH_REPLICAS)
    assert (good.error is CODE.NONE) is is_good


def test_every_error_of_the_matrix_has_a_row() -> None:
    """The matrix has every error of 5.5 except those of waiting produces (7, 20) and authorisation
    (29, 53)."""
    codes = {2, 3, 6, 10, 17, 18, 19, 21, 32, 43, 45, 47, 48, 56, 59, 76, 87}
    assert {int(row.error) for row in MATRIX.values()} == codes


def test_a_torn_batch_behind_a_whole_one_is_trimmed() -> None:
    """A batch cut off at the end is left out without an error, in every version
    (docs/kafka/log.md#validation)."""
    cluster = prepared(MATRIX["no batch"])
    for torn in (encode("b")[:-1], encode("b")[:20], encode("b")[:17], b"\0\0\0"):
        answer, _ = send(cluster, Row(CODE.NONE, DELETED, encode("a") + torn))
        assert answer.error is CODE.NONE
    assert cluster[0].content().split()[-4:] == ["a/0"] * 4


@pytest.mark.parametrize(
    ("tp", "data", "api_version", "error"),
    [
        (NOWHERE, VALID, 9, CODE.UNKNOWN_TOPIC_OR_PARTITION),
        (TP, None, 9, CODE.INVALID_RECORD),
        (TP, VALID + VALID, 9, CODE.INVALID_RECORD),
        (TP, build_message(0, 1, b"k", b"v" * 60, 1), 3, CODE.INVALID_RECORD),
        (TP, encode("a", compression="zstd"), 6, CODE.UNSUPPORTED_COMPRESSION_TYPE),
        (TP, damaged(), 9, CODE.INVALID_REQUIRED_ACKS),
        (INTERNAL, VALID, 9, CODE.INVALID_REQUIRED_ACKS),
    ],
)
def test_errors_checked_before_the_acks_take_precedence(
    tp: TopicPartition, data: bytes | None, api_version: int, error: ErrorCode
) -> None:
    """5.1 rows 4 to 6 are checked before row 7 in each partition separately, and rows 8 to 12 after
    it."""
    cluster = prepared(MATRIX["no batch"])
    before = cluster[0].log().log_end_offset
    answer, good = send(cluster, Row(error, -1, data, acks=3, tp=tp, api_version=api_version))
    assert (answer.error, good.error) == (error, CODE.INVALID_REQUIRED_ACKS)
    assert (answer.base_offset, good.base_offset, good.log_start_offset) == (-1, -1, -1)
    assert cluster[0].log().log_end_offset == before
    assert cluster[0].log(GOOD).log_end_offset == 0
