"""What the requests of groups that kio writes stand for, and how to read its entities."""

from __future__ import annotations

import datetime
from typing import Any

from fakekafka.protocol import data, groups
from fakekafka.protocol.values import TopicPartition
from fakekafka.wire.kafka.api import SplitRequest


def ms(duration: Any) -> int:
    return int(duration / datetime.timedelta(milliseconds=1))


def uuid_of(value: Any) -> bytes:
    return bytes(16) if value is None else value.bytes


def topic_of(topic: Any) -> str:
    if hasattr(topic, "topic_id"):
        return uuid_of(topic.topic_id).hex()
    return str(topic.topic if hasattr(topic, "topic") else topic.name)


def partitions_of(topics: Any) -> Any:
    """(TopicPartition, partition entity) of nested topics."""
    for topic in topics:
        for partition in getattr(topic, "partition_data", ()) or getattr(topic, "partitions", ()):
            number = next(
                getattr(partition, name)
                for name in ("index", "partition_index", "partition")
                if hasattr(partition, name)
            )
            yield TopicPartition(topic_of(topic), number), partition


def indexes_of(topics: Any) -> tuple[TopicPartition, ...] | None:
    if topics is None:
        return None
    return tuple(
        TopicPartition(topic_of(topic), number)
        for topic in topics
        for number in getattr(topic, "partition_indexes", getattr(topic, "partitions", ()))
    )


def offset_commit(e: Any) -> Any:
    return groups.OffsetCommitRequest(
        e.group_id,
        e.generation_id_or_member_epoch,
        e.member_id,
        getattr(e, "group_instance_id", None),
        tuple(
            {
                tp: groups.OffsetCommitPartition(
                    tp,
                    p.committed_offset,
                    getattr(p, "committed_leader_epoch", -1),
                    p.committed_metadata or "",
                )
                for tp, p in partitions_of(e.topics)
            }.values()
        ),
        ms(e.retention_time) if hasattr(e, "retention_time") else -1,
    )


def offset_fetch(e: Any) -> Any:
    stable = getattr(e, "require_stable", False)
    if hasattr(e, "groups"):
        return SplitRequest(
            tuple(
                groups.OffsetFetchRequest(
                    g.group_id,
                    _once(indexes_of(g.topics)),
                    stable,
                    getattr(g, "member_id", None),
                    getattr(g, "member_epoch", -1),
                )
                for g in e.groups
            )
        )
    return groups.OffsetFetchRequest(e.group_id, _once(indexes_of(e.topics)), stable)


def _once(partitions: Any) -> Any:
    return None if partitions is None else tuple(dict.fromkeys(partitions))


def find_coordinator(e: Any) -> Any:
    keys = e.coordinator_keys if hasattr(e, "coordinator_keys") else (e.key,)
    return data.FindCoordinatorRequest(keys, getattr(e, "key_type", 0))


def join_group(e: Any) -> Any:
    rebalance_timeout = getattr(e, "rebalance_timeout", None)
    return groups.JoinGroupRequest(
        e.group_id,
        ms(e.session_timeout),
        -1 if rebalance_timeout is None else ms(rebalance_timeout),
        e.member_id,
        getattr(e, "group_instance_id", None),
        e.protocol_type,
        tuple((p.name, p.metadata) for p in e.protocols),
        getattr(e, "reason", None),
    )


def heartbeat(e: Any) -> Any:
    return groups.HeartbeatRequest(
        e.group_id, e.generation_id, e.member_id, getattr(e, "group_instance_id", None)
    )


def leave_group(e: Any) -> Any:
    members = e.members if hasattr(e, "members") else (e,)
    return groups.LeaveGroupRequest(
        e.group_id,
        tuple(
            groups.LeavingMember(
                m.member_id, getattr(m, "group_instance_id", None), getattr(m, "reason", None)
            )
            for m in members
        ),
    )


def sync_group(e: Any) -> Any:
    return groups.SyncGroupRequest(
        e.group_id,
        e.generation_id,
        e.member_id,
        getattr(e, "group_instance_id", None),
        getattr(e, "protocol_type", None),
        getattr(e, "protocol_name", None),
        tuple((a.member_id, a.assignment) for a in e.assignments),
    )


def describe_groups(e: Any) -> Any:
    return groups.DescribeGroupsRequest(
        e.groups, getattr(e, "include_authorized_operations", False)
    )


def list_groups(e: Any) -> Any:
    return groups.ListGroupsRequest(getattr(e, "states_filter", ()), getattr(e, "types_filter", ()))


def offset_delete(e: Any) -> Any:
    return groups.OffsetDeleteRequest(e.group_id, tuple(tp for tp, _ in partitions_of(e.topics)))


EXPECTED: dict[int, Any] = {
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    42: lambda e: groups.DeleteGroupsRequest(e.groups_names),
    47: offset_delete,
}
