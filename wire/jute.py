"""ZooKeeper's client protocol: jute frames on one side, the messages of ``zkfake`` on the other.

A frame is an int32 length and that many bytes. The first frame of a connection is a connect
request, answered by a connect response; all others are ``Call``s (xid, opcode, body), answered by
replies (xid, zxid, error code, body unless failed). A frame that cannot be a request raises
``ClientError``. What ZooKeeper would carry out and ``zkfake`` does not model is answered here:
access control lists are accepted and forgotten (everything is open to the world), credentials are
believed, and operations of other kinds are UNIMPLEMENTED.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

from ..protocol.errors import ClientError
from ..zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    SetWatches,
    Stat,
    SyncRequest,
    ZkCode,
    ZkResponse,
)

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
PING, GET_CHILDREN2, CHECK, MULTI, CREATE2 = range(11, 16)
AUTH, SET_WATCHES = 100, 101
CLOSE_SESSION = -11
ERROR = -1
"""Opcode that stands for a failed operation in the answer to a multi."""

NOT_MODELLED = {
    16: "reconfig",
    17: "checkWatches",
    18: "removeWatches",
    19: "createContainer",
    21: "createTTL",
    22: "multiRead",
    102: "sasl",
    103: "getEphemerals",
    104: "getAllChildrenNumber",
    105: "setWatches2",
    106: "addWatch",
    107: "whoAmI",
}
"""Opcodes of ZooKeeper that are answered UNIMPLEMENTED."""

EVENT_XID = -1
AUTH_XID = -4
PASSWORD_BYTES = 16
_NO_PASSWORD = bytes(PASSWORD_BYTES)
_SCHEMES = ("digest", "ip", "world")
_SYNC_CONNECTED = 3
_EPHEMERAL, _SEQUENTIAL, _CREATE_FLAGS_MAX = 1, 2, 3

_EVENT_TYPES = {
    EventType.NODE_CREATED: 1,
    EventType.NODE_DELETED: 2,
    EventType.NODE_DATA_CHANGED: 3,
    EventType.NODE_CHILDREN_CHANGED: 4,
}

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CONNECT = Struct(">iqiq")
_CONNECTED = Struct(">iiiq")
_CALL = Struct(">ii")
_REPLY = Struct(">iiqi")
_STAT = Struct(">qqqqiiiqiiq")
_MULTI = Struct(">i?i")
_EVENT = Struct(">ii")
_NULL = _INT32.pack(-1)
_OPEN_ACL = b"".join(
    (_INT32.pack(1), _INT32.pack(31), b"\0\0\0\5world", b"\0\0\0\6anyone")
)  # one entry: every permission for everyone


class Reader:
    """A cursor over one frame. Reading beyond its end raises ``struct.error``."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        """0 <= at <= len(data)."""

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def unpack(self, layout: Struct) -> tuple[Any, ...]:
        values = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return values

    def int32(self) -> int:
        return self.unpack(_INT32)[0]  # type: ignore[no-any-return]

    def int64(self) -> int:
        return self.unpack(_INT64)[0]  # type: ignore[no-any-return]

    def boolean(self) -> bool:
        if self.left < 1:
            raise ClientError("it ends before a boolean")
        self.at += 1
        return self.data[self.at - 1] != 0

    def buffer(self) -> bytes | None:
        """Bytes with their length before them; length -1 is None."""
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= self.left:
            raise ClientError(f"a buffer of {length} bytes in {self.left}")
        start = self.at
        self.at = start + length
        return self.data[start : self.at]

    def string(self) -> str:
        """UTF-8 text; null is read as empty, which no path may be."""
        return (self.buffer() or b"").decode()

    def vector(self, element: Callable[[], Any]) -> tuple[Any, ...]:
        count = self.int32()
        if not -1 <= count <= self.left:
            raise ClientError(f"a vector of {count} elements in {self.left} bytes")
        return tuple([element() for _ in range(count)])

    def acl(self) -> tuple[int, str, str]:
        """Permissions, scheme and id of one entry of an access control list."""
        return self.int32(), self.string(), self.string()


class Connect:
    """The first frame of a connection, as the client sent it."""

    __slots__ = (
        "last_zxid_seen",
        "offers_read_only",
        "password",
        "session_id",
        "session_timeout_ms",
    )

    def __init__(self, frame: bytes) -> None:
        """Raises ``ClientError`` when the frame is not a connect request."""
        reader = Reader(frame)
        try:
            version, self.last_zxid_seen, self.session_timeout_ms, self.session_id = reader.unpack(
                _CONNECT
            )
            self.password = reader.buffer() or b""
        except (StructError, ClientError):
            raise ClientError(f"{len(frame)} bytes that are no connect request") from None
        if version != 0:
            raise ClientError(f"protocol version {version}; only 0 is known")
        # Clients before 3.4 do not send the flag and do not expect it in the answer.
        self.offers_read_only = reader.left > 0

    @property
    def is_authentic(self) -> bool:
        """Whether the password is that of the session, if one is asked for."""
        return self.session_id == 0 or self.password == session_password(self.session_id)


class Call:
    """One request of a client after the connect request."""

    __slots__ = ("code", "details", "opcode", "request", "xid")

    def __init__(self, frame: bytes) -> None:
        """Raises ``ClientError`` when the frame is no request that ZooKeeper knows."""
        self.request: Any = None
        """For the server; None for a ping and for what is answered here, with ``code``."""
        self.code = ZkCode.OK
        self.details: tuple[int, ...] = ()
        """Of a multi the opcodes of its operations, of a setACL the expected version."""
        reader = Reader(frame)
        try:
            self.xid, self.opcode = reader.unpack(_CALL)
        except StructError:
            raise ClientError(f"a request of {len(frame)} bytes") from None
        if self.opcode in NOT_MODELLED:
            self.code = ZkCode.UNIMPLEMENTED
            return
        decode = _DECODERS.get(self.opcode)
        if decode is None:
            raise ClientError(f"opcode {self.opcode} is unknown")
        try:
            decode(self, reader)
        except (ClientError, StructError, UnicodeDecodeError) as error:
            raise ClientError(
                f"a request with opcode {self.opcode} that cannot be decoded: {error}"
            ) from None


# --- requests


def _decode_auth(call: Call, reader: Reader) -> None:
    reader.int32()
    scheme = reader.string()
    reader.buffer()
    if scheme not in _SCHEMES:
        call.code = ZkCode.AUTHFAILED


def _decode_create(call: Call, reader: Reader) -> None:
    path, data = reader.string(), reader.buffer()
    reader.vector(reader.acl)
    flags = reader.int32()
    if not 0 <= flags <= _CREATE_FLAGS_MAX:
        call.code = ZkCode.UNIMPLEMENTED  # containers and nodes that expire
        return
    call.request = CreateRequest(path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL))


def _decode_delete(call: Call, reader: Reader) -> None:
    call.request = DeleteRequest(reader.string(), reader.int32())


def _decode_set_data(call: Call, reader: Reader) -> None:
    call.request = SetDataRequest(reader.string(), reader.buffer(), reader.int32())


def _decode_check(call: Call, reader: Reader) -> None:
    call.request = CheckRequest(reader.string(), reader.int32())


def _decode_exists(call: Call, reader: Reader) -> None:
    call.request = ExistsRequest(reader.string(), reader.boolean())


def _decode_get_data(call: Call, reader: Reader) -> None:
    call.request = GetDataRequest(reader.string(), reader.boolean())


def _decode_get_children(call: Call, reader: Reader) -> None:
    call.request = GetChildrenRequest(reader.string(), reader.boolean())


def _decode_get_acl(call: Call, reader: Reader) -> None:
    call.request = ExistsRequest(reader.string())


def _decode_set_acl(call: Call, reader: Reader) -> None:
    call.request = ExistsRequest(reader.string())
    reader.vector(reader.acl)
    call.details = (reader.int32(),)


def _decode_sync(call: Call, reader: Reader) -> None:
    call.request = SyncRequest(reader.string())


def _decode_set_watches(call: Call, reader: Reader) -> None:
    relative_zxid = reader.int64()
    string = reader.string
    call.request = SetWatches(
        relative_zxid, reader.vector(string), reader.vector(string), reader.vector(string)
    )


def _decode_close_session(call: Call, _reader: Reader) -> None:
    call.request = CloseSession()


def _decode_ping(_call: Call, _reader: Reader) -> None:
    """A ping is nothing but its header."""


_OPERATION_DECODERS: dict[int, Callable[[Call, Reader], None]] = {
    CREATE: _decode_create,
    DELETE: _decode_delete,
    SET_DATA: _decode_set_data,
    CHECK: _decode_check,
    CREATE2: _decode_create,
}


def _decode_multi(call: Call, reader: Reader) -> None:
    opcodes: list[int] = []
    operations: list[Any] = []
    while True:
        opcode, is_done, _ = reader.unpack(_MULTI)
        if is_done:
            break
        decode = _OPERATION_DECODERS.get(opcode)
        if decode is None:
            raise ClientError(f"opcode {opcode} inside a multi")
        call.request = None
        decode(call, reader)
        opcodes.append(opcode)
        operations.append(call.request)
    is_modelled = call.code is ZkCode.OK
    call.details = tuple(opcodes)
    call.request = MultiRequest(tuple(operations)) if is_modelled else None


_DECODERS: dict[int, Callable[[Call, Reader], None]] = {
    **_OPERATION_DECODERS,
    EXISTS: _decode_exists,
    GET_DATA: _decode_get_data,
    GET_ACL: _decode_get_acl,
    SET_ACL: _decode_set_acl,
    GET_CHILDREN: _decode_get_children,
    SYNC: _decode_sync,
    PING: _decode_ping,
    GET_CHILDREN2: _decode_get_children,
    MULTI: _decode_multi,
    AUTH: _decode_auth,
    SET_WATCHES: _decode_set_watches,
    CLOSE_SESSION: _decode_close_session,
}


# --- answers: whole frames, with their length


def session_password(session_id: int) -> bytes:
    """The 16 bytes that prove that a client owns a session; the same at every server."""
    return blake2b(
        _INT64.pack(session_id), digest_size=PASSWORD_BYTES, person=b"zk-session"
    ).digest()


def encode_connected(connect: Connect, session_id: int, session_timeout_ms: int) -> bytes:
    """The connect response; session id 0 says that the session asked for has expired."""
    password = session_password(session_id) if session_id else _NO_PASSWORD
    read_only = b"\0" if connect.offers_read_only else b""
    size = _CONNECTED.size + PASSWORD_BYTES + len(read_only)
    head = _CONNECTED.pack(size, 0, session_timeout_ms, session_id)
    return head + _INT32.pack(PASSWORD_BYTES) + password + read_only


def encode_reply(xid: int, zxid: int, code: int, body: bytes = b"") -> bytes:
    """A reply header with its body."""
    return _REPLY.pack(_REPLY.size - 4 + len(body), xid, zxid, code) + body


def encode_event(event_type: EventType, path: str) -> bytes:
    """A watch that fired."""
    body = _EVENT.pack(_EVENT_TYPES[event_type], _SYNC_CONNECTED) + _string(path)
    return encode_reply(EVENT_XID, -1, 0, body)


def encode_response(call: Call, response: ZkResponse) -> bytes:
    """The answer of a server to a call; a failed one has no body, but for a multi, whose
    operations carry their own codes."""
    code: int = response.code
    if call.opcode == MULTI:
        # Without results nobody looked at the operations: the session has ended.
        if code and not response.results:
            return encode_reply(call.xid, response.zxid, code)
        return encode_reply(call.xid, response.zxid, 0, _multi_body(call, response))
    if code:
        return encode_reply(call.xid, response.zxid, code)
    if call.opcode == SET_ACL and response.stat is not None:
        expected = call.details[0]
        if expected not in (-1, response.stat.aversion):
            return encode_reply(call.xid, response.zxid, ZkCode.BADVERSION)
    return encode_reply(call.xid, response.zxid, 0, _body(call.opcode, response))


def _buffer(data: bytes | None) -> bytes:
    return _NULL if data is None else _INT32.pack(len(data)) + data


def _string(text: str | None) -> bytes:
    return _NULL if text is None else _buffer(text.encode())


def _stat(stat: Stat | None) -> bytes:
    assert stat is not None
    return _STAT.pack(
        stat.czxid,
        stat.mzxid,
        stat.ctime,
        stat.mtime,
        stat.version,
        stat.cversion,
        stat.aversion,
        stat.ephemeral_owner,
        stat.data_length,
        stat.num_children,
        stat.pzxid,
    )


def _body(opcode: int, response: ZkResponse) -> bytes:
    """The body of a successful answer."""
    if opcode in (CREATE, SYNC):
        return _string(response.path)
    if opcode == CREATE2:
        return _string(response.path) + _stat(response.stat)
    if opcode in (EXISTS, SET_DATA, SET_ACL):
        return _stat(response.stat)
    if opcode == GET_DATA:
        return _buffer(response.data) + _stat(response.stat)
    if opcode == GET_ACL:
        return _OPEN_ACL + _stat(response.stat)
    if opcode in (GET_CHILDREN, GET_CHILDREN2):
        names = b"".join(map(_string, response.children))
        stat = _stat(response.stat) if opcode == GET_CHILDREN2 else b""
        return _INT32.pack(len(response.children)) + names + stat
    return b""


def _multi_body(call: Call, response: ZkResponse) -> bytes:
    parts: list[bytes] = []
    for opcode, result in zip(call.details, response.results, strict=True):
        if response.code:
            parts += (_MULTI.pack(ERROR, False, result.code), _INT32.pack(result.code))
        else:
            parts += (_MULTI.pack(opcode, False, 0), _body(opcode, result))
    parts.append(_MULTI.pack(-1, True, -1))
    return b"".join(parts)
