"""Frames compared with kazoo's serializers, in both directions."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from fakekafka.protocol.errors import ClientError
from fakekafka.wire.zookeeper.jute import NOT_MODELLED, Call, Connect, session_password
from fakekafka.wire.zookeeper.jute_answers import (
    encode_connected,
    encode_event,
    encode_reply,
    encode_response,
)
from fakekafka.zkfake import messages as zk
from fakekafka.zkfake.messages import Stat, ZkCode, ZkResponse
from hypothesis import given
from hypothesis import strategies as st
from kazoo import exceptions as kx
from kazoo.protocol import serialization as kz
from kazoo.protocol.states import ZnodeStat
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

ACL = OPEN_ACL_UNSAFE
STAT = Stat(1, 2, 3, 4, 5, 6, 7, 8, 1 << 60, 9, 10)
KAZOO_STAT = ZnodeStat(1, 2, 4, 5, 6, 7, 8, 1 << 60, 9, 10, 3)


def call_of(request: Any, xid: int = 7) -> Call:
    """Read the frame that kazoo makes of a request."""
    return Call(struct.pack(">ii", xid, request.type) + bytes(request.serialize()))


def reply_of(call: Call, response: ZkResponse) -> tuple[kz.ReplyHeader, bytes]:
    """Return header and body as kazoo reads them."""
    return read_reply(encode_response(call, response))


def read_reply(frame: bytes) -> tuple[kz.ReplyHeader, bytes]:
    (size,) = struct.unpack_from(">i", frame)
    assert size == len(frame) - 4
    header, at = kz.ReplyHeader.deserialize(frame, 4)
    return header, frame[at:]


REQUESTS = [
    (kz.Create("/a", b"x", ACL, 0), zk.CreateRequest("/a", b"x")),
    (kz.Create("/a", None, ACL, 1), zk.CreateRequest("/a", None, ephemeral=True)),
    (kz.Create("/a-", b"", ACL, 2), zk.CreateRequest("/a-", b"", sequential=True)),
    (kz.Create2("/ä", b"", ACL, 3), zk.CreateRequest("/ä", b"", ephemeral=True, sequential=True)),
    (kz.Create("/a", b"", [make_digest_acl("u", "p", all=True)], 0), zk.CreateRequest("/a", b"")),
    (kz.Delete("/a", 3), zk.DeleteRequest("/a", 3)),
    (kz.Delete("", -1), zk.DeleteRequest("", -1)),
    (kz.Exists("/a", None), zk.ExistsRequest("/a")),
    (kz.Exists("/a", print), zk.ExistsRequest("/a", watch=True)),
    (kz.GetData("/a", print), zk.GetDataRequest("/a", watch=True)),
    (kz.SetData("/a", b"x", -1), zk.SetDataRequest("/a", b"x", -1)),
    (kz.GetACL("/a"), zk.ExistsRequest("/a")),
    (kz.SetACL("/a", ACL, 2), zk.ExistsRequest("/a")),
    (kz.GetChildren("/", None), zk.GetChildrenRequest("/")),
    (kz.GetChildren2("/", print), zk.GetChildrenRequest("/", watch=True)),
    (kz.Sync("/"), zk.SyncRequest("/")),
    (kz.CheckVersion("/a", 4), zk.CheckRequest("/a", 4)),
    (kz.CloseInstance, zk.CloseSession()),
    (
        kz.Transaction([kz.Create("/a", b"", ACL, 1), kz.Delete("/b", 1), kz.CheckVersion("/", 0)]),
        zk.MultiRequest(
            (zk.CreateRequest("/a", b"", True), zk.DeleteRequest("/b", 1), zk.CheckRequest("/", 0))
        ),
    ),
    (kz.Transaction([]), zk.MultiRequest(())),
]


@pytest.mark.parametrize(("sent", "expected"), REQUESTS, ids=lambda value: type(value).__name__)
def test_a_request_of_kazoo_is_decoded(sent: Any, expected: Any) -> None:
    """The call has its xid and opcode; access control lists are read and dropped."""
    call = call_of(sent)
    assert (call.xid, call.opcode, call.request) == (7, sent.type, expected)
    assert call.code is ZkCode.OK


def test_set_watches_carries_three_lists_of_paths() -> None:
    """SetWatches has three lists of paths, and null lists are empty."""

    def strings(*paths: str) -> bytes:
        return struct.pack(">i", len(paths)) + b"".join(map(kz.write_string, paths))

    body = struct.pack(">iiq", -8, 101, 99) + strings("/d", "/e") + strings("/x")
    call = Call(body + struct.pack(">i", -1))
    assert call.request == zk.SetWatches(99, ("/d", "/e"), ("/x",), ())
    assert call.xid == -8


@pytest.mark.parametrize(
    ("sent", "response", "expected"),
    [
        (kz.Create("/a", b"", ACL, 0), ZkResponse(ZkCode.OK, "/a", STAT), "/a"),
        (kz.Create2("/a", b"", ACL, 0), ZkResponse(ZkCode.OK, "/a", STAT), ("/a", KAZOO_STAT)),
        (kz.Delete("/a", 1), ZkResponse(ZkCode.OK, "/a"), True),
        (kz.Exists("/a", None), ZkResponse(ZkCode.OK, "/a", STAT), KAZOO_STAT),
        (kz.GetData("/a", None), ZkResponse(ZkCode.OK, "/a", STAT, b"x"), (b"x", KAZOO_STAT)),
        (kz.GetData("/a", None), ZkResponse(ZkCode.OK, "/a", STAT, None), (None, KAZOO_STAT)),
        (kz.SetData("/a", b"", 1), ZkResponse(ZkCode.OK, "/a", STAT), KAZOO_STAT),
        (kz.GetACL("/a"), ZkResponse(ZkCode.OK, "/a", STAT), (ACL, KAZOO_STAT)),
        (kz.SetACL("/a", ACL, -1), ZkResponse(ZkCode.OK, "/a", STAT), KAZOO_STAT),
        (kz.SetACL("/a", ACL, 8), ZkResponse(ZkCode.OK, "/a", STAT), KAZOO_STAT),
        (
            kz.GetChildren("/", None),
            ZkResponse(ZkCode.OK, "/", STAT, children=("a", "ß")),
            ["a", "ß"],
        ),
        (
            kz.GetChildren2("/", None),
            ZkResponse(ZkCode.OK, "/", STAT, children=("a",)),
            (["a"], KAZOO_STAT),
        ),
        (kz.Sync("/a"), ZkResponse(ZkCode.OK, "/a"), "/a"),
        (
            kz.Transaction(
                [
                    kz.Create("/a", b"", ACL, 0),
                    kz.SetData("/a", b"", 0),
                    kz.CheckVersion("/a", 1),
                    kz.Delete("/a", 1),
                ]
            ),
            ZkResponse(
                ZkCode.OK,
                results=(
                    ZkResponse(ZkCode.OK, "/a", STAT),
                    ZkResponse(ZkCode.OK, "/a", STAT),
                    ZkResponse(ZkCode.OK, "/a"),
                    ZkResponse(ZkCode.OK, "/a"),
                ),
            ),
            ["/a", KAZOO_STAT, True, True],
        ),
        (kz.Transaction([]), ZkResponse(ZkCode.OK), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_kazoo_reads_the_answer_to_each_request(sent: Any, response: Any, expected: Any) -> None:
    """Every field of the stat is in its place."""
    header, body = reply_of(call_of(sent), response)
    assert (header.xid, header.err) == (7, 0)
    assert sent.deserialize(body, 0) == expected


@pytest.mark.parametrize("code", [code for code in ZkCode if code])
def test_a_failed_request_is_answered_by_its_code_without_a_body(code: Any) -> None:
    """The reply to a failed request has the code and the server's last zxid, and no body."""
    header, body = reply_of(call_of(kz.Exists("/a", None)), ZkResponse(code, "/a", zxid=1 << 40))
    assert header == (7, 1 << 40, code)
    assert body == b""


