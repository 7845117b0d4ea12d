"""Reports a ZooKeeper server's znodes and sessions to the recorder of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...protocol.host import StateListener
from ..messages import EventType
from ..tree import ZnodeTree
from ..znode import Znode

_DATA_LIMIT = 1024


def _value(node: Znode) -> dict[str, Any]:
    data: Any = None if node.data is None else node.data[:_DATA_LIMIT]
    if data is not None:
        try:
            data = data.decode()
        except UnicodeDecodeError:
            data = "0x" + data.hex()
    value = {"data": data, "version": node.version, "zxid": node.mzxid}
    if node.ephemeral_owner:
        value["owner"] = hex(node.ephemeral_owner)
    return value


def tell_changes(
    listener: StateListener, tree: ZnodeTree, changes: Iterable[tuple[EventType, str]]
) -> None:
    """Report the state of the znodes that a transaction changed."""
    for event_type, path in changes:
        node = None if event_type is EventType.NODE_DELETED else tree.find(path)
        listener(f"znodes{path}", None, None if node is None else _value(node))


def tell_session(
    listener: StateListener, session_id: int, timeout_ms: int | None, client: str = ""
) -> None:
    """Report that a session was created, or that it has ended if ``timeout_ms`` is None."""
    value: dict[str, Any] | None = None
    if timeout_ms is not None:
        value = {"timeout_ms": timeout_ms}
        if client:
            value["client"] = client
    listener(f"sessions/{session_id:#x}", None, value)


def tell_tree(listener: StateListener, tree: ZnodeTree, before: ZnodeTree | None = None) -> None:
    """Report all of a tree that replaced the tree ``before``, or was read from the disk."""
    if before is not None:
        for path, _ in before.items():
            if path != "/" and tree.find(path) is None:
                listener(f"znodes{path}", None, None)
        for session_id in before.sessions:
            if session_id not in tree.sessions:
                tell_session(listener, session_id, None)
    for path, node in tree.items():
        if node.czxid:  # nodes that no client created are in every tree
            listener(f"znodes{path}", None, _value(node))
    for session_id, timeout_ms in tree.sessions.items():
        tell_session(listener, session_id, timeout_ms)
