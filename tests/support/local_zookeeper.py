"""ZooKeeper without servers or network: one tree, any number of sessions, immediate answers.

For tests of code that uses the asynchronous interface of the ZooKeeper client: the coroutines of
``LocalZooKeeperClient`` never park, so ``tests.support.run_now`` runs them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from fakekafka.protocol.awaiting import Pending, Task
from fakekafka.zkfake.client.handlers import HandlerRegistry
from fakekafka.zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateSession,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Request,
    SessionRequest,
    SyncRequest,
    ZkCode,
    ZkResponse,
)
from fakekafka.zkfake.tree import ZnodeTree
from fakekafka.zkfake.watches import WatchManager

_WATCHABLE = (GetDataRequest, ExistsRequest, GetChildrenRequest)
_READS = (*_WATCHABLE, CheckRequest, SyncRequest)


class LocalZooKeeper:
    """One znode tree that applies every request at once.

    ``clock`` returns milliseconds since the epoch (default: always 0). Watch events are delivered
    to the sessions' listeners right after the request that caused them, before its response.
    """

    __slots__ = ("_clock", "_delivering", "_events", "_listeners", "_next_session_id", "_watches",
                 "tree")  # fmt: skip

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self.tree = ZnodeTree()
        self._clock = clock
        self._watches = WatchManager(self._queue_event)
        self._listeners: dict[int, Callable[[EventType, str], object]] = {}
        self._events: deque[tuple[int, EventType, str]] = deque()
        self._delivering = False
        self._next_session_id = 1

    def open_session(
        self, listener: Callable[[EventType, str], object], session_timeout_ms: int = 18_000
    ) -> int:
        """Open a session whose watch events go to ``listener(type, path)``; return its id."""
        session_id = self._next_session_id
        self._next_session_id += 1
        self._listeners[session_id] = listener
        self.submit(session_id, CreateSession(session_timeout_ms))
        return session_id

    def close_session(self, session_id: int) -> None:
        """End a session, closed or expired, and delete its ephemeral nodes, if it is open."""
        self._watches.remove_session(session_id)
        self._listeners.pop(session_id, None)
        if session_id in self.tree.sessions:
            self.submit(session_id, CloseSession())

    def submit(self, session_id: int, request: SessionRequest) -> ZkResponse:
        """Apply or answer one request of a session, including its watches."""
        tree = self.tree
        if not isinstance(request, _READS):
            response = tree.apply(tree.last_zxid + 1, self._clock(), session_id, request)
            self._watches.fire(tree.take_changes())
            self._deliver_events()
            return response
        if session_id not in tree.sessions:
            return ZkResponse(ZkCode.SESSIONEXPIRED, request.path, zxid=tree.last_zxid)
        response = tree.read(request)
        if isinstance(request, _WATCHABLE) and request.watch:
            if isinstance(request, GetChildrenRequest):
                if response.code == 0:
                    self._watches.add_children(session_id, request.path)
            elif response.code == 0 or isinstance(request, ExistsRequest):
                self._watches.add_data(session_id, request.path)
        return response

    def get(self, path: str) -> bytes | None:
        """Return the data of a node; raise ``KeyError`` if there is none."""
        return self.tree.nodes[path].data

    def children(self, path: str) -> list[str]:
        """Return the sorted names of children; raise ``KeyError`` if there is no such node."""
        return list(self.tree.nodes[path].child_names())

    def _queue_event(self, session_id: int, event_type: EventType, path: str) -> None:
        self._events.append((session_id, event_type, path))

    def _deliver_events(self) -> None:
        # Requests of a handler may cause events, which are queued behind in order.
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._events:
                session_id, event_type, path = self._events.popleft()
                listener = self._listeners.get(session_id)
                if listener is not None:
                    listener(event_type, path)
        finally:
            self._delivering = False


class _Fault:
    __slots__ = ("applied", "failure", "predicate", "times")

    def __init__(
        self,
        predicate: Callable[[Request], bool],
        failure: ZkCode | Exception,
        times: int,
        applied: bool,
    ) -> None:
        self.predicate = predicate
        self.failure = failure
        self.times = times
        self.applied = applied


class LocalZooKeeperClient(HandlerRegistry):
    """A client of a ``LocalZooKeeper`` with the interface of ``ZooKeeperClient``; it never parks.

    The session is open from construction on. ``requests`` has what was sent, for tests.
    """

    __slots__ = ("_closed", "_faults", "_session_timeout_ms", "requests", "session_id", "zookeeper")

    def __init__(self, zookeeper: LocalZooKeeper, session_timeout_ms: int = 18_000) -> None:
        super().__init__()
        self.zookeeper = zookeeper
        self._session_timeout_ms = session_timeout_ms
        self._faults: list[_Fault] = []
        self._closed = False
        self.requests: list[Request] = []
        self.session_id = zookeeper.open_session(self.dispatch, session_timeout_ms)

    @property
    def is_connected(self) -> bool:
        return not self._closed and self.session_id in self.zookeeper.tree.sessions

    def start(self) -> None:
        """Do nothing, as a local client is always connected."""

    def close(self) -> Pending[None]:
        """End the session and delete its ephemeral nodes; the outcome is there at once."""
        self._closed = True
        self.zookeeper.close_session(self.session_id)
        closed: Pending[None] = Pending()
        closed.set_result(None)
        return closed

    def abandon(self) -> None:
        """Stop like a crashed process, whose session stays until it is expired."""
        self._closed = True
        self.zookeeper._listeners.pop(self.session_id, None)

    async def wait_until_connected(self) -> None:
        """Return at once; a local client is always connected."""

    async def handle_request(self, request: Request) -> ZkResponse:
        return (await self.handle_requests((request,)))[0]

    async def handle_requests(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Return the responses in order; a CONNECTIONLOSS made by ``fail_next`` is retried."""
        answers: list[ZkResponse] = []
        while len(answers) < len(requests):
            batch = await self.send_once(requests[len(answers) :])
            answers.extend(r for r in batch if r.code is not ZkCode.CONNECTIONLOSS)
        return answers

    async def send_once(self, requests: Sequence[Request]) -> list[ZkResponse]:
        """Return the responses in order; all after a CONNECTIONLOSS are the same (CP-199)."""
        answers: list[ZkResponse] = []
        lost = False
        for request in requests:
            if lost:
                answers.append(ZkResponse(ZkCode.CONNECTIONLOSS, getattr(request, "path", None)))
                continue
            answers.append(self._send(request))
            lost = answers[-1].code is ZkCode.CONNECTIONLOSS
        return answers

    def _send(self, request: Request) -> ZkResponse:
        request = self.with_watch(request)
        self.requests.append(request)
        if self._closed:
            return ZkResponse(ZkCode.SESSIONEXPIRED, getattr(request, "path", None))
        for fault in self._faults:
            if not fault.predicate(request):
                continue
            fault.times -= 1
            if fault.times == 0:
                self._faults.remove(fault)
            if fault.applied:
                self.zookeeper.submit(self.session_id, request)
            if isinstance(fault.failure, Exception):
                raise fault.failure
            return ZkResponse(fault.failure, getattr(request, "path", None))
        return self.zookeeper.submit(self.session_id, request)

    # --- faults

    def fail_next(
        self,
        predicate: Callable[[Request], bool],
        failure: ZkCode | Exception,
        *,
        times: int = 1,
        applied: bool = False,
    ) -> None:
        """Fail the next matching requests with a code or an exception.

        With ``applied`` the request takes effect all the same, as if only the response were lost.
        """
        self._faults.append(_Fault(predicate, failure, times, applied))

    def expire(self) -> Task[None]:
        """Expire the session, then run the callbacks around opening a new one.

        The returned task is done unless a ``before_initializing_session`` callback parked.
        """
        self.zookeeper.close_session(self.session_id)
        return Task(self._reinitialize())

    async def _reinitialize(self) -> None:
        await self.run_state_callbacks("before_initializing_session")
        if not self._closed:
            self.session_id = self.zookeeper.open_session(self.dispatch, self._session_timeout_ms)
            await self.run_state_callbacks("after_initializing_session")