def test_a_failed_transaction_has_a_result_for_each_operation() -> None:
    """A failed transaction's reply itself has no error, as in ZooKeeper, but its results have."""
    sent = kz.Transaction([kz.Delete("/a", 1), kz.Delete("/b", 1), kz.Delete("/c", 1)])
    codes = (ZkCode.OK, ZkCode.BADVERSION, ZkCode.RUNTIMEINCONSISTENCY)
    results = tuple(ZkResponse(code) for code in codes)
    header, body = reply_of(call_of(sent), ZkResponse(ZkCode.BADVERSION, results=results))
    assert header.err == 0
    assert [type(result) for result in sent.deserialize(body, 0)] == [
        kx.RolledBackError,
        kx.BadVersionError,
        kx.RuntimeInconsistency,
    ]


def test_a_transaction_of_an_ended_session_fails_as_a_whole() -> None:
    """The reply to a transaction of an expired session has no results of single operations."""
    call = call_of(kz.Transaction([kz.Delete("/a", 1)]))
    header, body = reply_of(call, ZkResponse(ZkCode.SESSIONEXPIRED))
    assert (header.err, body) == (ZkCode.SESSIONEXPIRED, b"")


def test_an_access_control_list_of_another_version_is_not_set() -> None:
    """The version of every list is that of the stat, which never changes."""
    call = call_of(kz.SetACL("/a", ACL, 3))
    header, body = reply_of(call, ZkResponse(ZkCode.OK, "/a", STAT))
    assert (header.err, body) == (ZkCode.BADVERSION, b"")


