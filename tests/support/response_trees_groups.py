"""What the answers of group coordinators must show; see ``response_trees``."""

from __future__ import annotations

from typing import Any


def _coordinator_text(c: Any, version: int) -> Any:
    """The broker says what there is to be said; version 4 has a text always."""
    return c.error_message or ("" if version >= 4 else None)


def find_coordinator(r: Any, version: int) -> Any:
    trees = [
        {
            "key": c.key,
            "error_code": c.error,
            "error_message": _coordinator_text(c, version),
            "node_id": c.node_id,
            "host": c.host,
            "port": c.port,
        }
        for c in r.coordinators
    ]
    return {"throttle_time": 0, "coordinators": trees, **trees[0]}


def join_group(r: Any, version: int) -> Any:
    members = [
        {
            "member_id": m.member_id,
            "group_instance_id": m.group_instance_id,
            "metadata": m.metadata,
        }
        for m in r.members
    ]
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "generation_id": r.generation,
        "protocol_type": r.protocol_type,
        "protocol_name": r.protocol if version >= 7 else r.protocol or "",
        "leader": r.leader,
        "skip_assignment": r.skip_assignment,
        "member_id": r.member_id,
        "members": members,
    }


def heartbeat(r: Any, version: int) -> Any:
    return {"throttle_time": 0, "error_code": r.error}


def leave_group(r: Any, version: int) -> Any:
    members = [
        {
            "member_id": m.member_id,
            "group_instance_id": m.group_instance_id,
            "error_code": m.error,
        }
        for m in r.members
    ]
    error = r.error
    if version < 3 and not error and r.members:
        error = r.members[0].error
    return {"throttle_time": 0, "error_code": error, "members": members}


def sync_group(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "protocol_type": r.protocol_type,
        "protocol_name": r.protocol,
        "assignment": r.assignment,
    }


def described_group(g: Any) -> Any:
    members = [
        {
            "member_id": m.member_id,
            "group_instance_id": m.group_instance_id,
            "client_id": m.client_id,
            "client_host": m.client_host,
            "member_metadata": m.metadata,
            "member_assignment": m.assignment,
        }
        for m in g.members
    ]
    return {
        "error_code": g.error,
        "group_id": g.group_id,
        "group_state": g.state,
        "protocol_type": g.protocol_type,
        "protocol_data": g.protocol,
        "members": members,
        "authorized_operations": -(2**31),
    }


def describe_groups(r: Any, version: int) -> Any:
    return {"throttle_time": 0, "groups": [described_group(group) for group in r.groups]}


def list_groups(r: Any, version: int) -> Any:
    trees = [
        {
            "group_id": g.group_id,
            "protocol_type": g.protocol_type,
            "group_state": g.state,
            "group_type": g.group_type,
        }
        for g in r.groups
    ]
    return {"throttle_time": 0, "error_code": r.error, "groups": trees}


def delete_groups(r: Any, version: int) -> Any:
    trees = [{"group_id": group_id, "error_code": error} for group_id, error in r.groups]
    return {"throttle_time": 0, "results": trees}


def offset_delete(r: Any, version: int) -> Any:
    topics: dict[str, list[Any]] = {}
    for partition, error in r.partitions:
        result = {"partition_index": partition.partition, "error_code": error}
        topics.setdefault(partition.topic, []).append(result)
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "topics": [{"name": name, "partitions": results} for name, results in topics.items()],
    }


TREES: dict[int, Any] = {
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    42: delete_groups,
    47: offset_delete,
}
