"""ZooKeeper's protocol details that kazoo hides: order, passwords, packets and disconnects."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_servers import Ensemble, MakeEnsemble
from kazoo.protocol import serialization as kz
from kazoo.security import OPEN_ACL_UNSAFE as ACL

pytestmark = pytest.mark.timeout(60)

PING = struct.pack(">ii", -2, 11)


def set_watches(zxid: int, data: list[str], exist: list[str], child: list[str]) -> bytes:
    """Return the request that a client sends after it reconnected; kazoo never sends it."""
    lists = b"".join(
        struct.pack(">i", len(paths)) + b"".join(map(kz.write_string, paths))
        for paths in (data, exist, child)
    )
    return struct.pack(">iiq", -8, 101, zxid) + lists


def test_pipelined_requests_are_answered_in_order(server: Ensemble) -> None:
    """Requests sent before the session exists, or that need no server, keep the order, too."""
    raw = server.raw()
    raw.send(kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize())
    sent = [
        (1, kz.Create("/a", b"x", ACL, 0)),
        (-4, kz.Auth(0, "digest", "user:password")),
        (2, kz.GetData("/a", None)),
        (3, kz.SASL(b"")),
        (4, kz.Exists("/b", None)),
    ]
    for xid, request in sent:
        raw.call(request, xid)
    assert kz.Connect.deserialize(raw.frame(), 0)[0].session_id != 0
    replies = [raw.reply()[0] for _ in sent]
    assert [(header.xid, header.err) for header in replies] == [
        (1, 0),
        (-4, 0),
        (2, 0),
        (3, -6),
        (4, -101),
    ]
    assert [header.zxid for header in replies] == [2] * len(sent)


def test_a_request_may_come_byte_by_byte(server: Ensemble) -> None:
    """A frame that arrives byte by byte is assembled."""
    raw = server.raw()
    body = kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize()
    for byte in struct.pack(">i", len(body)) + body:
        raw.socket.sendall(bytes([byte]))
    assert kz.Connect.deserialize(raw.frame(), 0)[0].time_out == 6000


def test_the_session_timeout_is_negotiated(server: Ensemble) -> None:
    """The timeout is at most 40 seconds, ZooKeeper's twenty ticks."""
    assert server.raw().connect(timeout_ms=10**6).time_out == 40_000
    assert server.raw().connect(timeout_ms=777).time_out == 777


def test_a_ping_is_answered_by_one(server: Ensemble) -> None:
    """The answer has the last zxid of which the client was told."""
    raw = server.raw()
    raw.connect()
    raw.ask(kz.Create("/a", b"", ACL, 0))
    raw.send(PING)
    header, body = raw.reply()
    assert (header, body) == ((-2, 2, 0), b"")


def test_a_session_is_resumed_on_another_connection_only_with_its_password(
    server: Ensemble,
) -> None:
    """A wrong password is answered as an expired session, and does not affect the real one."""
    first = server.raw()
    opened = first.connect()
    thief = server.raw()
    assert thief.connect(session_id=opened.session_id, password=bytes(16)).time_out == 0
    assert thief.ended()
    assert first.ask(kz.Create("/a", b"", ACL, 1)) == "/a"
    first.close()
    second = server.raw()
    resumed = second.connect(session_id=opened.session_id, password=opened.passwd)
    assert resumed == opened
    assert second.ask(kz.Exists("/a", None)).ephemeralOwner == opened.session_id


def test_a_broken_connection_is_forgotten_and_its_session_is_not(server: Ensemble) -> None:
    """The watches end with the connection, and the client sets them again."""
    raw = server.raw()
    session_id = raw.connect().session_id
    raw.ask(kz.GetChildren("/", print))
    assert server.call(1, lambda core: (len(core.connections.by_id), len(core.watches))) == (1, 1)
    raw.close()
    server.until(lambda: server.call(1, lambda core: not core.connections.by_id))
    assert server.call(1, lambda core: len(core.watches)) == 0
    assert server.call(1, lambda core: list(core.storage.tree.sessions)) == [session_id]


