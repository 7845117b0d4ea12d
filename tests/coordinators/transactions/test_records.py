"""Records of ``__transaction_state``, byte by byte."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.transactions.metadata import TransitMetadata
from fakekafka.coordinators.transactions.records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fakekafka.coordinators.transactions.states import TransactionState
from fakekafka.protocol.errors import ClientError
from fakekafka.protocol.values import TopicPartition

PARTITIONS = (TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 2))
ONGOING = TransitMetadata(7, -1, 3, -1, 1000, TransactionState.ONGOING, PARTITIONS, 50, 100)
EMPTY = TransitMetadata(7, 6, 0, 5, 1000, TransactionState.EMPTY, (), -1, 100)


def test_bytes_of_a_key() -> None:
    assert encode_key("id") == b"\0\0" + b"\0\2id"
    assert decode_key(b"\0\0\0\2id") == "id"


def test_bytes_of_a_value() -> None:
    """Version 0, as Kafka writes it while the feature ``transaction.version`` is 0."""
    assert encode_value(ONGOING).hex(" ") == (
        "00 00 00 00 00 00 00 00 00 07 00 03 00 00 03 e8 01 "
        "00 00 00 02 "
        "00 01 61 00 00 00 02 00 00 00 01 00 00 00 02 "
        "00 01 62 00 00 00 01 00 00 00 00 "
        "00 00 00 00 00 00 00 64 00 00 00 00 00 00 00 32"
    )


def test_an_empty_transaction_has_no_partitions() -> None:
    """The array of partitions of an empty transaction is null."""
    assert encode_value(EMPTY)[17:21] == b"\xff\xff\xff\xff"
    read = decode_value("id", encode_value(EMPTY))
    assert (read.state, tuple(read.partitions), read.start_ms) == (TransactionState.EMPTY, (), -1)


def test_a_written_record_is_read_back() -> None:
    """A record lacks the former producer id and epoch, so that a new coordinator does not know
    them."""
    read = decode_value("id", encode_value(ONGOING))
    assert (read.producer_id, read.producer_epoch, read.timeout_ms) == (7, 3, 1000)
    assert set(read.partitions) == set(PARTITIONS)
    assert (read.start_ms, read.updated_ms) == (50, 100)
    assert (read.last_producer_id, read.last_producer_epoch) == (-1, -1)


def test_keys_of_later_versions_are_skipped() -> None:
    assert decode_key(b"\0\1whatever") is None


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0", b"\0\0\0\5id", b"\0\0\xff\xff", b"\0\0\0\1\xff"]
)
def test_a_broken_key_is_refused(data: bytes) -> None:
    with pytest.raises(ClientError):
        decode_key(data)


@pytest.mark.parametrize("cut", [0, 1, 5, 17, 20, 22, 30, -1])
def test_a_value_that_ends_too_early_is_refused(cut: int) -> None:
    with pytest.raises(ClientError, match=r"too early|does not fit"):
        decode_value("id", encode_value(ONGOING)[:cut])


def test_values_of_another_version_or_state_are_refused() -> None:
    data = encode_value(ONGOING)
    with pytest.raises(ClientError, match="unknown value version 1"):
        decode_value("id", b"\0\1" + data[2:])
    with pytest.raises(ClientError, match="unknown transaction state 9"):
        decode_value("id", data[:16] + b"\x09" + data[17:])
