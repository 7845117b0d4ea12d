"""Settings of a server, and the interfaces between a server and the role it plays."""

from __future__ import annotations

from typing import Any, Protocol

from ...protocol.host import SessionHost
from ...protocol.values import frozen
from ..messages import ZkResponse
from .connections import ClientConnection, ConnectionTable
from .fast_leader_election import FastLeaderElection
from .quorum_messages import Txn
from .storage import ZooKeeperStorage


@frozen
class ZooKeeperConfig:
    """Settings of a server, by ZooKeeper's names and with its defaults."""

    tick_time_ms: int = 2000
    init_limit_ticks: int = 10
    """Ticks that a new leader and its followers may take to agree."""
    sync_limit_ticks: int = 5
    """Ticks for which leader and followers may be silent towards each other."""
    min_session_timeout_ms: int = 0
    """ZooKeeper's default is two ticks; the default of 0 permits short sessions, for fast tests."""
    max_session_timeout_ms: int = 40_000
    built_in_paths: tuple[str, ...] = ()
    """Paths of the nodes that ZooKeeper provides, parents first; they depend on its release."""
    supports_get_ephemerals: bool = True
    """True if a client may ask for its ephemeral nodes, as since ZooKeeper 3.6."""
    max_packet_bytes: int = 0xFFFFF
    """``jute.maxbuffer``: a client that sends a larger request loses its connection."""

    def negotiated_timeout_ms(self, requested_ms: int) -> int:
        return min(max(requested_ms, self.min_session_timeout_ms), self.max_session_timeout_ms)


class Role(Protocol):
    """Part of a server that depends on its place in the ensemble."""

    is_serving: bool

    def start(self) -> None: ...
    def stop(self) -> None:
        """Cancel all timers and send nothing more."""
        ...

    def submit(
        self, connection: ClientConnection | None, session_id: int, xid: int, request: Any
    ) -> None:
        """Carry out a write (or sync); ``connection`` is None if no client waits for it."""
        ...

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        """Find out whether a session is alive, then call ``server.finish_session_init``."""
        ...

    def touch(self, session_id: int) -> None:
        """Extend the session of a client that this server has heard from."""
        ...

    def on_message(self, source: str, message: Any) -> bool: ...
    def on_disconnect(self, name: str) -> None: ...


class RoleOwner(Protocol):
    """A server as its role sees it."""

    host: SessionHost
    server_id: int
    peers: dict[int, str]
    """The other servers of the ensemble: id to node name."""
    storage: ZooKeeperStorage
    config: ZooKeeperConfig
    connections: ConnectionTable
    election: FastLeaderElection

    def look(self) -> None:
        """Stop serving clients and elect a new leader, as leader or quorum is lost."""
        ...

    def close_connection(self, connection: ClientConnection) -> None:
        """Give up a connection and notify the client; its session lives on."""
        ...

    def finish_session_init(
        self, connection: ClientConnection, session_id: int, timeout_ms: int
    ) -> None:
        """Bind a session to a connection, or refuse it as expired if the timeout is 0."""
        ...

    def on_applied(
        self, txn: Txn, response: ZkResponse, connection: ClientConnection | None, xid: int
    ) -> None:
        """Fire the watches of an applied transaction, then answer it on ``connection``, if any."""
        ...

    def apply_committed(self, zxid: int) -> None:
        """Apply the logged transactions up to ``zxid``."""
        ...

    def answer_sync(self, connection: ClientConnection, xid: int) -> None:
        """Answer the sync at the head of the connection's queue."""
        ...
