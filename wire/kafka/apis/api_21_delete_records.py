"""DeleteRecords (key 21): forget the records before an offset.

Versions 0-2. 2: flexible.
"""

from __future__ import annotations

from operator import itemgetter

from ....protocol.data import DeleteRecordsRequest, DeleteRecordsResponse
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from ..repetitions import last_of_each
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> DeleteRecordsRequest:
    offsets: list[tuple[TopicPartition, int]] = []
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            number = reader.int32()
            offsets.append((TopicPartition(topic, number), reader.int64()))
            reader.tags()
        reader.tags()
    timeout_ms = reader.int32()
    reader.tags()
    return DeleteRecordsRequest(timeout_ms, tuple(last_of_each(offsets, itemgetter(0))))


def encode(
    writer: Writer,
    version: int,
    response: DeleteRecordsResponse,
    request: DeleteRecordsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    topics = tuples_by_topic(response.partitions)
    writer.array(len(topics))
    for topic, results in topics:
        writer.string(topic)
        writer.array(len(results))
        for partition, error, low_watermark in results:
            writer.int32(partition.partition)
            writer.int64(low_watermark)
            writer.int16(error)
            writer.tags()
        writer.tags()
    writer.tags()


API = Api(21, "DeleteRecords", 0, 2, flexible_from=2, decode=decode, encode=encode)
