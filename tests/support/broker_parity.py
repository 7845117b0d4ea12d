"""What kio and the codec are compared by, for what a broker tells of its log directories and
features: see ``response_trees``."""

from __future__ import annotations

import datetime
from typing import Any

from fakekafka.protocol import admin, control
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import LeaderAndIsr, TopicPartition
from fakekafka.tests.support import consumer_group_parity
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
    56: st.builds(
        control.AlterIsrResponse,
        _errors,
        _some(
            st.builds(
                control.AlterIsrPartitionResponse,
                _partitions,
                _errors,
                st.none()
                | st.builds(
                    LeaderAndIsr,
                    _int32s,
                    _int32s,
                    st.lists(_int32s, max_size=3).map(tuple),
                    _int32s,
                ),
            )
        ),
    ),
    57: st.builds(
        admin.UpdateFeaturesResponse,
        _errors,
        st.none() | _texts,
        _some(st.tuples(_texts, _errors, st.none() | _texts)),
    ),
    67: st.builds(control.AllocateProducerIdsResponse, _errors, _int64s, _int32s),
    **consumer_group_parity.RESPONSES,
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


def _alter_partition(r: Any, version: int) -> Any:
    topics: dict[str, list[Any]] = {}
    for result in r.partitions:
        stored = result.leader_and_isr or LeaderAndIsr(0, 0, (), 0)
        topics.setdefault(result.topic_partition.topic, []).append(
            {
                "partition_index": result.topic_partition.partition,
                "error_code": result.error,
                "leader_id": stored.leader,
                "leader_epoch": stored.leader_epoch,
                "isr": list(stored.isr),
                "current_isr_version": stored.zk_version,
                "partition_epoch": stored.zk_version,
                "leader_recovery_state": 0,
            }
        )
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "topics": [
            {
                "topic_name": name,
                "name": name,
                "topic_id": name.encode().ljust(16, b".")[:16],
                "partitions": trees,
            }
            for name, trees in topics.items()
        ],
    }


def _update_features(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "results": [
            {"feature": name, "error_code": error, "error_message": message}
            for name, error, message in r.results
        ],
    }


def _allocate_producer_ids(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "producer_id_start": r.first_producer_id,
        "producer_id_len": r.count,
    }


TREES: dict[int, Any] = {
    34: _alter_log_dirs,
    35: _describe_log_dirs,
    56: _alter_partition,
    57: _update_features,
    67: _allocate_producer_ids,
    **consumer_group_parity.TREES,
}
"""By key: what kio must read of such a response."""


def _numbers(topic: Any) -> Any:
    return topic.partitions if hasattr(topic, "partitions") else topic.partition_index


def _upgrade_type(update: Any) -> int:
    if hasattr(update, "upgrade_type"):
        return int(update.upgrade_type)
    return admin.SAFE_DOWNGRADE if update.allow_downgrade else admin.UPGRADE


def _proposals(e: Any) -> tuple[control.AlterIsrPartition, ...]:
    found = []
    for topic in e.topics:
        if hasattr(topic, "topic_id"):
            name = (topic.topic_id.bytes if topic.topic_id else bytes(16)).hex()
        else:
            name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
        for partition in topic.partitions:
            if hasattr(partition, "new_isr_with_epochs"):
                isr = tuple(member.broker_id for member in partition.new_isr_with_epochs)
            else:
                isr = tuple(partition.new_isr)
            epoch = getattr(partition, "partition_epoch", None)
            if epoch is None:
                epoch = partition.current_isr_version
            found.append(
                control.AlterIsrPartition(
                    TopicPartition(name, partition.partition_index),
                    partition.leader_epoch,
                    isr,
                    epoch,
                )
            )
    return tuple(found)


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
    56: lambda e: control.AlterIsrRequest(e.broker_id, e.broker_epoch, _proposals(e)),
    57: lambda e: admin.UpdateFeaturesRequest(
        tuple(
            admin.FeatureUpdate(u.feature, u.max_version_level, _upgrade_type(u))
            for u in e.feature_updates
        ),
        int(e.timeout / datetime.timedelta(milliseconds=1)),
        getattr(e, "validate_only", False),
    ),
    67: lambda e: control.AllocateProducerIdsRequest(e.broker_id, e.broker_epoch),
    **consumer_group_parity.EXPECTED,
}
"""By key: the request that an entity of kio's stands for."""
