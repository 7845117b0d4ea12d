"""ListOffsets (key 2): the offset at a time, or the first or last one.

Versions 0-9. 0: a list of offsets instead of one. 2: isolation level. 4: leader epochs.
6: flexible. 7: the offset of the greatest timestamp, -3 (KIP-734). 8 and 9 only add special
timestamps of tiered storage. OFFSET_NOT_AVAILABLE came with 5 (KIP-207,
docs/kafka/offsets-and-epochs.md#listoffsets).
"""

from __future__ import annotations

from ....protocol.data import (
    ISOLATION_LEVELS,
    READ_UNCOMMITTED,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ..api import Api, CodecAnswer
from ..error_responses import error_response
from ..primitives import Reader, Writer, by_topic


def decode(reader: Reader, version: int) -> ListOffsetsRequest | CodecAnswer:
    replica_id = reader.int32()
    isolation_level = reader.int8() if version >= 2 else READ_UNCOMMITTED
    partitions: list[ListOffsetsPartition] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            number = reader.int32()
            leader_epoch = reader.int32() if version >= 4 else -1
            timestamp = reader.int64()
            offsets_max = reader.int32() if version == 0 else 1
            reader.tags()
            partition = TopicPartition(topic, number)
            partitions.append(ListOffsetsPartition(partition, timestamp, leader_epoch, offsets_max))
        reader.tags()
    reader.tags()
    request = ListOffsetsRequest(replica_id, tuple(partitions), isolation_level)
    if isolation_level not in ISOLATION_LEVELS:  # IsolationLevel.forId throws
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request


def encode(
    writer: Writer,
    version: int,
    response: ListOffsetsResponse,
    request: ListOffsetsRequest | None,
) -> None:
    if version >= 2:
        writer.int32(writer.throttle_ms)
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for result in results:
            _encode_partition(writer, version, result)
        writer.tags()
    writer.tags()


def _encode_partition(writer: Writer, version: int, result: ListOffsetsPartitionResponse) -> None:
    error = result.error
    if error is ErrorCode.OFFSET_NOT_AVAILABLE and version < 5:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    writer.int32(result.topic_partition.partition)
    writer.int16(error)
    if version == 0:
        writer.array(len(result.old_style_offsets))
        for offset in result.old_style_offsets:
            writer.int64(offset)
        return
    writer.int64(result.timestamp)
    writer.int64(result.offset)
    if version >= 4:
        writer.int32(result.leader_epoch)
    writer.tags()


API = Api(2, "ListOffsets", 0, 9, flexible_from=6, decode=decode, encode=encode)
