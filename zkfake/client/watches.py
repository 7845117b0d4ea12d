"""The watches that a client has armed, kept so that it can arm them again at another server."""

from __future__ import annotations

from ..messages import (
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    SessionRequest,
    SetWatches,
    ZkCode,
    ZkResponse,
)


class ClientWatches:
    """Watched paths by kind of watch, in the order armed (ZooKeeper: ``ZKWatchManager``)."""

    def __init__(self) -> None:
        self._data: dict[str, None] = {}
        self._exist: dict[str, None] = {}
        """Paths of nodes that did not exist when the watch was armed."""
        self._child: dict[str, None] = {}

    def on_response(self, request: SessionRequest, response: ZkResponse) -> None:
        """Add the watch of an answered request, if the request has one."""
        if not isinstance(request, (GetDataRequest, ExistsRequest, GetChildrenRequest)):
            return
        if not request.watch:
            return
        if response.code == 0:
            armed = self._child if isinstance(request, GetChildrenRequest) else self._data
            armed[request.path] = None
        elif response.code is ZkCode.NONODE and isinstance(request, ExistsRequest):
            self._exist[request.path] = None

    def on_event(self, event_type: EventType, path: str) -> None:
        """Remove the watches that an event has used up."""
        if event_type is EventType.NODE_CHILDREN_CHANGED:
            self._child.pop(path, None)
            return
        self._data.pop(path, None)
        self._exist.pop(path, None)
        if event_type is EventType.NODE_DELETED:
            self._child.pop(path, None)

    def rearm_request(self, last_zxid: int) -> SetWatches | None:
        """Return the request that re-arms all watches; None if there are none."""
        if not (self._data or self._exist or self._child):
            return None
        return SetWatches(last_zxid, tuple(self._data), tuple(self._exist), tuple(self._child))

    def clear(self) -> None:
        self._data.clear()
        self._exist.clear()
        self._child.clear()
