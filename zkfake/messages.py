"""Messages between ZooKeeper's clients and servers: codes, requests, responses, packets.

Names follow ZooKeeper's own. The messages between servers are in ``quorum_messages``.
"""

from __future__ import annotations

from enum import Enum, IntEnum

from ..protocol.errors import FakeKafkaError
from ..protocol.values import message

ANY_VERSION = -1
"""Expected version that matches every node (``delete``, ``setData``, ``check``)."""


class ZkCode(IntEnum):
    """Result codes by ZooKeeper's names (``KeeperException.Code``)."""

    OK = 0
    SYSTEMERROR = -1
    RUNTIMEINCONSISTENCY = -2
    DATAINCONSISTENCY = -3
    CONNECTIONLOSS = -4
    MARSHALLINGERROR = -5
    UNIMPLEMENTED = -6
    OPERATIONTIMEOUT = -7
    BADARGUMENTS = -8
    UNKNOWNSESSION = -12
    APIERROR = -100
    NONODE = -101
    NOAUTH = -102
    BADVERSION = -103
    NOCHILDRENFOREPHEMERALS = -108
    NODEEXISTS = -110
    NOTEMPTY = -111
    SESSIONEXPIRED = -112
    INVALIDCALLBACK = -113
    INVALIDACL = -114
    AUTHFAILED = -115
    SESSIONMOVED = -118
    NOTREADONLY = -119
    NOWATCHER = -121
    REQUESTTIMEOUT = -122


class ZooKeeperError(FakeKafkaError):
    """A ZooKeeper request that failed with ``code``; raised by ``ZkResponse.raise_if_failed``."""

    def __init__(self, code: ZkCode, path: str | None = None) -> None:
        super().__init__(f"{code.name}({int(code)})" + (f" for {path}" if path else ""))
        self.code = code
        self.path = path


class EventType(Enum):
    """Kinds of change that fire a watch."""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"


@message
class Stat:
    """Metadata of a znode; times in milliseconds since the Unix epoch."""

    czxid: int
    """Transaction that created the node."""
    mzxid: int
    """Transaction that last set the node's data."""
    pzxid: int
    """Transaction that last added or removed a child."""
    ctime: int
    """Time at which the node was created."""
    mtime: int
    """Time at which the node's data was last set."""
    version: int
    """Number of data changes since creation."""
    cversion: int
    """Number of children added and removed since creation."""
    aversion: int
    """Number of ACL changes; always 0, access control is not modelled."""
    ephemeral_owner: int
    """Session that owns the node, 0 for a persistent one."""
    data_length: int
    """Length of the node's data in bytes."""
    num_children: int
    """Number of children."""


# --- requests


@message
class CreateRequest:
    """Create a node; ``sequential`` appends the parent's 10-digit counter to ``path``."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


@message
class DeleteRequest:
    path: str
    version: int = ANY_VERSION


@message
class ExistsRequest:
    path: str
    watch: bool = False


@message
class GetDataRequest:
    path: str
    watch: bool = False


@message
class SetDataRequest:
    path: str
    data: bytes | None
    version: int = ANY_VERSION


@message
class GetChildrenRequest:
    path: str
    watch: bool = False


@message
class GetEphemeralsRequest:
    """Ask for the ephemeral nodes of the asking session; ZooKeeper 3.6 and later."""

    prefix: str = ""
    """Prefix of the paths to list; empty or ``/`` lists all."""


@message
class CheckRequest:
    """Succeed only if the node has this data version; useful inside ``MultiRequest``."""

    path: str
    version: int


@message
class MultiRequest:
    """Carry out all of the operations (create, delete, set, check) or none."""

    operations: tuple[CreateRequest | DeleteRequest | SetDataRequest | CheckRequest, ...]


@message
class SyncRequest:
    """A request that is answered once the serving server has caught up with the leader."""

    path: str


@message
class SetWatches:
    """Sent by a client that reconnected: re-arm its watches; fire those that missed a change."""

    relative_zxid: int
    """Last transaction the client has seen."""
    data_paths: tuple[str, ...]
    exist_paths: tuple[str, ...]
    child_paths: tuple[str, ...]


@message
class CloseSession:
    """End the session at once."""


@message
class CreateSession:
    """Transaction that opens a session; a server creates it from a ``ConnectRequest``."""

    session_timeout_ms: int


Request = (
    CreateRequest
    | DeleteRequest
    | ExistsRequest
    | GetDataRequest
    | SetDataRequest
    | GetChildrenRequest
    | CheckRequest
    | MultiRequest
    | SyncRequest
)
"""The requests that callers of a client send."""

SessionRequest = Request | GetEphemeralsRequest | SetWatches | CloseSession | CreateSession
"""The requests that travel in packets and transactions."""


@message
class ZkResponse:
    """Answer to any request; which fields are set depends on the request and on ``code``."""

    code: ZkCode
    path: str | None = None
    """Path of the request; for a create, the path created, with its counter if it has one."""
    stat: Stat | None = None
    """Stat after the operation; set by create, exists, get data, set data and get children."""
    data: bytes | None = None
    children: tuple[str, ...] = ()
    """Sorted names without the parent's path; for ``GetEphemeralsRequest`` paths, oldest first."""
    results: tuple[ZkResponse, ...] = ()
    """One result per operation of a multi. If an operation fails, the results before it are OK and
    those after it are RUNTIMEINCONSISTENCY."""
    zxid: int = 0
    """Last transaction applied by the server that answered."""

    @property
    def is_ok(self) -> bool:
        return self.code == 0

    def raise_if_failed(self) -> ZkResponse:
        """Return this response; raise ``ZooKeeperError`` unless its code is OK."""
        if self.code != 0:
            raise ZooKeeperError(self.code, self.path)
        return self


# --- packets between a client and its server
#
# Each connection has its own id and counts its packets from 0 in each direction, so that both sides
# notice when the network loses a packet, and give up the connection, as TCP would.


@message
class ConnectRequest:
    """Open a connection, for a new session (``session_id`` 0) or an existing one."""

    connection_id: int
    session_id: int
    session_timeout_ms: int
    last_zxid_seen: int
    """A server that is behind this zxid refuses, so that a client never sees time run backwards."""


@message
class ConnectResponse:
    """Accept a connection; ``session_id`` 0 says that the session asked for has expired."""

    connection_id: int
    session_id: int
    session_timeout_ms: int
    """The negotiated timeout, 0 when the session has expired."""


@message
class ClientPacket:
    """Client to server: one request."""

    connection_id: int
    number: int
    session_id: int
    xid: int
    request: SessionRequest


@message
class ServerPacket:
    """Server to client: the answer to the request ``xid``."""

    connection_id: int
    number: int
    session_id: int
    xid: int
    response: ZkResponse


@message
class WatchEvent:
    """Server to client: a watch fired."""

    connection_id: int
    number: int
    session_id: int
    type: EventType
    path: str


@message
class Ping:
    """Heartbeat, answered by the same message."""

    connection_id: int
    number: int
    session_id: int


@message
class ConnectionClosed:
    """Sent by a side that has given up the connection, or does not know it."""

    connection_id: int


@message
class AuthFailed:
    """Server to client: the credentials were refused; the connection is closed."""

    connection_id: int
