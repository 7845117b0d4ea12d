"""DescribeLogDirs (key 35): what lies in the log directories of the broker (KIP-113).

Versions 0-4. 2: flexible. 3: an error for the whole answer. 4: size of the volume (KIP-827).
"""

from __future__ import annotations

from ....protocol.admin import (
    DescribedLogDir,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    StoredReplica,
)
from ..api import Api
from ..primitives import Reader, Writer


def decode(reader: Reader, version: int) -> DescribeLogDirsRequest:
    partitions = reader.nullable_topic_partitions()
    reader.tags()
    return DescribeLogDirsRequest(partitions)


def encode(
    writer: Writer,
    version: int,
    response: DescribeLogDirsResponse,
    request: DescribeLogDirsRequest | None,
) -> None:
    writer.int32(writer.throttle_ms)
    if version >= 3:
        writer.int16(response.error)
    writer.array(len(response.log_dirs))
    for directory in response.log_dirs:
        writer.int16(directory.error)
        writer.string(directory.path)
        _encode_replicas(writer, directory)
        if version >= 4:
            writer.int64(directory.total_bytes)
            writer.int64(directory.usable_bytes)
        writer.tags()
    writer.tags()


def _encode_replicas(writer: Writer, directory: DescribedLogDir) -> None:
    topics: dict[str, list[StoredReplica]] = {topic: [] for topic in directory.topics}
    for replica in directory.replicas:
        topics.setdefault(replica.topic_partition.topic, []).append(replica)
    writer.array(len(topics))
    for topic, replicas in topics.items():
        writer.string(topic)
        writer.array(len(replicas))
        for replica in replicas:
            writer.int32(replica.topic_partition.partition)
            writer.int64(replica.size_bytes)
            writer.int64(replica.offset_lag)
            writer.boolean(replica.is_future)
            writer.tags()
        writer.tags()


API = Api(35, "DescribeLogDirs", 0, 4, flexible_from=2, decode=decode, encode=encode)
