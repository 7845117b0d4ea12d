"""AddPartitionsToTxn (key 24): partitions that a transaction is about to write to.

Versions 0-5. 2: PRODUCER_FENCED, before that INVALID_PRODUCER_EPOCH (KIP-588). 3: flexible.
4: between brokers, several transactions at once, which may be verified only (KIP-890). 5 only adds
an error.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    TransactionPartitions,
)
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> AddPartitionsToTxnRequest:
    if version < 4:
        transactions = [_decode_transaction(reader, version)]
    else:
        transactions = []
        for _ in range(reader.array()):
            transactions.append(_decode_transaction(reader, version))
            reader.tags()
    reader.tags()
    return AddPartitionsToTxnRequest(tuple(transactions))


def _decode_transaction(reader: Reader, version: int) -> TransactionPartitions:
    transactional_id = reader.string()
    producer_id = reader.int64()
    epoch = reader.int16()
    verify_only = reader.boolean() if version >= 4 else False
    partitions = reader.topic_partitions()
    return TransactionPartitions(transactional_id, producer_id, epoch, partitions, verify_only)


def encode(
    writer: Writer,
    version: int,
    response: AddPartitionsToTxnResponse,
    request: AddPartitionsToTxnRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    if version >= 4:
        writer.int16(response.error)
        writer.array(len(response.results))
        for result in response.results:
            writer.string(result.transactional_id)
            _encode_partitions(writer, version, result.partitions)
            writer.tags()
    else:
        results = response.results
        _encode_partitions(writer, version, results[0].partitions if results else ())
    writer.tags()


def _encode_partitions(
    writer: Writer, version: int, partitions: tuple[tuple[TopicPartition, ErrorCode], ...]
) -> None:
    topics = tuples_by_topic(partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error in results:
            writer.int32(partition.partition)
            if error is ErrorCode.PRODUCER_FENCED and version < 2:
                error = ErrorCode.INVALID_PRODUCER_EPOCH
            writer.int16(error)
            writer.tags()
        writer.tags()


API = Api(24, "AddPartitionsToTxn", 0, 5, flexible_from=3, decode=decode, encode=encode)
