"""Watches of the sessions connected to a server; each fires once (ZooKeeper: ``WatchManager``)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .messages import EventType, SetWatches
from .tree import Change, ZnodeTree
from .znode import parent_path

Deliver = Callable[[int, EventType, str], None]
"""Called with session id, event type and path for every watch that fires."""

_Watches = dict[str, int | dict[int, None]]
"""Sessions by path. A single session is stored as its bare id, which saves memory: the controller
watches every topic, and it alone does."""


class WatchManager:
    """Data and existence watches (one kind) and child watches, by path and session.

    A change is delivered to a session once, even if watches of both kinds match it. Sessions are
    notified in the order in which they armed their watches. Any integer can be a session id.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._data: _Watches = {}
        self._children: _Watches = {}
        self._paths_of: dict[int, dict[str, None]] = {}
        """Paths that each session watches, with watches of one kind or both."""

    def __len__(self) -> int:
        return sum(
            len(_sessions(watchers))
            for kind in (self._data, self._children)
            for watchers in kind.values()
        )

    def add_data(self, session_id: int, path: str) -> None:
        """Arm a watch that fires once, when the node is created or deleted or its data is set."""
        _add(self._data, path, session_id)
        self._paths_of.setdefault(session_id, {})[path] = None

    def add_children(self, session_id: int, path: str) -> None:
        """Arm a watch that fires once, when a child is created or deleted, or the node deleted."""
        _add(self._children, path, session_id)
        self._paths_of.setdefault(session_id, {})[path] = None

    def remove_session(self, session_id: int) -> None:
        """Forget the session's watches without firing them (its connection is gone)."""
        for path in self._paths_of.pop(session_id, ()):
            for watches in (self._data, self._children):
                watchers = watches.get(path)
                if isinstance(watchers, dict):
                    watchers.pop(session_id, None)
                    if not watchers:
                        del watches[path]
                elif watchers == session_id:
                    del watches[path]

    def fire(self, changes: list[Change]) -> None:
        """Fire the watches that the changes of the tree match, in order."""
        data_watches = self._data
        child_watches = self._children
        deliver = self._deliver
        for event_type, path in changes:
            watchers = _sessions(data_watches.pop(path, None)) if data_watches else ()
            for session_id in watchers:
                self._forget(session_id, path, child_watches)
                deliver(session_id, event_type, path)
            if event_type is EventType.NODE_DATA_CHANGED or not child_watches:
                continue
            if event_type is EventType.NODE_DELETED:
                for session_id in _sessions(child_watches.pop(path, None)):
                    self._forget(session_id, path, data_watches)
                    if session_id not in watchers:
                        deliver(session_id, event_type, path)
            parent = parent_path(path)
            for session_id in _sessions(child_watches.pop(parent, None)):
                self._forget(session_id, parent, data_watches)
                deliver(session_id, EventType.NODE_CHILDREN_CHANGED, parent)

    def _forget(self, session_id: int, path: str, others: _Watches) -> None:
        """Forget that a session watches a path, unless a watch of the other kind remains."""
        watchers = others.get(path)
        if watchers is None or session_id not in _sessions(watchers):
            del self._paths_of[session_id][path]

    def set_watches(self, session_id: int, request: SetWatches, tree: ZnodeTree) -> None:
        """Re-arm the watches of a reconnected session; fire those that missed a change at once."""
        seen = request.relative_zxid
        for path in request.data_paths:
            node = tree.find(path)
            if node is None:
                self._deliver(session_id, EventType.NODE_DELETED, path)
            elif node.mzxid > seen:
                self._deliver(session_id, EventType.NODE_DATA_CHANGED, path)
            else:
                self.add_data(session_id, path)
        for path in request.exist_paths:
            if tree.find(path) is not None:
                self._deliver(session_id, EventType.NODE_CREATED, path)
            else:
                self.add_data(session_id, path)
        for path in request.child_paths:
            node = tree.find(path)
            if node is None:
                self._deliver(session_id, EventType.NODE_DELETED, path)
            elif node.pzxid > seen:
                self._deliver(session_id, EventType.NODE_CHILDREN_CHANGED, path)
            else:
                self.add_children(session_id, path)


def _add(watches: _Watches, path: str, session_id: int) -> None:
    watchers = watches.get(path)
    if watchers is None:
        watches[path] = session_id
    elif isinstance(watchers, dict):
        watchers[session_id] = None
    elif watchers != session_id:
        watches[path] = {watchers: None, session_id: None}


def _sessions(watchers: int | dict[int, None] | None) -> Collection[int]:
    if watchers is None:
        return ()
    return watchers if isinstance(watchers, dict) else (watchers,)
