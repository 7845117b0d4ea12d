"""A ZooKeeper server: client connections, sessions, watches, and the role it plays.

Theory of operation. The server has a *role*: ``Standalone`` without peers; with peers ``Looking``
(electing, serves no clients), ``Leading`` or ``Following``. Reads are answered from the server's
own tree. Writes go to the role, which numbers them (itself, or through the leader); every server
applies them in zxid order, and the server whose client sent the write answers it. A session's
requests are answered in the order in which it sent them: reads behind an unfinished write wait in
its queue. Watch events are sent before the answer of any later request, so no client sees new data
before the event that announces it. A server that loses its quorum drops all connections, so that
its clients go elsewhere.
"""

from __future__ import annotations

from typing import Any

from ...protocol.errors import invariant
from ...protocol.host import SessionHost
from ..messages import (
    AuthFailed,
    ClientPacket,
    CloseSession,
    ConnectionClosed,
    ConnectRequest,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    GetEphemeralsRequest,
    MultiRequest,
    Ping,
    SessionRequest,
    SetDataRequest,
    SetWatches,
    Stat,
    SyncRequest,
    ZkCode,
    ZkResponse,
)
from ..watches import WatchManager
from .connections import ClientConnection, ConnectionTable
from .fast_leader_election import FastLeaderElection
from .quorum_messages import Notification, Txn, Vote
from .recorded import tell_changes, tell_session, tell_tree
from .roles import Role, ZooKeeperConfig
from .sessions import tell_expiry, tell_owner
from .standalone import Standalone
from .storage import ZooKeeperStorage

_WRITES = (SetDataRequest, CreateRequest, DeleteRequest, MultiRequest, CloseSession)
_QUEUED = (*_WRITES, SyncRequest)


