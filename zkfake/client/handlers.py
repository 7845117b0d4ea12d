"""Handlers that a client calls for watch events and session changes.

The pattern is that of Kafka's ``ZooKeeperClient``: a handler is registered locally for a path;
the next exists, get data or get children request for the path arms the watch; an event is passed
to the handler, or ignored if that is no longer registered. Processing an event re-reads the node
and so re-arms the watch.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from ..messages import EventType, ExistsRequest, GetChildrenRequest, GetDataRequest, Request


class ChangeHandler(Protocol):
    """Handler of changes to the existence and the data of one node."""

    @property
    def on_creation(self) -> Callable[[], object]: ...

    @property
    def on_deletion(self) -> Callable[[], object]: ...

    @property
    def on_data_change(self) -> Callable[[], object]: ...


class ChildChangeHandler(Protocol):
    """Handler of changes to the children of one node."""

    @property
    def on_child_change(self) -> Callable[[], object]: ...


class StateChangeHandler:
    """Callbacks for an expired session and its replacement; a subclass overrides any of them.

    Each callback may be a coroutine function: the client awaits it before it continues.
    """

    def before_initializing_session(self) -> Awaitable[object] | object:
        return None

    def after_initializing_session(self) -> Awaitable[object] | object:
        return None

    def on_auth_failure(self) -> Awaitable[object] | object:
        return None


class HandlerRegistry:
    """The handlers of one client, by path or name; the last one registered for a key wins."""

    def __init__(self) -> None:
        self._change: dict[str, ChangeHandler] = {}
        self._child_change: dict[str, ChildChangeHandler] = {}
        self._state_change: dict[str, Any] = {}
        self.callback_errors: list[Exception] = []
        """Errors raised by session callbacks, kept for inspection; they interrupt nothing else."""

    def register_change_handler(self, path: str, handler: ChangeHandler) -> None:
        """Call the handler for watch events of ``path``; exists and get data then arm a watch."""
        self._change[path] = handler

    def unregister_change_handler(self, path: str) -> None:
        self._change.pop(path, None)

    def register_child_change_handler(self, path: str, handler: ChildChangeHandler) -> None:
        """Call the handler for child events of ``path``; get children with ``watch=True`` then arms
        a watch."""
        self._child_change[path] = handler

    def unregister_child_change_handler(self, path: str) -> None:
        self._child_change.pop(path, None)

    def register_state_change_handler(self, name: str, handler: StateChangeHandler) -> None:
        """Call the handler around the replacement of an expired session."""
        self._state_change[name] = handler

    def unregister_state_change_handler(self, name: str) -> None:
        self._state_change.pop(name, None)

    def with_watch(self, request: Request) -> Request:
        """Return the request with the ``watch`` flag that the registered handlers require."""
        # A tuple of types, as a union would be created anew for each request.
        if isinstance(request, (GetDataRequest, ExistsRequest)):
            watch = request.path in self._change
            return request if watch == request.watch else type(request)(request.path, watch)
        if (
            isinstance(request, GetChildrenRequest)
            and request.watch
            and request.path not in self._child_change
        ):
            return GetChildrenRequest(request.path)
        return request

    def dispatch(self, event_type: EventType, path: str) -> None:
        """Call the handler of a watch event, if one is still registered."""
        if event_type is EventType.NODE_CHILDREN_CHANGED:
            child_handler = self._child_change.get(path)
            if child_handler is not None:
                child_handler.on_child_change()
            return
        handler = self._change.get(path)
        if handler is None:
            return
        if event_type is EventType.NODE_CREATED:
            handler.on_creation()
        elif event_type is EventType.NODE_DELETED:
            handler.on_deletion()
        else:
            handler.on_data_change()

    async def run_state_callbacks(self, callback_name: str) -> None:
        """Run one callback of every state change handler to its end, and keep the errors raised."""
        for handler in list(self._state_change.values()):
            callback = getattr(handler, callback_name, None)
            if callback is None:
                continue
            try:
                outcome = callback()
                if inspect.isawaitable(outcome):
                    await outcome
            except Exception as error:
                self.callback_errors.append(error)