def test_a_session_that_moves_leaves_its_old_connection_closed(server: Ensemble) -> None:
    """The latest connection of a session is the valid one."""
    first = server.raw()
    opened = first.connect()
    second = server.raw()
    assert second.connect(session_id=opened.session_id, password=opened.passwd) == opened
    assert first.ended()
    second.ask(kz.Exists("/", None))


def test_closing_the_session_is_answered_and_ends_the_connection(server: Ensemble) -> None:
    """Closing a session deletes its ephemeral nodes."""
    raw, other = server.raw(), server.raw()
    raw.connect()
    other.connect()
    raw.ask(kz.Create("/a", b"", ACL, 1))
    raw.call(kz.CloseInstance, 9)
    assert raw.reply()[0][::2] == (9, 0)
    assert raw.ended()
    other.call(kz.Exists("/a", None), 1)
    assert other.reply()[0].err == -101


@pytest.mark.slow
def test_a_silent_session_expires_with_its_nodes_and_its_connection(server: Ensemble) -> None:
    """A closed connection alone does not end the session, but the timeout does."""
    raw, other = server.raw(), server.raw()
    other.connect()
    opened = raw.connect(timeout_ms=150)
    raw.ask(kz.Create("/a", b"", ACL, 1))
    assert other.ask(kz.Exists("/a", print)).ephemeralOwner == opened.session_id
    assert raw.ended()
    assert other.event() == (2, 3, "/a")
    late = server.raw()
    assert late.connect(session_id=opened.session_id, password=opened.passwd).time_out == 0
    assert late.ended()


def test_watches_set_again_after_a_reconnection_are_not_lost(server: Ensemble) -> None:
    """Watches that missed a change fire at once, before the answer, and the others are armed."""
    raw, other = server.raw(), server.raw()
    opened = raw.connect()
    other.connect()
    for path in ("/changed", "/deleted", "/parent", "/quiet"):
        raw.ask(kz.Create(path, b"", ACL, 0))
    last_zxid = 6
    raw.close()
    other.ask(kz.SetData("/changed", b"x", -1))
    other.ask(kz.Delete("/deleted", -1))
    other.ask(kz.Create("/created", b"", ACL, 0))
    other.ask(kz.Create("/parent/child", b"", ACL, 0))

    again = server.raw()
    again.connect(session_id=opened.session_id, password=opened.passwd, last_zxid=last_zxid)
    again.send(
        set_watches(last_zxid, ["/changed", "/deleted", "/quiet"], ["/created"], ["/parent"])
    )
    events = [again.event() for _ in range(4)]
    assert events == [(3, 3, "/changed"), (2, 3, "/deleted"), (1, 3, "/created"), (4, 3, "/parent")]
    assert again.reply()[0][::2] == (-8, 0)
    other.ask(kz.SetData("/quiet", b"x", -1))
    assert again.event() == (3, 3, "/quiet")


def test_a_client_sees_the_event_before_it_sees_the_new_data(server: Ensemble) -> None:
    """The event of the client's own write comes before the answer to the write."""
    raw = server.raw()
    raw.connect()
    raw.ask(kz.Create("/a", b"", ACL, 0))
    raw.ask(kz.GetData("/a", print))
    raw.call(kz.SetData("/a", b"x", 0), 5)
    assert raw.event() == (3, 3, "/a")
    assert raw.reply()[0].xid == 5


def test_a_client_ahead_of_the_server_is_refused(server: Ensemble) -> None:
    """A server that is behind a client refuses it, as the client would see older data."""
    raw = server.raw()
    raw.send(kz.Connect(0, 1 << 50, 6000, 0, bytes(16), False).serialize())
    assert raw.ended()


@pytest.mark.slow
def test_a_server_that_does_not_serve_refuses_clients(make_ensemble: MakeEnsemble) -> None:
    """A server without a quorum accepts no sessions."""
    ensemble = make_ensemble(3)
    ensemble.leader()
    for server_id in (1, 2):
        ensemble.kill(server_id)
    ensemble.until(lambda: not ensemble.serving())
    raw = ensemble.raw(3)
    raw.send(kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize())
    assert raw.ended()