@pytest.mark.parametrize("event_type", zk.EventType)
def test_kazoo_reads_a_watch_event(event_type: Any) -> None:
    """The event has type, connected state and path, and the xid -1."""
    header, body = read_reply(encode_event(event_type, "/a"))
    number = {"Created": 1, "Deleted": 2, "DataChanged": 3, "ChildrenChanged": 4}
    expected = number[event_type.value.removeprefix("Node")]
    assert header == (-1, -1, 0)
    assert kz.Watch.deserialize(body, 0)[0] == (expected, 3, "/a")


def test_a_new_session_is_sent_with_its_password() -> None:
    """Only a client that knows the password gets the session back."""
    fresh = Connect(kz.Connect(0, 5, 6000, 0, bytes(16), False).serialize())
    assert (fresh.last_zxid_seen, fresh.session_timeout_ms, fresh.session_id) == (5, 6000, 0)
    assert fresh.is_authentic
    answer, _ = kz.Connect.deserialize(encode_connected(fresh, 42, 4000)[4:], 0)
    assert (answer.session_id, answer.time_out, answer.read_only) == (42, 4000, False)
    assert answer.passwd == session_password(42) != session_password(43)
    assert len(answer.passwd) == 16
    for password, is_authentic in ((answer.passwd, True), (bytes(16), False), (b"", False)):
        back = Connect(kz.Connect(0, 5, 6000, 42, password, False).serialize())
        assert back.is_authentic is is_authentic


def test_an_expired_session_is_answered_by_zeros() -> None:
    """Clients recognize an expired session by the timeout of 0."""
    connect = Connect(kz.Connect(0, 5, 6000, 42, bytes(16), False).serialize())
    answer, _ = kz.Connect.deserialize(encode_connected(connect, 0, 0)[4:], 0)
    assert (answer.session_id, answer.time_out, answer.passwd) == (0, 0, bytes(16))


