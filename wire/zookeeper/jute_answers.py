"""ZooKeeper's client protocol: encodes servers' messages of ``zkfake`` as jute frames.

A connect request is answered with a connect response, every other call with a reply: xid, zxid,
error code, and a body unless the call failed. A watch event is a reply with an xid of its own.
"""

from __future__ import annotations

from struct import Struct

from ...zkfake.messages import EventType, Stat, ZkCode, ZkResponse
from .jute import (
    CREATE,
    CREATE2,
    EXISTS,
    GET_ACL,
    GET_CHILDREN,
    GET_CHILDREN2,
    GET_DATA,
    GET_EPHEMERALS,
    MULTI,
    MULTI_HEADER,
    PASSWORD_BYTES,
    SET_ACL,
    SET_DATA,
    SYNC,
    Call,
    Connect,
    session_password,
)

EVENT_XID = -1
ERROR = -1
"""Opcode of a failed operation in the answer to a multi."""

_SYNC_CONNECTED = 3
_NO_PASSWORD = bytes(PASSWORD_BYTES)
_INT32 = Struct(">i")
_CONNECTED = Struct(">iiiq")
_REPLY = Struct(">iiqi")
_STAT = Struct(">qqqqiiiqiiq")
_EVENT = Struct(">ii")
_NULL = _INT32.pack(-1)
_OPEN_ACL = b"".join(
    (_INT32.pack(1), _INT32.pack(31), b"\0\0\0\5world", b"\0\0\0\6anyone")
)  # a single entry: all permissions for all clients

_EVENT_TYPES = {
    EventType.NODE_CREATED: 1,
    EventType.NODE_DELETED: 2,
    EventType.NODE_DATA_CHANGED: 3,
    EventType.NODE_CHILDREN_CHANGED: 4,
}


def encode_connected(connect: Connect, session_id: int, session_timeout_ms: int) -> bytes:
    """Return the connect response; a session id of 0 says that the requested session expired."""
    password = session_password(session_id) if session_id else _NO_PASSWORD
    read_only = b"\0" if connect.offers_read_only else b""
    size = _CONNECTED.size + PASSWORD_BYTES + len(read_only)
    head = _CONNECTED.pack(size, 0, session_timeout_ms, session_id)
    return head + _INT32.pack(PASSWORD_BYTES) + password + read_only


def encode_reply(xid: int, zxid: int, code: int, body: bytes = b"") -> bytes:
    """Return a reply: its header and body."""
    return _REPLY.pack(_REPLY.size - 4 + len(body), xid, zxid, code) + body


def encode_event(event_type: EventType, path: str) -> bytes:
    """Return the event of a watch that fired."""
    body = _EVENT.pack(_EVENT_TYPES[event_type], _SYNC_CONNECTED) + _string(path)
    return encode_reply(EVENT_XID, -1, 0, body)


def encode_response(call: Call, response: ZkResponse) -> bytes:
    """Return a server's answer to a call. The answer to a failed call has no body, except for a
    multi, whose operations have codes of their own."""
    code: int = response.code
    if call.opcode == MULTI:
        # Without results no operation was tried: the session has ended.
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
    """Return the body of a successful answer."""
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
    if opcode in (GET_CHILDREN, GET_CHILDREN2, GET_EPHEMERALS):
        names = b"".join(map(_string, response.children))
        stat = _stat(response.stat) if opcode == GET_CHILDREN2 else b""
        return _INT32.pack(len(response.children)) + names + stat
    return b""


def _multi_body(call: Call, response: ZkResponse) -> bytes:
    parts: list[bytes] = []
    for opcode, result in zip(call.details, response.results, strict=True):
        if response.code:
            parts += (MULTI_HEADER.pack(ERROR, False, result.code), _INT32.pack(result.code))
        else:
            parts += (MULTI_HEADER.pack(opcode, False, 0), _body(opcode, result))
    parts.append(MULTI_HEADER.pack(-1, True, -1))
    return b"".join(parts)