def test_a_killed_server_cuts_its_connections_and_refuses_new_ones(server: Ensemble) -> None:
    """A killed server cuts its connections, and still has their sessions after its restart."""
    raw = server.raw()
    opened = raw.connect()
    raw.ask(kz.Create("/a", b"x", ACL, 1))
    server.kill(1)
    assert raw.ended()
    assert server.raw().ended()
    server.start_server(1)
    again = server.raw()
    assert again.connect(session_id=opened.session_id, password=opened.passwd) == opened
    assert again.ask(kz.GetData("/a", None))[0] == b"x"


def test_refused_credentials_end_the_connection(server: Ensemble) -> None:
    """Credentials are refused if their scheme is unknown, or if the server is told to do so."""
    raw = server.raw()
    raw.connect()
    raw.call(kz.Auth(0, "magic", "abracadabra"), -4)
    assert raw.reply()[0][::2] == (-4, -115)
    assert raw.ended()
    refused = server.raw()
    session_id = refused.connect().session_id
    server.call(1, lambda core: core.fail_authentication(session_id))
    assert refused.reply()[0][::2] == (-4, -115)
    assert refused.ended()


def test_connections_are_members_of_the_network(server: Ensemble) -> None:
    """A connection has a name on the clients' machine; its messages can be observed and cut off."""
    seen: list[tuple[str, str, str]] = []
    network = server.runtime.network

    def observe(delivery: Any) -> None:
        seen.append((delivery.sender.name, delivery.target.name, type(delivery.message).__name__))

    network.observe(observe)
    raw = server.raw()
    raw.connect()
    raw.ask(kz.Exists("/", None))
    assert seen == [
        ("zkclient-1", "zk-1", "ConnectRequest"),
        ("zk-1", "zkclient-1", "ConnectResponse"),
        ("zkclient-1", "zk-1", "ClientPacket"),
        ("zk-1", "zkclient-1", "ServerPacket"),
    ]
    server.runtime.run_in(None, lambda: network.cut("clients", "zk-1"))
    raw.call(kz.Create("/late", b"", ACL, 0))
    raw.send(PING)
    server.raw().send(PING)  # nonsense, which the same loop handles after both
    server.until(lambda: server.tcp.connection_count == 1)
    sent = len(seen)
    server.runtime.run_in(None, network.heal)
    late = server.raw()
    late.connect()
    late.call(kz.Exists("/late", None), 1)
    assert late.reply()[0].err == 0, "what stalled arrived when the link was mended"
    assert [kind for _, target, kind in seen[sent:] if target == "zk-1"][:1] == ["ClientPacket"]


def ephemerals(raw: Any, prefix: str, xid: int) -> list[str]:
    """Return the answer to getEphemerals, which kazoo does not have."""
    raw.send(struct.pack(">ii", xid, 103) + kz.write_string(prefix))
    header, body = raw.reply()
    assert (header.xid, header.err) == (xid, 0)
    (count,) = struct.unpack_from(">i", body)
    paths, at = [], 4
    for _ in range(count):
        path, at = kz.read_string(body, at)
        paths.append(path)
    assert at == len(body)
    return paths


def test_a_session_can_list_its_ephemeral_nodes(server: Ensemble) -> None:
    """Since ZooKeeper 3.6 a session can list its ephemeral nodes, all or those below a prefix."""
    other, raw = server.raw(), server.raw()
    for client in (other, raw):
        client.send(kz.Connect(0, 0, 6000, 0, bytes(16), False).serialize())
        client.frame()
    other.call(kz.Create("/theirs", b"", ACL, 1), 1)
    other.reply()
    for xid, (path, flags) in enumerate([("/b", 1), ("/a", 1), ("/ab", 0), ("/ab/c", 1)]):
        raw.call(kz.Create(path, b"", ACL, flags), xid)
        raw.reply()
    assert ephemerals(raw, "", 11) == ["/b", "/a", "/ab/c"]
    assert ephemerals(raw, "/", 12) == ["/b", "/a", "/ab/c"]
    assert ephemerals(raw, "/a", 13) == ["/a", "/ab/c"]
    assert ephemerals(raw, "/theirs", 14) == []