def test_a_client_that_sent_no_read_only_flag_gets_none() -> None:
    """The flag at the end of the connect response is there only if the request had one."""
    with_flag = kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize()
    long = encode_connected(Connect(with_flag), 42, 4000)
    short = encode_connected(Connect(with_flag[:-1]), 42, 4000)
    assert len(long) == len(short) + 1
    assert struct.unpack_from(">i", short) == (len(short) - 4,)


@pytest.mark.parametrize("opcode", NOT_MODELLED)
def test_an_operation_that_is_not_modelled_is_unimplemented(opcode: Any) -> None:
    """A request of an unsupported operation is not parsed beyond its header."""
    call = Call(struct.pack(">ii", 3, opcode) + b"whatever")
    assert (call.code, call.request, call.xid) == (ZkCode.UNIMPLEMENTED, None, 3)


@pytest.mark.parametrize("flags", [4, 5, 6, -1, 99])
def test_containers_and_expiring_nodes_are_unimplemented(flags: int) -> None:
    """Containers and expiring nodes are unimplemented both alone and in a transaction."""
    create = kz.Create("/a", b"", ACL, flags)
    for request in (create, kz.Transaction([create, kz.Delete("/b", 1)])):
        call = call_of(request)
        assert (call.code, call.request) == (ZkCode.UNIMPLEMENTED, None)


@pytest.mark.parametrize(
    ("scheme", "code"),
    [("digest", ZkCode.OK), ("world", ZkCode.OK), ("ip", ZkCode.OK), ("magic", ZkCode.AUTHFAILED)],
)
def test_credentials_of_known_schemes_are_accepted(scheme: str, code: ZkCode) -> None:
    """Credentials are answered without asking the server."""
    call = call_of(kz.Auth(0, scheme, "user:password"), -4)
    assert (call.code, call.request) == (code, None)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "a request of 0 bytes is too short for a header"),
        (b"\0\0\0\1", "a request of 4 bytes is too short for a header"),
        (struct.pack(">ii", 1, 77), "opcode 77 is unknown"),
        (struct.pack(">ii", 1, 3), "cannot be decoded"),
        (struct.pack(">iii", 1, 3, 50) + b"/a", "a buffer of 50 bytes with 2 remaining"),
        (struct.pack(">iii", 1, 3, -2), "a buffer of -2 bytes"),
        (struct.pack(">iii", 1, 3, 2) + b"/a", "truncated before a boolean"),
        (struct.pack(">iii", 1, 3, 2) + b"\xff\xfe\0", "utf-8"),
        (struct.pack(">iiiii", 1, 1, -1, -1, 2**31 - 1), "a vector of 2147483647 elements"),
        (struct.pack(">iii?i", 1, 14, 3, False, -1), "opcode 3 is not allowed inside a multi"),
        (struct.pack(">ii", 1, 14), "cannot be decoded"),
    ],
)
def test_nonsense_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    """All malformed requests are reported by the same error."""
    with pytest.raises(ClientError, match=reason):
        Call(body)


@pytest.mark.parametrize("frame", [b"", b"x" * 27, b"x" * 60, struct.pack(">iqiqi", 1, 0, 0, 0, 0)])
def test_an_invalid_connect_request_is_refused(frame: bytes) -> None:
    """A connect request of another protocol version is refused, too."""
    with pytest.raises(ClientError, match=r"not a connect request|protocol version"):
        Connect(frame)


@given(st.binary(max_size=64), st.sampled_from([0, 1, 2, 3, 5, 7, 8, 14, 100, 101]))
def test_any_bytes_are_read_or_refused(body: Any, opcode: Any) -> None:
    """Any bytes are either read or refused by ``ClientError``."""
    for read in (Connect, Call):
        with contextlib.suppress(ClientError):
            assert read(struct.pack(">ii", 1, opcode) + body) is not None


def test_a_reply_without_a_body_is_twenty_bytes() -> None:
    """A reply without a body has length, xid, zxid and code."""
    assert encode_reply(-2, 9, 0) == struct.pack(">iiqi", 16, -2, 9, 0)
