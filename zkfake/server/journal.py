"""Journal of a server, with which its state outlives the Python process.

``Journal`` is the interface that the storage needs to keep bytes. The rest of this file encodes and
decodes them: entries of the log, each a transaction, a truncation or the promised epochs, and the
snapshot that a log starts from. Replaying the entries over the snapshot restores the storage,
because transactions are deterministic.
"""

from __future__ import annotations

from struct import Struct
from typing import Protocol

from ...protocol.values import message
from ..messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    ExistsRequest,
    MultiRequest,
    SessionRequest,
    SetDataRequest,
)
from ..znode import NodeRecord, TreeSnapshot
from .quorum_messages import Txn


@message
class Truncation:
    """Entry that removes all transactions logged after ``zxid``."""

    zxid: int


@message
class Epochs:
    """The epoch that a server has promised to accept, and the epoch of the history it holds."""

    accepted: int
    current: int


Entry = Txn | Truncation | Epochs


@message
class Saved:
    """A saved snapshot: the tree, and the id of the next session that this server opens."""

    next_session_id: int
    tree: TreeSnapshot


class Journal(Protocol):
    """Stores the log and the latest snapshot of one server; raises ``OSError`` on failure."""

    def append(self, entry: Entry) -> None:
        """Append an entry. If that fails, no part of the entry is left behind."""
        ...

    @property
    def is_due(self) -> bool:
        """True if the log has grown so long that a snapshot should replace it."""
        ...

    def save(self, saved: Saved, entries: list[Entry]) -> None:
        """Replace the contents atomically with a snapshot and the first entries of a new log."""
        ...

    def close(self) -> None: ...


# --- bytes

_TXN_HEADER = Struct(">Bqqq")
_PAIR = Struct(">qq")
_LENGTH = Struct(">i")
_NUMBER = Struct(">q")
_NODE = Struct(">qqqqqqqq")
_TRUNCATION, _EPOCHS, _TRANSACTION = 1, 2, 3

_UNKNOWN, _CREATE, _DELETE, _SET, _CHECK, _MULTI, _OPEN, _CLOSE = range(8)
_EPHEMERAL, _SEQUENTIAL = 1, 2


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry; a transaction loses its origin, connection id and xid."""
    if isinstance(entry, Txn):
        into = bytearray(
            _TXN_HEADER.pack(_TRANSACTION, entry.zxid, entry.time_ms, entry.session_id)
        )
        _put_request(into, entry.request)
        return bytes(into)
    if isinstance(entry, Truncation):
        return bytes((_TRUNCATION,)) + _NUMBER.pack(entry.zxid)
    return bytes((_EPOCHS,)) + _PAIR.pack(entry.accepted, entry.current)


def decode_entry(data: bytes) -> Entry:
    """Return the entry; raise ``ValueError`` for a kind that this version does not know."""
    kind = data[0]
    if kind == _TRANSACTION:
        _, zxid, time_ms, session_id = _TXN_HEADER.unpack_from(data)
        request = _Reader(data, _TXN_HEADER.size).request()
        return Txn(zxid, time_ms, session_id, request)
    if kind == _TRUNCATION:
        return Truncation(_NUMBER.unpack_from(data, 1)[0])
    if kind == _EPOCHS:
        return Epochs(*_PAIR.unpack_from(data, 1))
    raise ValueError(f"unknown kind of journal entry: {kind}")


def encode_saved(saved: Saved) -> bytes:
    tree = saved.tree
    into = bytearray(_PAIR.pack(saved.next_session_id, tree.last_zxid))
    into += _LENGTH.pack(len(tree.sessions))
    for session in tree.sessions:
        into += _PAIR.pack(*session)
    into += _LENGTH.pack(len(tree.nodes))
    for node in tree.nodes:
        _put_bytes(into, _path_bytes(node.path))
        _put_bytes(into, node.data)
        into += _NODE.pack(*node[2:])
    return bytes(into)


def decode_saved(data: bytes) -> Saved:
    reader = _Reader(data, 0)
    next_session_id, last_zxid = reader.number(), reader.number()
    sessions = tuple((reader.number(), reader.number()) for _ in range(reader.length()))
    nodes = []
    for _ in range(reader.length()):
        path = reader.path()
        content = reader.content()
        nodes.append(NodeRecord(path, content, *_NODE.unpack_from(data, reader.position)))
        reader.position += _NODE.size
    return Saved(next_session_id, TreeSnapshot(last_zxid, sessions, tuple(nodes)))


def _path_bytes(path: str) -> bytes:
    # Clients may send malformed paths; these transactions fail, but use up a zxid.
    return path.encode("utf-8", "surrogatepass")


def _put_bytes(into: bytearray, data: bytes | None) -> None:
    if data is None:
        into += _LENGTH.pack(-1)
    else:
        into += _LENGTH.pack(len(data))
        into += data


def _put_request(into: bytearray, request: SessionRequest) -> None:
    if isinstance(request, SetDataRequest):
        into.append(_SET)
        _put_bytes(into, _path_bytes(request.path))
        _put_bytes(into, request.data)
        into += _NUMBER.pack(request.version)
    elif isinstance(request, CreateRequest):
        into.append(_CREATE)
        _put_bytes(into, _path_bytes(request.path))
        _put_bytes(into, request.data)
        into.append(_EPHEMERAL * request.ephemeral | _SEQUENTIAL * request.sequential)
    elif isinstance(request, MultiRequest):
        into.append(_MULTI)
        into += _LENGTH.pack(len(request.operations))
        for operation in request.operations:
            _put_request(into, operation)
    elif isinstance(request, DeleteRequest | CheckRequest):
        into.append(_DELETE if isinstance(request, DeleteRequest) else _CHECK)
        _put_bytes(into, _path_bytes(request.path))
        into += _NUMBER.pack(request.version)
    elif isinstance(request, CreateSession):
        into.append(_OPEN)
        into += _NUMBER.pack(request.session_timeout_ms)
    elif isinstance(request, CloseSession):
        into.append(_CLOSE)
    else:
        into.append(_UNKNOWN)


class _Reader:
    __slots__ = ("_data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self.position = position

    def byte(self) -> int:
        value = self._data[self.position]
        self.position += 1
        return value

    def number(self) -> int:
        (value,) = _NUMBER.unpack_from(self._data, self.position)
        self.position += _NUMBER.size
        return int(value)

    def length(self) -> int:
        (value,) = _LENGTH.unpack_from(self._data, self.position)
        self.position += _LENGTH.size
        return int(value)

    def content(self) -> bytes | None:
        length = self.length()
        if length < 0:
            return None
        start = self.position
        self.position += length
        return self._data[start : self.position]

    def path(self) -> str:
        return (self.content() or b"").decode("utf-8", "surrogatepass")

    def request(self) -> SessionRequest:
        kind = self.byte()
        if kind == _SET:
            return SetDataRequest(self.path(), self.content(), self.number())
        if kind == _CREATE:
            path, data, flags = self.path(), self.content(), self.byte()
            return CreateRequest(path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL))
        if kind == _MULTI:
            operations = tuple(self.request() for _ in range(self.length()))
            return MultiRequest(operations)  # type: ignore[arg-type]
        if kind == _DELETE:
            return DeleteRequest(self.path(), self.number())
        if kind == _CHECK:
            return CheckRequest(self.path(), self.number())
        if kind == _OPEN:
            return CreateSession(self.number())
        if kind == _CLOSE:
            return CloseSession()
        if kind == _UNKNOWN:
            return ExistsRequest("/")  # not a write, so it fails as the original request did
        raise ValueError(f"unknown kind of request in the journal: {kind}")
