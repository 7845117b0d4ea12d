"""AlterReplicaLogDirs (key 34): move replicas to other log directories of the broker (KIP-113).

Versions 0-2. 2: flexible.
"""

from __future__ import annotations

from ....protocol.admin import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from ....protocol.values import TopicPartition
from ..api import Api
from ..primitives import Reader, Writer
from ..tuple_groups import tuples_by_topic


def decode(reader: Reader, version: int) -> AlterReplicaLogDirsRequest:
    moves: list[tuple[TopicPartition, str]] = []
    for _ in range(reader.array()):
        path = reader.string()
        moves += [(partition, path) for partition in reader.topic_partitions()]
        reader.tags()
    reader.tags()
    return AlterReplicaLogDirsRequest(tuple(moves))


def encode(
    writer: Writer,
    version: int,
    response: AlterReplicaLogDirsResponse,
    request: AlterReplicaLogDirsRequest | None,
) -> None:
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


API = Api(34, "AlterReplicaLogDirs", 0, 2, flexible_from=2, decode=decode, encode=encode)
