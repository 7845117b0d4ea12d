"""What the answers of group coordinators must show; see ``response_trees``."""

from __future__ import annotations

from typing import Any


def find_coordinator(r: Any, version: int) -> Any:
    trees = [
        {
            "key": c.key,
            "error_code": c.error,
            "error_message": c.error_message,
            "node_id": c.node_id,
            "host": c.host,
            "port": c.port,
        }
        for c in r.coordinators
    ]
    return {"throttle_time": 0, "coordinators": trees, **trees[0]}


def join_group(r: Any, version: int) -> Any:
    return {
        "throttle_time": 0,
        "error_code": r.error,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": None if version >= 7 else "",
        "leader": "",
        "skip_assignment": False,
        "member_id": r.member_id,
        "members": [],
    }


TREES: dict[int, Any] = {10: find_coordinator, 11: join_group}