class ZooKeeperServer:
    """A server core. ``peers`` maps server ids (of the whole ensemble, with or without this one)
    to node names; empty means standalone.

    Call ``start`` before the first message, and ``stop`` or ``crash`` at the end: the storage is
    consistent at any time, so both only silence the server. Server ids are 1 to 127, as they are
    part of session ids.
    """

    def __init__(
        self,
        host: SessionHost,
        server_id: int,
        peers: dict[int, str],
        storage: ZooKeeperStorage,
        config: ZooKeeperConfig | None = None,
    ) -> None:
        invariant(1 <= server_id <= 127, f"server id {server_id} is not within 1 to 127")
        self.host = host
        self.server_id = server_id
        self.peers: dict[int, str] = {
            sid: name for sid, name in sorted(peers.items()) if sid != server_id
        }
        self.storage = storage
        self.config: ZooKeeperConfig = config or ZooKeeperConfig()
        storage.tree.add_built_in_nodes(self.config.built_in_paths)
        self.connections: ConnectionTable = ConnectionTable(host)
        self.watches: WatchManager = WatchManager(self._deliver_event)
        self.election: FastLeaderElection = FastLeaderElection(
            host, server_id, self.peers, self._on_elected
        )
        self.role: Role = self._initial_role()
        self._running = False
        wall_ms = host.wall_ms()
        first_id = (server_id << 56) | ((wall_ms << 24 & (1 << 64) - 1) >> 8)
        storage.next_session_id = max(storage.next_session_id, first_id)

    # --- life

    def _initial_role(self) -> Role:
        return self._looking() if self.peers else Standalone(self)

    def _looking(self) -> Role:
        from .looking import Looking  # imported here, as most servers have no peers

        return Looking(self)

    def start(self) -> None:
        """Serve at once if standalone, otherwise look for a leader."""
        self._running = True
        if self.host.state_listener is not None:
            tell_tree(self.host.state_listener, self.storage.tree)
        self.role.start()

    def stop(self) -> None:
        """Stop the server, and notify its clients that their connections are closed."""
        if self._running:
            self.drop_connections()
            self.role.stop()
            self._running = False

    def crash(self) -> None:
        """Stop the server without notifying its clients or peers."""
        self.role.stop()
        self._running = False
        self.connections = ConnectionTable(self.host)

    def look(self) -> None:
        """Stop serving clients and elect a new leader, as leader or quorum is lost."""
        self._become(self._looking())

    def _on_elected(self, vote: Vote) -> None:
        if vote.leader == self.server_id:
            from .leading import Leading

            self._become(Leading(self))
        else:
            from .following import Following

            self._become(Following(self, vote.leader))

    def _become(self, role: Role) -> None:
        self.drop_connections()
        self.role.stop()
        self.role = role
        role.start()

    def drop_connections(self) -> None:
        for connection in list(self.connections.by_id.values()):
            self.close_connection(connection)

    # --- messages in

    def on_message(self, source: str, message: Any) -> bool:
        """Handle a message from a client or a peer; return False if it is for another handler."""
        kind = type(message)
        if kind is ClientPacket:
            self._on_client_packet(source, message)
        elif kind is Ping:
            self._on_ping(source, message)
        elif kind is ConnectRequest:
            self._on_connect(source, message)
        elif kind is ConnectionClosed:
            connection = self.connections.by_id.get(message.connection_id)
            if connection is not None:
                self._forget_connection(connection)
        elif not self._running:
            return False
        elif kind is Notification:
            self.election.on_notification(message)
        else:
            return self.role.on_message(source, message)
        return True

    def on_disconnect(self, name: str) -> None:
        """Handle the loss of a node: its connections are closed, its sessions live on."""
        for connection in self.connections.from_source(name):
            self._forget_connection(connection)
        if self._running:
            self.election.on_disconnect(name)
            self.role.on_disconnect(name)

    def _on_connect(self, source: str, request: ConnectRequest) -> None:
        if not self._running:
            return
        known = self.connections.by_id.get(request.connection_id)
        if known is not None:
            # The client repeats its request: the answer was lost, or is still to come.
            if known.session_id:
                timeout_ms = self.storage.tree.sessions.get(known.session_id, 0)
                known.send_connected(known.session_id, timeout_ms)
            return
        # A server that is behind the client must not serve it, or time would run backwards.
        if not self.role.is_serving or request.last_zxid_seen > self.storage.tree.last_zxid:
            self.host.send(source, ConnectionClosed(request.connection_id))
            return
        connection = self.connections.open(source, request.connection_id)
        if request.session_id:
            self.role.revalidate(connection, request.session_id)
            return
        session_id = self.storage.next_session_id
        self.storage.next_session_id = session_id + 1
        timeout_ms = self.config.negotiated_timeout_ms(request.session_timeout_ms)
        self.role.submit(connection, session_id, 0, CreateSession(timeout_ms))

    def _on_ping(self, source: str, ping: Ping) -> None:
        connection = self._connection_of(source, ping)
        if connection is not None:
            self.role.touch(connection.session_id)
            connection.send_ping()

    def _on_client_packet(self, source: str, packet: ClientPacket) -> None:
        connection = self._connection_of(source, packet)
        if connection is None:
            return
        session_id = connection.session_id
        self.role.touch(session_id)
        request = packet.request
        xid = packet.xid
        if isinstance(request, _WRITES):
            if _payload_bytes(request) > self.config.max_packet_bytes:
                self.close_connection(connection)
                return
            connection.queue.append((xid, request))
            self.role.submit(connection, session_id, xid, request)
        elif isinstance(request, SyncRequest):
            connection.queue.append((xid, request))
            self.role.submit(connection, session_id, xid, request)
        elif connection.queue:
            connection.queue.append((xid, request))
        else:
            connection.send_response(xid, self._read(session_id, request))

    def _connection_of(self, source: str, packet: ClientPacket | Ping) -> ClientConnection | None:
        """Return the connection that a packet belongs to. If the connection is not open, or packets
        before this one were lost, close it and return None."""
        connection = self.connections.by_id.get(packet.connection_id)
        if connection is None:
            if self._running:
                self.host.send(source, ConnectionClosed(packet.connection_id))
            return None
        if connection.session_id == 0 or not connection.accepts(packet):
            self.close_connection(connection)
            return None
        return connection

    def _read(self, session_id: int, request: SessionRequest) -> ZkResponse:
        if isinstance(request, SetWatches):
            self.watches.set_watches(session_id, request, self.storage.tree)
            return ZkResponse(ZkCode.OK, zxid=self.storage.tree.last_zxid)
        if isinstance(request, GetEphemeralsRequest):
            return self._ephemerals(session_id, request)
        response = self.storage.tree.read(request)
        if isinstance(request, GetDataRequest):
            if request.watch and response.code == 0:
                self.watches.add_data(session_id, request.path)
        elif isinstance(request, ExistsRequest):
            if request.watch and (response.code == 0 or response.code is ZkCode.NONODE):
                self.watches.add_data(session_id, request.path)
        elif isinstance(request, GetChildrenRequest) and request.watch and response.code == 0:
            self.watches.add_children(session_id, request.path)
        return response

    def _ephemerals(self, session_id: int, request: GetEphemeralsRequest) -> ZkResponse:
        tree = self.storage.tree
        if not self.config.supports_get_ephemerals:
            return ZkResponse(ZkCode.UNIMPLEMENTED, zxid=tree.last_zxid)
        prefix = request.prefix
        if prefix.strip() in ("", "/"):
            prefix = ""
        paths = tree.ephemerals_of(session_id)
        found = tuple(path for path in paths if path.startswith(prefix))
        return ZkResponse(ZkCode.OK, children=found, zxid=tree.last_zxid)

    # --- calls from roles

    def finish_session_init(
        self, connection: ClientConnection, session_id: int, timeout_ms: int
    ) -> None:
        """Bind a session that was created or revalidated to a connection, or refuse it as expired
        if the timeout is 0."""
        if not connection.is_open:
            return
        if timeout_ms == 0:
            connection.send_connected(0, 0)
            self._forget_connection(connection)
            return
        previous = self.connections.bind(connection, session_id)
        if previous is not None:
            self.close_connection(previous)
        # Watches belong to the connection: the client arms them again.
        self.watches.remove_session(session_id)
        tell_owner(self.host, session_id, connection.source)
        connection.send_connected(session_id, timeout_ms)

    def on_applied(
        self, txn: Txn, response: ZkResponse, connection: ClientConnection | None, xid: int
    ) -> None:
        """Fire the watches of an applied transaction, then answer it on ``connection``, if any."""
        tree = self.storage.tree
        changes = tree.take_changes()
        session_id, request = txn.session_id, txn.request
        kind = type(request)
        listener = self.host.state_listener
        if listener is not None:
            tell_changes(listener, tree, changes)
            if kind is CreateSession or kind is CloseSession:
                source = "" if connection is None else connection.source
                tell_session(listener, session_id, tree.sessions.get(session_id), source)
        if changes:
            self.watches.fire(changes)
        if isinstance(request, CreateSession):
            if connection is not None:
                self.finish_session_init(connection, session_id, request.session_timeout_ms)
            return
        if connection is not None and connection.is_open:
            self.answer(connection, xid, response)
        if kind is CloseSession and response.code == 0:
            self.watches.remove_session(session_id)
            owner = self.connections.by_session.get(session_id)
            if owner is not None:
                self.close_connection(owner)

    def apply_committed(self, zxid: int) -> None:
        """Apply the logged transactions up to ``zxid``."""
        storage = self.storage
        while (txn := storage.next_unapplied) is not None and txn.zxid <= zxid:
            txn, response = storage.apply_next()
            connection = None
            if txn.origin == self.server_id:
                connection = self.connections.by_id.get(txn.connection_id)
            self.on_applied(txn, response, connection, txn.xid)

    def answer_sync(self, connection: ClientConnection, xid: int) -> None:
        """Answer the sync at the head of the connection's queue."""
        if connection.queue:
            self.answer(connection, xid, self.storage.tree.read(connection.queue[0][1]))

    def answer(self, connection: ClientConnection, xid: int, response: ZkResponse) -> None:
        """Answer the write or sync at the head of the queue, and the reads waiting behind it."""
        queue = connection.queue
        invariant(queue and queue[0][0] == xid, "writes of a session are answered in order")
        queue.popleft()
        connection.send_response(xid, response)
        while queue:
            xid, request = queue[0]
            if isinstance(request, _QUEUED):
                return
            queue.popleft()
            connection.send_response(xid, self._read(connection.session_id, request))

    def close_connection(self, connection: ClientConnection) -> None:
        """Give up a connection and notify the client; its session lives on."""
        if connection.is_open:
            connection.send_closed()
            self._forget_connection(connection)

    def _forget_connection(self, connection: ClientConnection) -> None:
        if self.connections.remove(connection):
            self.watches.remove_session(connection.session_id)

    def _deliver_event(self, session_id: int, event_type: EventType, path: str) -> None:
        connection = self.connections.by_session.get(session_id)
        if connection is not None:
            connection.send_event(event_type, path)

    # --- faults and views

    def expire_session(self, session_id: int) -> None:
        """Expire a session as if its heartbeats had stopped; does nothing unless this server
        serves."""
        if self.role.is_serving and session_id in self.storage.tree.sessions:
            tell_expiry(self.host, session_id, self.storage.tree.sessions)
            self.role.submit(None, session_id, 0, CloseSession())

    def fail_authentication(self, session_id: int) -> None:
        """Notify a connected client that its credentials were refused, and close its connection."""
        connection = self.connections.by_session.get(session_id)
        if connection is not None:
            self.host.send(connection.source, AuthFailed(connection.connection_id))
            self._forget_connection(connection)

    @property
    def is_serving(self) -> bool:
        """True if clients are served: standalone, or part of an active quorum."""
        return self._running and self.role.is_serving

    @property
    def last_zxid(self) -> int:
        """Zxid of the last transaction applied."""
        return self.storage.tree.last_zxid

    def get(self, path: str) -> bytes | None:
        """Return a node's data as applied here; raise ``ZooKeeperError`` (NONODE) if missing."""
        return self.storage.tree.read(GetDataRequest(path)).raise_if_failed().data

    def stat(self, path: str) -> Stat:
        """Return a node's stat as applied here; raise ``ZooKeeperError`` (NONODE) if missing."""
        stat = self.storage.tree.read(ExistsRequest(path)).raise_if_failed().stat
        assert stat is not None
        return stat

    def children(self, path: str) -> list[str]:
        """Return the sorted names of a node's children; raise ``ZooKeeperError`` (NONODE) if the
        node is missing."""
        return list(self.storage.tree.read(GetChildrenRequest(path)).raise_if_failed().children)

    def tree(self) -> dict[str, bytes | None]:
        """Return every path with its data, parents first, siblings sorted, without the nodes that
        ZooKeeper provides."""
        return {
            path: node.data for path, node in self.storage.tree.items() if node.czxid or path == "/"
        }


def _payload_bytes(request: SessionRequest) -> int:
    if isinstance(request, CreateRequest | SetDataRequest):
        return 0 if request.data is None else len(request.data)
    if isinstance(request, MultiRequest):
        return sum(map(_payload_bytes, request.operations))
    return 0
