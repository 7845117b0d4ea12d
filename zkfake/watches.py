"""One-shot watches of the sessions connected to one server (ZooKeeper: ``WatchManager``)."""

from __future__ import annotations

from collections.abc import Callable

from .messages import EventType, SetWatches
from .tree import Change, ZnodeTree
from .znode import parent_path

Deliver = Callable[[int, EventType, str], None]
"""Called with session id, event type and path for every watch that fires."""

_Watches = dict[str, dict[int, None]]


class WatchManager:
    """Data and existence watches (one kind) and child watches, by path and session.

    A session is told once per change even if both kinds of its watches see it, and in the order
    in which it set them up relative to other sessions. Watchers are any integer: a session id.
    """

    __slots__ = ("_children", "_data", "_deliver", "_paths_of")

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._data: _Watches = {}
        self._children: _Watches = {}
        # Paths a session has ever watched here since it connected; a superset of those armed.
        self._paths_of: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._data.values())) + sum(map(len, self._children.values()))

    def add_data(self, session_id: int, path: str) -> None:
        """Fire once when the node is created, deleted or its data set."""
        self._data.setdefault(path, {})[session_id] = None
        self._paths_of.setdefault(session_id, {})[path] = None

    def add_children(self, session_id: int, path: str) -> None:
        """Fire once when a child comes or goes, or the node itself is deleted."""
        self._children.setdefault(path, {})[session_id] = None
        self._paths_of.setdefault(session_id, {})[path] = None

    def remove_session(self, session_id: int) -> None:
        """Forget the session's watches without firing them (its connection is gone)."""
        for path in self._paths_of.pop(session_id, ()):
            for watches in (self._data, self._children):
                sessions = watches.get(path)
                if sessions is not None and session_id in sessions:
                    del sessions[session_id]
                    if not sessions:
                        del watches[path]

    def fire(self, changes: list[Change]) -> None:
        """Deliver what the changes of the tree mean for the watches armed, in order."""
        data_watches = self._data
        child_watches = self._children
        deliver = self._deliver
        for event_type, path in changes:
            told = data_watches.pop(path, None) if data_watches else None
            if told is not None:
                for session_id in told:
                    deliver(session_id, event_type, path)
            if event_type is EventType.NODE_DATA_CHANGED or not child_watches:
                continue
            if event_type is EventType.NODE_DELETED:
                for session_id in child_watches.pop(path, ()):
                    if told is None or session_id not in told:
                        deliver(session_id, event_type, path)
            parent = parent_path(path)
            for session_id in child_watches.pop(parent, ()):
                deliver(session_id, EventType.NODE_CHILDREN_CHANGED, parent)

    def set_watches(self, session_id: int, request: SetWatches, tree: ZnodeTree) -> None:
        """Re-arm a reconnected session's watches; fire at once those that missed a change."""
        seen = request.relative_zxid
        for path in request.data_paths:
            node = tree.nodes.get(path)
            if node is None:
                self._deliver(session_id, EventType.NODE_DELETED, path)
            elif node.mzxid > seen:
                self._deliver(session_id, EventType.NODE_DATA_CHANGED, path)
            else:
                self.add_data(session_id, path)
        for path in request.exist_paths:
            if path in tree.nodes:
                self._deliver(session_id, EventType.NODE_CREATED, path)
            else:
                self.add_data(session_id, path)
        for path in request.child_paths:
            node = tree.nodes.get(path)
            if node is None:
                self._deliver(session_id, EventType.NODE_DELETED, path)
            elif node.pzxid > seen:
                self._deliver(session_id, EventType.NODE_CHILDREN_CHANGED, path)
            else:
                self.add_children(session_id, path)
