"""Handles of ZooKeeper's znode tree and servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...protocol.errors import NotThereYet, UsageError
from ...zkfake.messages import (
    ANY_VERSION,
    CreateRequest,
    DeleteRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)
from .. import arguments
from .clock_rate import clock_rate, set_clock_rate
from .roles import broker_process
from .zookeeper_shell import send

if TYPE_CHECKING:
    from ...zkfake.messages import Stat, ZkResponse
    from ..running import RunningCluster


class ZooKeeperHandle:
    """ZooKeeper's znode tree and servers."""

    __slots__ = ("_running",)

    def __init__(self, running: RunningCluster) -> None:
        self._running = running

    def __repr__(self) -> str:
        states = [
            f"{number}: {'alive' if process.is_alive else 'dead'}"
            for number, process in self._running.zookeepers.items()
        ]
        return f"<ZooKeeper servers {', '.join(states)}>"

    def _tree(self) -> Any:
        self._running.require_own_process()
        alive = [p for p in self._running.zookeepers.values() if p.is_alive]
        if not alive:
            raise NotThereYet("no ZooKeeper server is running")
        serving = [p for p in alive if p.server.is_serving]
        return max(serving or alive, key=lambda p: p.server.last_zxid).server

    def require_server(self) -> None:
        """Raise ``NotThereYet`` while no server runs."""
        self._tree()

    def _read_node(self, path: str, function: Callable[[Any], Any]) -> Any:
        """Read a znode; ``NotThereYet`` if it does not exist."""
        arguments.path("path", path)
        try:
            return self._read(function)
        except ZooKeeperError as error:
            if error.code is not ZkCode.NONODE:
                raise
            raise NotThereYet(f"there is no znode {path!r}") from None

    def _read(self, function: Callable[[Any], Any]) -> Any:
        server = self._tree()
        process = next(
            p.process
            for p in self._running.zookeepers.values()
            if p.is_alive and p.server is server
        )
        return self._running.in_process(process, lambda: function(server))

    def get(self, path: str) -> bytes | None:
        """Return the data of a znode; ``NotThereYet`` if it does not exist."""
        data: bytes | None = self._read_node(path, lambda server: server.get(path))
        return data

    def stat(self, path: str) -> Stat:
        """Return the versions and times of a znode; ``NotThereYet`` if it does not exist."""
        stat: Stat = self._read_node(path, lambda server: server.stat(path))
        return stat

    def children(self, path: str) -> list[str]:
        """Return the sorted names of a znode's children; ``NotThereYet`` if it does not exist."""
        return sorted(self._read_node(path, lambda server: server.children(path)))

    def tree(self) -> dict[str, bytes | None]:
        """Return the data of every znode by path, sorted."""
        return dict(sorted(self._read(lambda server: server.tree()).items()))

    def create(self, path: str, data: bytes | str | None = b"", *, sequential: bool = False) -> str:
        """Create a persistent znode and return its path; ``sequential`` appends a counter to it.

        ``create``, ``set`` and ``delete`` use a session of their own, as an operator's shell does.
        ``UsageError`` if the znode exists already, its parent does not, or no majority of the
        servers runs.
        """
        arguments.path("path", path)
        stored = arguments.record_bytes("data", data)
        request = CreateRequest(path, stored, sequential=bool(sequential))
        return str(self._send(request).path)

    def set(self, path: str, data: bytes | str | None, *, version: int = ANY_VERSION) -> Stat:
        """Replace the data of a znode; return its new versions and times.

        ``UsageError`` if the znode does not exist, or has another version than ``version``.
        """
        arguments.path("path", path)
        stored = arguments.record_bytes("data", data)
        arguments.integer("version", version, ANY_VERSION)
        stat = self._send(SetDataRequest(path, stored, version)).stat
        assert stat is not None
        return stat

    def delete(self, path: str, *, version: int = ANY_VERSION, recursive: bool = False) -> None:
        """Delete a znode, and with ``recursive`` all znodes below it.

        ``UsageError`` if the znode has another version than ``version``, or has children and
        ``recursive`` is False.
        """
        arguments.path("path", path)
        arguments.integer("version", version, ANY_VERSION)
        if recursive:
            for name in self.children(path):
                self.delete(f"{path}/{name}", recursive=True)
        self._send(DeleteRequest(path, version))

    def _send(self, request: Any) -> ZkResponse:
        answer = send(self._running, request)
        if not answer.is_ok:
            raise UsageError(self._error_text(answer.code, request))
        return answer

    def _error_text(self, code: ZkCode, request: Any) -> str:
        path = request.path
        if code is ZkCode.NONODE:
            return f"there is no znode {path!r}" + self._missing_parent(path)
        if code is ZkCode.NODEEXISTS:
            return f"znode {path!r} already exists"
        if code is ZkCode.NOTEMPTY:
            return f"znode {path!r} has children: {', '.join(self.children(path))}"
        if code is ZkCode.BADVERSION:
            version = self.stat(path).version
            return f"znode {path!r} has version {version}, not {request.version}"
        return f"{type(request).__name__} for {path!r}: {code.name}"

    def _missing_parent(self, path: str) -> str:
        tree = self.tree()
        parent = path.rsplit("/", 1)[0]
        while parent and parent not in tree:
            path, parent = parent, parent.rsplit("/", 1)[0]
        return f": {path!r} is missing"

    def expire_session(self, broker: int | str) -> None:
        """Expire a broker's session at the server, as if its heartbeats had stopped."""
        process = broker_process(self._running, broker)
        node = process.controller_node
        if node is None:
            raise NotThereYet(f"{process.name} is not running; it has no session")
        self._running.require_going()
        self.end_session(node.zk_client.session_id, process.name)

    def end_session(self, session_id: int, owner: str) -> None:
        """Expire a session by its id, even if its owner is dead; ``owner`` names its machine."""
        self._running.runtime.note("fault", owner, "session expired")
        self._read(lambda server: server.expire_session(session_id))

    def server(self, server_id: int) -> ZooKeeperServerHandle:
        """Return the handle of a server; ids start at 1."""
        arguments.integer("server_id", server_id)
        ids = list(self._running.zookeepers)
        if server_id not in ids:
            raise UsageError(f"there is no ZooKeeper server {server_id}; ids are {ids}")
        return ZooKeeperServerHandle(self._running, server_id)


class ZooKeeperServerHandle:
    """A ZooKeeper server."""

    __slots__ = ("_process", "_running")

    def __init__(self, running: RunningCluster, server_id: int) -> None:
        self._running = running
        self._process = running.zookeepers[server_id]

    def __repr__(self) -> str:
        return f"<{self._process.name} {'alive' if self._process.is_alive else 'dead'}>"

    @property
    def is_alive(self) -> bool:
        """True while the server's process runs."""
        self._running.require_own_process()
        return self._process.is_alive

    def kill(self) -> None:
        """Kill the process; its transaction log and snapshots are kept."""
        self._running.require_going()
        self._running.in_process(self._process.process, self._process.kill)

    def start(self) -> None:
        """Start the server again with its storage."""
        self._running.require_going()
        self._running.in_process(self._process.process, self._process.start)

    def set_clock_rate(self, rate: float) -> None:
        """Run the clocks of the server's machine ``rate`` times as fast as usual, from 0.1 to 10.

        The server counts ticks and expires sessions by these clocks. Restarts keep the rate.
        """
        self._running.require_going()
        set_clock_rate(self._running, self._process.process, rate)

    @property
    def clock_rate(self) -> float:
        """Rate of the clocks of the server's machine; 1 is the usual rate."""
        self._running.require_own_process()
        return clock_rate(self._process.process)
