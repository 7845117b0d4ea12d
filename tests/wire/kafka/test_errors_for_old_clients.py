"""Errors that a client does not know yet, which the codec alone replaces by older ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fakekafka.protocol import admin, data, transactions
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, EndPoint, TopicPartition
from fakekafka.wire.kafka.codec import Codec

CODE = ErrorCode
TP = TopicPartition("t", 0)
FENCED = (CODE.PRODUCER_FENCED, CODE.INVALID_PRODUCER_EPOCH)


def produce(error: ErrorCode) -> data.ProduceResponse:
    return data.ProduceResponse((data.ProducePartitionResponse(TP, error),))


def fetch(error: ErrorCode) -> data.FetchResponse:
    return data.FetchResponse(CODE.NONE, 0, (data.FetchPartitionResponse(TP, error),))


def list_offsets(error: ErrorCode) -> data.ListOffsetsResponse:
    return data.ListOffsetsResponse((data.ListOffsetsPartitionResponse(TP, error),))


def metadata(
    error: ErrorCode,
    replicas: tuple[int, ...] = (1, 2),
    isr: tuple[int, ...] = (1, 2),
    offline: tuple[int, ...] = (),
) -> data.MetadataResponse:
    """Return metadata of one partition, in which broker 1 is alive."""
    partition = data.MetadataPartition(error, 0, 1, 3, replicas, isr, offline)
    topic = data.MetadataTopic(CODE.NONE, "t", False, (partition,))
    return data.MetadataResponse((BrokerInfo(1, (EndPoint("h", 9),)),), "c", 1, (topic,))


def encoded(key: int, version: int, response: object) -> bytes:
    return b"".join(Codec("3.9").encode(key, version, response))


def added(error: ErrorCode) -> transactions.AddPartitionsToTxnResponse:
    result = transactions.AddPartitionsToTxnResult("t", ((TP, error),))
    return transactions.AddPartitionsToTxnResponse((result,))


def committed(error: ErrorCode) -> transactions.TxnOffsetCommitResponse:
    return transactions.TxnOffsetCommitResponse(((TP, error),))


def deleted(error: ErrorCode) -> admin.DeleteTopicsResponse:
    return admin.DeleteTopicsResponse((admin.TopicResult("t", error),))


@pytest.mark.parametrize(
    ("key", "answer", "error", "told", "newest"),
    [
        (0, produce, CODE.KAFKA_STORAGE_ERROR, CODE.NOT_LEADER_OR_FOLLOWER, 3),
        (1, fetch, CODE.KAFKA_STORAGE_ERROR, CODE.NOT_LEADER_OR_FOLLOWER, 5),
        (2, list_offsets, CODE.OFFSET_NOT_AVAILABLE, CODE.LEADER_NOT_AVAILABLE, 4),
        (3, metadata, CODE.LISTENER_NOT_FOUND, CODE.LEADER_NOT_AVAILABLE, 5),
        (20, deleted, CODE.TOPIC_DELETION_DISABLED, CODE.INVALID_REQUEST, 2),
        (22, data.InitProducerIdResponse, *FENCED, 3),
        (24, added, *FENCED, 1),
        (25, transactions.AddOffsetsToTxnResponse, *FENCED, 1),
        (26, transactions.EndTxnResponse, *FENCED, 1),
        (28, committed, CODE.COORDINATOR_LOAD_IN_PROGRESS, CODE.COORDINATOR_NOT_AVAILABLE, 1),
    ],
)
def test_a_version_older_than_an_error_gets_an_older_error(
    key: int, answer: Callable[[ErrorCode], object], error: ErrorCode, told: ErrorCode, newest: int
) -> None:
    """Clients up to the newest old version get an older error, and later ones the error itself."""
    for version in range(newest + 1):
        assert encoded(key, version, answer(error)) == encoded(key, version, answer(told))
    assert encoded(key, newest + 1, answer(error)) != encoded(key, newest + 1, answer(told))


@pytest.mark.parametrize("version", range(12))
def test_produce_never_answers_producer_fenced(version: int) -> None:
    error, told = map(produce, FENCED)
    assert encoded(0, version, error) == encoded(0, version, told)


def test_version_0_of_metadata_hides_replicas_on_dead_brokers() -> None:
    """DP-124: dead brokers are left out of replicas and ISR, and the error is 9; later versions
    show them.
    """
    hidden = metadata(CODE.REPLICA_NOT_AVAILABLE, (1,), (1,))
    assert encoded(3, 0, metadata(CODE.NONE, offline=(2,))) == encoded(3, 0, hidden)
    assert encoded(3, 1, metadata(CODE.NONE)) != encoded(3, 1, hidden)
    failed = metadata(CODE.LEADER_NOT_AVAILABLE)
    assert encoded(3, 0, failed) == encoded(3, 0, metadata(CODE.LEADER_NOT_AVAILABLE, (1,), (1,)))


def test_version_0_of_metadata_shows_replicas_in_failed_directories() -> None:
    """The broker is alive, and clients learn only from version 5 on that the replica is offline."""
    offline = metadata(CODE.NONE, (1,), (1,), offline=(1,))
    assert encoded(3, 0, offline) == encoded(3, 0, metadata(CODE.NONE, (1,), (1,)))
    assert encoded(3, 5, offline) != encoded(3, 5, metadata(CODE.NONE, (1,), (1,)))
