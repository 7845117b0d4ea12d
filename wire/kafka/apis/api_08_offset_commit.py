"""OffsetCommit (key 8): where a consumer group has got to.

Versions 0-9. 0: to ZooKeeper, without membership. 1: a time per partition. 2-4: retention time.
6: leader epoch. 7: static members (KIP-345). 8: flexible. 9 adds errors of KIP-848 groups only.
"""

from __future__ import annotations

from ....protocol.errors import ErrorCode
from ....protocol.groups import (
    NO_GENERATION,
    NO_MEMBER,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from ....protocol.values import TopicPartition
from ..api import Api, CodecAnswer
from ..error_responses import error_response
from ..primitives import Reader, Writer
from ..repetitions import last_of_each
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> OffsetCommitRequest | CodecAnswer:
    group_id = reader.string()
    generation, member_id = NO_GENERATION, NO_MEMBER
    if version >= 1:
        generation = reader.int32()
        member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 7 else None
    retention_time_ms = reader.int64() if 2 <= version <= 4 else -1
    partitions: list[OffsetCommitPartition] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            number = reader.int32()
            offset = reader.int64()
            leader_epoch = reader.int32() if version >= 6 else -1
            commit_timestamp_ms = reader.int64() if version == 1 else -1
            metadata = reader.nullable_string() or ""
            reader.tags()
            partition = TopicPartition(topic, number)
            partitions.append(
                OffsetCommitPartition(
                    partition, offset, leader_epoch, metadata, commit_timestamp_ms
                )
            )
        reader.tags()
    reader.tags()
    request = OffsetCommitRequest(
        group_id,
        generation,
        member_id,
        instance_id,
        tuple(last_of_each(partitions) if version else partitions),
        retention_time_ms,
    )
    if version == 0 and not group_id:  # ZooKeeper's PathUtils throws for its path
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request


def encode(
    writer: Writer,
    version: int,
    response: OffsetCommitResponse,
    request: OffsetCommitRequest | None,
) -> None:
    if version >= 3:
        writer.int32(writer.throttle_ms)
    topics = tuples_by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error in results:
            writer.int32(partition.partition)
            writer.int16(error)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(8, "OffsetCommit", 0, 9, flexible_from=8, decode=decode, encode=encode)
