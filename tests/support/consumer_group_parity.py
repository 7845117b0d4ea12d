"""What kio and the codec are compared by, for groups of the consumer protocol (KIP-848): see
``response_trees``."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from fakekafka.protocol import groups
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import uuid_bytes, uuid_text
from hypothesis import strategies as st

_texts = st.text(max_size=8)
_errors = st.sampled_from([ErrorCode.NONE, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode(-1)])
_int32s = st.integers(-(2**31), 2**31 - 1)
_topic_ids = st.uuids(version=4).map(lambda u: uuid_text(u.bytes))


def _some(items: Any) -> Any:
    return st.lists(items, max_size=3).map(tuple)


_topics = _some(
    st.builds(groups.AssignedTopic, _topic_ids, _texts, _some(_int32s)),
)
_members = st.builds(
    groups.ConsumerGroupMemberDescription,
    _texts,
    st.none() | _texts,
    st.none() | _texts,
    _int32s,
    _texts,
    _texts,
    _some(_texts),
    st.none() | _texts,
    _topics,
    _topics,
)

RESPONSES: dict[int, Any] = {
    68: st.builds(
        groups.ConsumerGroupHeartbeatResponse,
        _errors,
        st.none() | _texts,
        st.none() | _texts,
        _int32s,
        st.integers(0, 2**31 - 1),
        st.none() | _some(st.tuples(_topic_ids, _some(_int32s))),
    ),
    69: st.builds(
        groups.ConsumerGroupDescribeResponse,
        _some(
            st.builds(
                groups.ConsumerGroupDescription,
                _errors,
                _texts,
                _texts,
                _int32s,
                _int32s,
                _texts,
                _some(_members),
                st.none() | _int32s,
                st.none() | _texts,
            )
        ),
    ),
}


def _heartbeat(r: Any, version: int) -> Any:
    topics = [
        {"topic_id": uuid_bytes(topic_id), "partitions": list(numbers)}
        for topic_id, numbers in r.assignment or ()
    ]
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "error_message": r.error_message,
        "member_id": r.member_id,
        "member_epoch": r.member_epoch,
        "heartbeat_interval": r.heartbeat_interval_ms,
        "assignment": None if r.assignment is None else {"topic_partitions": topics},
    }


def _assigned(topics: Any) -> Any:
    return {
        "topic_partitions": [
            {
                "topic_id": uuid_bytes(topic.topic_id),
                "topic_name": topic.topic,
                "partitions": list(topic.partitions),
            }
            for topic in topics
        ]
    }


def _member(m: Any) -> Any:
    return {
        "member_id": m.member_id,
        "instance_id": m.group_instance_id,
        "rack_id": m.rack,
        "member_epoch": m.member_epoch,
        "client_id": m.client_id,
        "client_host": m.client_host,
        "subscribed_topic_names": list(m.topics),
        "subscribed_topic_regex": m.topic_regex,
        "assignment": _assigned(m.assignment),
        "target_assignment": _assigned(m.target_assignment),
    }


def _described(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "groups": [
            {
                "error_code": group.error,
                "error_message": group.error_message,
                "group_id": group.group_id,
                "group_state": group.state,
                "group_epoch": group.group_epoch,
                "assignment_epoch": group.assignment_epoch,
                "assignor_name": group.assignor,
                "members": [_member(member) for member in group.members],
                "authorized_operations": (
                    -(2**31) if group.authorized_operations is None else group.authorized_operations
                ),
            }
            for group in r.groups
        ],
    }


TREES: dict[int, Any] = {68: _heartbeat, 69: _described}
"""By key: what kio must read of such a response."""


def _topic_id(value: uuid.UUID | None) -> str:
    return "" if value is None else uuid_text(value.bytes)


def _milliseconds(value: Any) -> int:
    if isinstance(value, datetime.timedelta):
        return round(value / datetime.timedelta(milliseconds=1))
    return int(value)


EXPECTED: dict[int, Any] = {
    68: lambda e: groups.ConsumerGroupHeartbeatRequest(
        e.group_id,
        e.member_id,
        e.member_epoch,
        e.instance_id,
        e.rack_id,
        _milliseconds(e.rebalance_timeout),
        None if e.subscribed_topic_names is None else tuple(e.subscribed_topic_names),
        getattr(e, "subscribed_topic_regex", None),
        e.server_assignor,
        None
        if e.topic_partitions is None
        else tuple((_topic_id(t.topic_id), tuple(t.partitions)) for t in e.topic_partitions),
    ),
    69: lambda e: groups.ConsumerGroupDescribeRequest(
        tuple(e.group_ids), e.include_authorized_operations
    ),
}
"""By key: the request that an entity of kio's stands for."""
