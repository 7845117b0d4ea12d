"""Settings of a server, what it asks of the role it plays, and what the role asks of it."""

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
    """The time that a new leader and its followers may take to agree."""
    sync_limit_ticks: int = 5
    """The time for which leader and followers may be silent towards each other."""
    min_session_timeout_ms: int = 0
    """ZooKeeper's default is two ticks; here short sessions are let through, for fast tests."""
    max_session_timeout_ms: int = 40_000
    own_paths: tuple[str, ...] = ()
    """Nodes that ZooKeeper keeps for itself, parents first; its releases differ in them."""
    tells_ephemerals: bool = True
    """Whether a client may ask for its ephemeral nodes, as since ZooKeeper 3.6."""
    max_packet_bytes: int = 0xFFFFF
    """``jute.maxbuffer``: a larger request costs its sender the connection."""

    def negotiated_timeout_ms(self, wanted_ms: int) -> int:
        return min(max(wanted_ms, self.min_session_timeout_ms), self.max_session_timeout_ms)


class Role(Protocol):
    """Part of a server that depends on its place in the ensemble."""

    is_serving: bool

    def start(self) -> None: ...
    def stop(self) -> None:
        """Cancel timers; send nothing any more."""
        ...

    def submit(
        self, connection: ClientConnection | None, session_id: int, xid: int, request: Any
    ) -> None:
        """Have a write (or sync) carried out; ``connection`` None: nobody waits for it."""
        ...

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        """Find out whether a session lives, then call ``server.session_found``."""
        ...

    def touch(self, session_id: int) -> None:
        """A client of this server was heard of."""
        ...

    def on_message(self, source: str, message: Any) -> bool: ...
    def on_disconnect(self, name: str) -> None: ...


class RoleOwner(Protocol):
    """Server as its role sees it."""

    host: SessionHost
    server_id: int
    peers: dict[int, str]
    """The other servers of the ensemble: id to node name."""
    storage: ZooKeeperStorage
    config: ZooKeeperConfig
    connections: ConnectionTable
    election: FastLeaderElection

    def look(self) -> None:
        """Leader or quorum is lost: serve nobody and elect anew."""
        ...

    def close_connection(self, connection: ClientConnection) -> None:
        """Give a connection up and tell the client; its session lives on."""
        ...

    def session_found(self, connection: ClientConnection, session_id: int, timeout_ms: int) -> None:
        """A session is this connection's; timeout 0: it has expired."""
        ...

    def applied(
        self, txn: Txn, response: ZkResponse, connection: ClientConnection | None, xid: int
    ) -> None:
        """A transaction is in the tree: fire watches, then answer if it was asked for here."""
        ...

    def apply_committed(self, zxid: int) -> None:
        """Apply what is logged up to ``zxid``."""
        ...

    def answer_sync(self, connection: ClientConnection, xid: int) -> None:
        """Answer the sync at the head of the queue."""
        ...
