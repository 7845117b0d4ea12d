"""The log directories of a broker (KIP-113)."""

from __future__ import annotations

from typing import Any

from ....protocol.admin import (
    AlterReplicaLogDirsRequest,
    DescribedLogDir,
    DescribeLogDirsRequest,
    StoredReplica,
)
from ....protocol.values import TopicPartition
from ..api import Api, reads, writes
from ..topics import by_topic, partitions_of, partitions_or_all


def _replica_directories(dirs: tuple[Any, ...]) -> tuple[tuple[TopicPartition, str], ...]:
    return tuple([(partition, path) for path, partitions in dirs for partition in partitions])


ALTER_REPLICA_LOG_DIRS = Api(
    34,
    reads(
        AlterReplicaLogDirsRequest,
        "dirs(path topics(name partitions))",
        dirs=_replica_directories,
        topics=partitions_of,
    ),
    writes(
        "results=partitions[topicName partitions[partitionIndex=partition errorCode]]",
        results=by_topic,
    ),
)
"""Move replicas to other log directories of the broker."""


def _with_topics(log_dirs: tuple[DescribedLogDir, ...]) -> list[tuple[Any, ...]]:
    """Return error, path, replicas by topic, and sizes of each directory."""
    found = []
    for one in log_dirs:
        topics: dict[str, list[StoredReplica]] = {topic: [] for topic in one.topics}
        for replica in one.replicas:
            topics.setdefault(replica.topic_partition.topic, []).append(replica)
        found.append((one.error, one.path, topics.items(), one.total_bytes, one.usable_bytes))
    return found


DESCRIBE_LOG_DIRS = Api(
    35,
    reads(DescribeLogDirsRequest, "topics(topic partitions)", topics=partitions_or_all),
    writes(
        "errorCode=error results=log_dirs[errorCode logDir topics[name partitions("
        "partitionIndex=topic_partition.partition partitionSize=size_bytes offsetLag "
        "isFutureKey=is_future)] totalBytes usableBytes]",
        results=_with_topics,
    ),
)
"""Describe the replicas in the log directories of the broker.

Version 3 adds an error of the whole response, 4 the size of the volume (KIP-827).
"""
