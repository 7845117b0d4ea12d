"""The server's side of its clients' connections: order of packets, owners of sessions."""

from __future__ import annotations

from collections import deque

from ...protocol.host import Host
from ..messages import (
    ClientPacket,
    ConnectionClosed,
    ConnectResponse,
    EventType,
    Ping,
    ServerPacket,
    SessionRequest,
    WatchEvent,
    ZkResponse,
)


class ClientConnection:
    """An open connection. Packets are numbered; a gap means that the network lost a packet."""

    __slots__ = ("_host", "_sent", "connection_id", "is_open", "queue", "received", "session_id",
                 "source")  # fmt: skip

    def __init__(self, host: Host, source: str, connection_id: int) -> None:
        self._host = host
        self.source: str = source
        """Name of the client's node."""
        self.connection_id: int = connection_id
        self.session_id: int = 0
        """Id of the session; 0 until the session is created or found alive."""
        self.is_open: bool = True
        self.received: int = 0
        """Number that the next packet must have."""
        self._sent = 0
        self.queue: deque[tuple[int, SessionRequest]] = deque()
        """Xids and requests not answered yet: a write in progress and all requests behind it."""

    def accepts(self, packet: ClientPacket | Ping) -> bool:
        """Return whether this is the next packet of the connection, and count it if so."""
        if packet.number != self.received:
            return False
        self.received += 1
        return True

    def send_response(self, xid: int, response: ZkResponse) -> None:
        number = self._sent
        self._sent = number + 1
        self._host.send(
            self.source, ServerPacket(self.connection_id, number, self.session_id, xid, response)
        )

    def send_event(self, event_type: EventType, path: str) -> None:
        number = self._sent
        self._sent = number + 1
        self._host.send(
            self.source, WatchEvent(self.connection_id, number, self.session_id, event_type, path)
        )

    def send_ping(self) -> None:
        number = self._sent
        self._sent = number + 1
        self._host.send(self.source, Ping(self.connection_id, number, self.session_id))

    def send_connected(self, session_id: int, session_timeout_ms: int) -> None:
        self.session_id = session_id
        self._host.send(
            self.source, ConnectResponse(self.connection_id, session_id, session_timeout_ms)
        )

    def send_closed(self) -> None:
        self._host.send(self.source, ConnectionClosed(self.connection_id))


class ConnectionTable:
    """The open connections of one server, by connection id and by session."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.by_id: dict[int, ClientConnection] = {}
        self.by_session: dict[int, ClientConnection] = {}

    def open(self, source: str, connection_id: int) -> ClientConnection:
        connection = ClientConnection(self._host, source, connection_id)
        self.by_id[connection_id] = connection
        return connection

    def bind(self, connection: ClientConnection, session_id: int) -> ClientConnection | None:
        """Bind a session to this connection; return the other one that had it before, if any."""
        previous = self.by_session.get(session_id)
        self.by_session[session_id] = connection
        connection.session_id = session_id
        return previous if previous is not connection else None

    def remove(self, connection: ClientConnection) -> bool:
        """Remove a connection; return True if its session now has no connection to this server."""
        connection.is_open = False
        connection.queue.clear()
        self.by_id.pop(connection.connection_id, None)
        if self.by_session.get(connection.session_id) is connection:
            del self.by_session[connection.session_id]
            return True
        return False

    def from_source(self, source: str) -> list[ClientConnection]:
        return [c for c in self.by_id.values() if c.source == source]
