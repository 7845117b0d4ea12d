"""What kio and the codec are compared by, for what a broker tells of its log directories and
features: see ``response_trees``."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol import admin
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import TopicPartition
from hypothesis import strategies as st

_texts = st.text(max_size=8)
_errors = st.sampled_from([ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode(-1)])
_int32s = st.integers(-(2**31), 2**31 - 1)
_int64s = st.integers(-(2**63), 2**63 - 1)
_partitions = st.builds(TopicPartition, st.sampled_from(["orders", "a", "b.c"]), _int32s)


def _some(items: Any) -> Any:
    return st.lists(items, max_size=3).map(tuple)


_replicas = st.builds(admin.StoredReplica, _partitions, _int64s, _int64s, st.booleans())

RESPONSES: dict[int, Any] = {
    34: st.builds(admin.AlterReplicaLogDirsResponse, _some(st.tuples(_partitions, _errors))),
    35: st.builds(
        admin.DescribeLogDirsResponse,
        _errors,
        _some(
            st.builds(
                admin.DescribedLogDir,
                _errors,
                _texts,
                _some(_replicas),
                st.sampled_from([(), ("a",), ("orders", "silent")]),
                _int64s,
                _int64s,
            )
        ),
    ),
}
"""By key: responses that a broker may give."""


def _alter_log_dirs(r: Any, version: int) -> Any:
    topics: dict[str, list[Any]] = {}
    for partition, error in r.partitions:
        tree = {"partition_index": partition.partition, "error_code": error}
        topics.setdefault(partition.topic, []).append(tree)
    return {
        "throttle_time": 0,
        "results": [{"topic_name": name, "partitions": trees} for name, trees in topics.items()],
    }


def _described(directory: Any) -> Any:
    topics: dict[str, list[Any]] = {name: [] for name in directory.topics}
    for replica in directory.replicas:
        topics.setdefault(replica.topic_partition.topic, []).append(
            {
                "partition_index": replica.topic_partition.partition,
                "partition_size": replica.size_bytes,
                "offset_lag": replica.offset_lag,
                "is_future_key": replica.is_future,
            }
        )
    return {
        "error_code": directory.error,
        "log_dir": directory.path,
        "topics": [{"name": name, "partitions": trees} for name, trees in topics.items()],
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
    }


def _describe_log_dirs(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "results": [_described(directory) for directory in r.log_dirs],
    }


TREES: dict[int, Any] = {34: _alter_log_dirs, 35: _describe_log_dirs}
"""By key: what kio must read of such a response."""


def _numbers(topic: Any) -> Any:
    return topic.partitions if hasattr(topic, "partitions") else topic.partition_index


EXPECTED: dict[int, Any] = {
    34: lambda e: admin.AlterReplicaLogDirsRequest(
        tuple(
            (TopicPartition(topic.name, number), directory.path)
            for directory in e.dirs
            for topic in directory.topics
            for number in topic.partitions
        )
    ),
    35: lambda e: admin.DescribeLogDirsRequest(
        None
        if e.topics is None
        else tuple(
            TopicPartition(topic.topic, number) for topic in e.topics for number in _numbers(topic)
        )
    ),
}
"""By key: the request that an entity of kio's stands for."""
