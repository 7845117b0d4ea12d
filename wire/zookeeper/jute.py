"""ZooKeeper's client protocol: decodes clients' jute frames to the messages of ``zkfake``.

A frame is an int32 length and that many bytes. The first frame of a connection is a connect
request; all others are ``Call``s (xid, opcode, body). ``jute_answers`` holds the other direction. A
frame that cannot be a request raises ``ClientError``. Features of ZooKeeper that ``zkfake`` does
not model need no server: access control lists are accepted and ignored (every node is open to the
world), credentials are accepted unchecked, and other operations are answered UNIMPLEMENTED.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any

from ...protocol.errors import ClientError
from ...zkfake.messages import (
    CheckRequest,
    CloseSession,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    GetEphemeralsRequest,
    MultiRequest,
    SetDataRequest,
    SetWatches,
    SyncRequest,
    ZkCode,
)

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, GET_ACL, SET_ACL, GET_CHILDREN, SYNC = range(1, 10)
PING, GET_CHILDREN2, CHECK, MULTI, CREATE2 = range(11, 16)
AUTH, SET_WATCHES, GET_EPHEMERALS = 100, 101, 103
CLOSE_SESSION = -11

NOT_MODELLED = {
    16: "reconfig",
    17: "checkWatches",
    18: "removeWatches",
    19: "createContainer",
    21: "createTTL",
    22: "multiRead",
    102: "sasl",
    104: "getAllChildrenNumber",
    105: "setWatches2",
    106: "addWatch",
    107: "whoAmI",
}
"""Names of ZooKeeper's operations that are answered UNIMPLEMENTED, by opcode."""

AUTH_XID = -4
PASSWORD_BYTES = 16
_SCHEMES = ("digest", "ip", "world")
_EPHEMERAL, _SEQUENTIAL, _CREATE_FLAGS_MAX = 1, 2, 3

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_CONNECT = Struct(">iqiq")
_CALL = Struct(">ii")
MULTI_HEADER = Struct(">i?i")


class JuteReader:
    """A cursor over one frame; raises ``struct.error`` or ``ClientError`` on incomplete data."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data: bytes = data
        self.at: int = at
        """Position of the next byte to read; 0 <= at <= len(data)."""

    @property
    def remaining(self) -> int:
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
        if self.remaining < 1:
            raise ClientError("truncated before a boolean")
        self.at += 1
        return self.data[self.at - 1] != 0

    def buffer(self) -> bytes | None:
        """Read bytes preceded by their length; a length of -1 gives None."""
        length = self.int32()
        if length == -1:
            return None
        if not 0 <= length <= self.remaining:
            raise ClientError(f"a buffer of {length} bytes with {self.remaining} remaining")
        start = self.at
        self.at = start + length
        return self.data[start : self.at]

    def string(self) -> str:
        """Read UTF-8 text; null gives an empty text, which is no valid path."""
        return (self.buffer() or b"").decode()

    def vector(self, element: Callable[[], Any]) -> tuple[Any, ...]:
        count = self.int32()
        if not -1 <= count <= self.remaining:
            raise ClientError(f"a vector of {count} elements with {self.remaining} bytes remaining")
        return tuple([element() for _ in range(count)])

    def acl(self) -> tuple[int, str, str]:
        """Read permissions, scheme and id of one entry of an access control list."""
        return self.int32(), self.string(), self.string()


def session_password(session_id: int) -> bytes:
    """Return the 16 bytes with which a client proves that it owns a session.

    All servers of an ensemble compute the same password.
    """
    return blake2b(
        _INT64.pack(session_id), digest_size=PASSWORD_BYTES, person=b"zk-session"
    ).digest()


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
        """Raises ``ClientError`` if the frame is not a connect request."""
        reader = JuteReader(frame)
        try:
            version, last_zxid_seen, session_timeout_ms, session_id = reader.unpack(_CONNECT)
            self.last_zxid_seen: int = last_zxid_seen
            self.session_timeout_ms: int = session_timeout_ms
            self.session_id: int = session_id
            self.password: bytes = reader.buffer() or b""
        except (StructError, ClientError):
            raise ClientError(f"a frame of {len(frame)} bytes is not a connect request") from None
        if version != 0:
            raise ClientError(f"protocol version {version} is not supported; only 0 is")
        # Clients before 3.4 do not send the flag and do not expect it in the answer.
        self.offers_read_only: bool = reader.remaining > 0

    @property
    def is_authentic(self) -> bool:
        """True if the password is the session's, or the client asks for a new session."""
        return self.session_id == 0 or self.password == session_password(self.session_id)


