"""OffsetForLeaderEpoch (key 23): where a leader epoch ends (KIP-101).

Versions 0-4. 1: the epoch that the end offset belongs to (KIP-279). 2: current leader epoch
(KIP-320). 3: replica id, so that a consumer can be told from a follower. 4: flexible.
"""

from __future__ import annotations

from ....protocol.data import (
    CONSUMER_REPLICA_ID,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer, by_topic


def decode(reader: Reader, version: int) -> OffsetForLeaderEpochRequest:
    replica_id = reader.int32() if version >= 3 else CONSUMER_REPLICA_ID
    partitions: list[OffsetForLeaderEpochPartition] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            partition = TopicPartition(topic, reader.int32())
            current_epoch = reader.int32() if version >= 2 else -1
            epoch = reader.int32()
            reader.tags()
            partitions.append(OffsetForLeaderEpochPartition(partition, epoch, current_epoch))
        reader.tags()
    reader.tags()
    return OffsetForLeaderEpochRequest(replica_id, tuple(partitions))


def encode(
    writer: Writer,
    version: int,
    response: OffsetForLeaderEpochResponse,
    request: OffsetForLeaderEpochRequest | None,
) -> None:
    if version >= 2:
        writer.int32(writer.throttle_ms)
    topics = by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for result in results:
            writer.int16(result.error)
            writer.int32(result.topic_partition.partition)
            if version >= 1:
                writer.int32(result.leader_epoch)
            writer.int64(result.end_offset)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(23, "OffsetForLeaderEpoch", 0, 4, flexible_from=4, decode=decode, encode=encode)
