"""OffsetDelete (key 47): delete offsets of topics that a group no longer reads (KIP-496).

Version 0, which is not flexible.
"""

from __future__ import annotations

from ....protocol.groups import OffsetDeleteRequest, OffsetDeleteResponse
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> OffsetDeleteRequest:
    group_id = reader.string()
    partitions: list[TopicPartition] = []
    for _ in range(reader.array()):
        topic = reader.string()
        partitions += [TopicPartition(topic, number) for number in reader.int32s()]
    return OffsetDeleteRequest(group_id, tuple(partitions))


def encode(
    writer: Writer,
    version: int,
    response: OffsetDeleteResponse,
    request: OffsetDeleteRequest | None,
) -> None:
    writer.int16(response.error)
    writer.int32(writer.throttle_ms)
    topics = tuples_by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error in results:
            writer.int32(partition.partition)
            writer.int16(error)


API = Api(47, "OffsetDelete", 0, 0, flexible_from=1, decode=decode, encode=encode)
