"""TxnOffsetCommit (key 28): offsets of a group that are committed together with a transaction.

Versions 0-4. 2: leader epoch, and COORDINATOR_LOAD_IN_PROGRESS, which older clients do not survive
(KAFKA-7296). 3: generation and member, flexible (KIP-447). 4 only adds an error.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.groups import OffsetCommitPartition
from ....protocol.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> TxnOffsetCommitRequest:
    transactional_id = reader.string()
    group_id = reader.string()
    producer_id = reader.int64()
    epoch = reader.int16()
    generation, member_id, instance_id = -1, "", None
    if version >= 3:
        generation = reader.int32()
        member_id = reader.string()
        instance_id = reader.nullable_string()
    partitions: list[OffsetCommitPartition] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            number = reader.int32()
            offset = reader.int64()
            leader_epoch = reader.int32() if version >= 2 else -1
            metadata = reader.nullable_string() or ""
            reader.tags()
            partition = TopicPartition(topic, number)
            partitions.append(OffsetCommitPartition(partition, offset, leader_epoch, metadata))
        reader.tags()
    reader.tags()
    return TxnOffsetCommitRequest(
        transactional_id,
        group_id,
        producer_id,
        epoch,
        tuple(partitions),
        generation,
        member_id,
        instance_id,
    )


def encode(
    writer: Writer,
    version: int,
    response: TxnOffsetCommitResponse,
    request: TxnOffsetCommitRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    topics = tuples_by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error in results:
            writer.int32(partition.partition)
            if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < 2:
                error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            writer.int16(error)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(28, "TxnOffsetCommit", 0, 4, flexible_from=3, decode=decode, encode=encode)