class Call:
    """A request of a client after the connect request."""

    __slots__ = ("code", "details", "opcode", "request", "xid")

    def __init__(self, frame: bytes) -> None:
        """Raises ``ClientError`` if the frame is not a request that ZooKeeper knows."""
        self.request: Any = None
        """Request for the server; None for a ping, and for a call answered without the server."""
        self.code: ZkCode = ZkCode.OK
        """Code with which the call is answered without the server."""
        self.details: tuple[int, ...] = ()
        """For a multi the opcodes of its operations, for a setACL the expected version."""
        reader = JuteReader(frame)
        try:
            xid, opcode = reader.unpack(_CALL)
        except StructError:
            raise ClientError(
                f"a request of {len(frame)} bytes is too short for a header"
            ) from None
        self.xid: int = xid
        self.opcode: int = opcode
        if opcode in NOT_MODELLED:
            self.code = ZkCode.UNIMPLEMENTED
            return
        decode = _DECODERS.get(opcode)
        if decode is None:
            raise ClientError(f"opcode {self.opcode} is unknown")
        try:
            decode(self, reader)
        except (ClientError, StructError, UnicodeDecodeError) as error:
            raise ClientError(
                f"a request with opcode {self.opcode} that cannot be decoded: {error}"
            ) from None


# --- requests

Decode = Callable[[Call, JuteReader], None]


def _of(message: Callable[..., Any], *fields: Callable[[JuteReader], Any]) -> Decode:
    """Return the decoder of a request that consists of these fields, one after the other."""

    def decode(call: Call, reader: JuteReader) -> None:
        call.request = message(*[field(reader) for field in fields])

    return decode


def _decode_auth(call: Call, reader: JuteReader) -> None:
    reader.int32()
    scheme = reader.string()
    reader.buffer()
    if scheme not in _SCHEMES:
        call.code = ZkCode.AUTHFAILED


def _decode_create(call: Call, reader: JuteReader) -> None:
    path, data = reader.string(), reader.buffer()
    reader.vector(reader.acl)
    flags = reader.int32()
    if not 0 <= flags <= _CREATE_FLAGS_MAX:
        call.code = ZkCode.UNIMPLEMENTED  # container nodes and nodes with a TTL
        return
    call.request = CreateRequest(path, data, bool(flags & _EPHEMERAL), bool(flags & _SEQUENTIAL))


def _decode_set_acl(call: Call, reader: JuteReader) -> None:
    call.request = ExistsRequest(reader.string())
    reader.vector(reader.acl)
    call.details = (reader.int32(),)


def _decode_set_watches(call: Call, reader: JuteReader) -> None:
    relative_zxid = reader.int64()
    string = reader.string
    call.request = SetWatches(
        relative_zxid, reader.vector(string), reader.vector(string), reader.vector(string)
    )


def _decode_ping(_call: Call, _reader: JuteReader) -> None:
    """Decode nothing: a ping has only a header."""


_string, _buffer = JuteReader.string, JuteReader.buffer
_boolean, _int32 = JuteReader.boolean, JuteReader.int32

_OPERATION_DECODERS: dict[int, Decode] = {
    CREATE: _decode_create,
    DELETE: _of(DeleteRequest, _string, _int32),
    SET_DATA: _of(SetDataRequest, _string, _buffer, _int32),
    CHECK: _of(CheckRequest, _string, _int32),
    CREATE2: _decode_create,
}


def _decode_multi(call: Call, reader: JuteReader) -> None:
    opcodes: list[int] = []
    operations: list[Any] = []
    while True:
        opcode, is_done, _ = reader.unpack(MULTI_HEADER)
        if is_done:
            break
        decode = _OPERATION_DECODERS.get(opcode)
        if decode is None:
            raise ClientError(f"opcode {opcode} is not allowed inside a multi")
        call.request = None
        decode(call, reader)
        opcodes.append(opcode)
        operations.append(call.request)
    is_modelled = call.code is ZkCode.OK
    call.details = tuple(opcodes)
    call.request = MultiRequest(tuple(operations)) if is_modelled else None


_DECODERS: dict[int, Decode] = {
    **_OPERATION_DECODERS,
    EXISTS: _of(ExistsRequest, _string, _boolean),
    GET_DATA: _of(GetDataRequest, _string, _boolean),
    GET_ACL: _of(ExistsRequest, _string),
    SET_ACL: _decode_set_acl,
    GET_CHILDREN: _of(GetChildrenRequest, _string, _boolean),
    SYNC: _of(SyncRequest, _string),
    PING: _decode_ping,
    GET_CHILDREN2: _of(GetChildrenRequest, _string, _boolean),
    MULTI: _decode_multi,
    AUTH: _decode_auth,
    SET_WATCHES: _decode_set_watches,
    GET_EPHEMERALS: _of(GetEphemeralsRequest, _string),
    CLOSE_SESSION: _of(CloseSession),
}
