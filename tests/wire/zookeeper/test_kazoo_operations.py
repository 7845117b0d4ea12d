"""kazoo's client on one server: every operation, its errors, sessions and watches."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.actors.runtime.live import LiveRuntime
from fakekafka.actors.runtime.threaded import ThreadedRuntime
from fakekafka.tests.support.zookeeper_servers import Ensemble, MakeEnsemble, Recorder
from kazoo import exceptions as kx
from kazoo.client import KazooState
from kazoo.protocol.states import EventType
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]


def test_nodes_are_created_read_changed_and_deleted(server: Ensemble) -> None:
    """Every field of a node's stat is right after each operation."""
    client = server.kazoo()
    assert client.create("/a", b"one") == "/a"
    data, stat = client.get("/a")
    assert data == b"one"
    assert (stat.version, stat.dataLength, stat.numChildren) == (0, 3, 0)
    assert stat.czxid == stat.mzxid == stat.pzxid > 0
    changed = client.set("/a", b"second")
    assert (changed.version, changed.dataLength, changed.czxid) == (1, 6, stat.czxid)
    assert changed.mzxid > stat.mzxid
    assert changed.mtime >= changed.ctime == stat.ctime
    assert client.get("/a") == (b"second", changed)
    assert client.exists("/a") == changed
    assert client.delete("/a") is True
    assert client.exists("/a") is None


def test_children_are_listed_with_the_stat_of_their_parent(server: Ensemble) -> None:
    """``makepath`` and recursive deletion work level by level."""
    client = server.kazoo()
    client.create("/a/b/c", b"", makepath=True)
    client.create("/a/ä", b"")
    children, stat = client.get_children("/a", include_data=True)
    assert sorted(children) == ["b", "ä"]
    assert (stat.numChildren, stat.cversion) == (2, 2)
    assert client.get_children("/a/b/c") == []
    client.delete("/a", recursive=True)
    assert client.exists("/a") is None


def test_null_and_empty_data_are_not_the_same(server: Ensemble) -> None:
    """Null data differ from empty data; Kafka's parent nodes have null."""
    client = server.kazoo()
    client.create("/empty", b"")
    assert client.get("/empty")[0] == b""
    assert client.set("/empty", None).dataLength == 0
    assert client.get("/empty")[0] is None


def test_sequential_names_count_up_and_are_never_reused(server: Ensemble) -> None:
    """Names end in ten digits, and the stat is returned on request."""
    client = server.kazoo()
    client.create("/q")
    assert client.create("/q/n-", sequence=True) == "/q/n-0000000000"
    client.delete("/q/n-0000000000")
    path, stat = client.create("/q/n-", b"x", sequence=True, include_data=True)
    assert (path, stat.dataLength) == ("/q/n-0000000001", 1)


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (lambda client: client.create("/a"), kx.NodeExistsError),
        (lambda client: client.create("/no/parent"), kx.NoNodeError),
        (lambda client: client.create("/e/child"), kx.NoChildrenForEphemeralsError),
        (lambda client: client.get("/none"), kx.NoNodeError),
        (lambda client: client.get_children("/none"), kx.NoNodeError),
        (lambda client: client.set("/none", b""), kx.NoNodeError),
        (lambda client: client.set("/a", b"", version=5), kx.BadVersionError),
        (lambda client: client.delete("/a", version=5), kx.BadVersionError),
        (lambda client: client.delete("/none"), kx.NoNodeError),
        (lambda client: client.delete("/p"), kx.NotEmptyError),
        (lambda client: client.get_acls("/none"), kx.NoNodeError),
        (lambda client: client.set_acls("/a", OPEN_ACL_UNSAFE, version=5), kx.BadVersionError),
        (lambda client: client.reconfig("server.9=x:1:2", None, None), kx.UnimplementedError),
    ],
)
def test_errors_reach_the_client_as_zookeepers(
    server: Ensemble, operation: Any, error: Any
) -> None:
    """An error of an operation does not end the connection."""
    client = server.kazoo()
    client.create("/a")
    client.create("/e", ephemeral=True)
    client.create("/p/child", makepath=True)
    with pytest.raises(error):
        operation(client)
    assert client.get("/a")[1].version == 0


def test_access_control_lists_are_accepted_and_everything_stays_open(server: Ensemble) -> None:
    """Credentials are accepted, too, before and after the connection is made."""
    client = server.kazoo(auth_data=[("digest", "user:password")])
    assert client.add_auth("digest", "other:password") is True
    client.create("/a", acl=[make_digest_acl("user", "password", all=True)])
    acls, stat = client.get_acls("/a")
    assert (acls, stat) == (OPEN_ACL_UNSAFE, client.exists("/a"))
    assert client.set_acls("/a", OPEN_ACL_UNSAFE, version=0) == stat
    assert server.kazoo().get("/a")[0] == b""


def test_sync_answers_with_the_path(server: Ensemble) -> None:
    """The answer comes once the server has caught up; a standalone server always has."""
    assert server.kazoo().sync("/a/b") == "/a/b"


def test_a_chroot_is_resolved_by_the_client(server: Ensemble) -> None:
    """The client resolves its chroot, and the server sees complete paths."""
    outside = server.kazoo()
    outside.create("/kafka")
    outside.create("/kafka/a", b"x")
    inside = server.kazoo()
    inside.chroot = "/kafka"
    assert inside.get("/a")[0] == b"x"
    assert inside.create("/b") == "/b"
    assert outside.get_children("/kafka") == ["a", "b"]


def test_asynchronous_requests_are_answered_in_order(server: Ensemble) -> None:
    """Each asynchronous request sees the effects of the requests before it."""
    client = server.kazoo()
    client.create("/n")
    results = [client.set_async("/n", str(number).encode()) for number in range(500)]
    reads = [client.get_async("/n") for _ in range(3)]
    assert [result.get(20).version for result in results] == list(range(1, 501))
    assert [read.get(20)[0] for read in reads] == [b"499"] * 3


def test_a_transaction_is_applied_as_a_whole(server: Ensemble) -> None:
    """A transaction creates, sets, checks and deletes; the sequence number counts all children."""
    client = server.kazoo()
    client.create("/a", b"old")
    transaction = client.transaction()
    transaction.create("/b", b"1", ephemeral=True)
    transaction.create("/s-", sequence=True)
    transaction.check("/a", 0)
    transaction.set_data("/a", b"new", version=0)
    transaction.delete("/b", version=0)
    created, numbered, checked, stat, deleted = transaction.commit()
    assert (created, numbered, checked, deleted) == ("/b", "/s-0000000002", True, True)
    assert client.get("/a") == (b"new", stat)
    assert client.exists("/b") is None


def test_a_failed_transaction_changes_nothing_and_names_the_operation(server: Ensemble) -> None:
    """Operations before the failed one are rolled back, and later ones are not tried."""
    client = server.kazoo()
    client.create("/a", b"old")
    transaction = client.transaction()
    transaction.set_data("/a", b"new")
    transaction.check("/a", 7)
    transaction.create("/b")
    results = transaction.commit()
    assert [type(result) for result in results] == [
        kx.RolledBackError,
        kx.BadVersionError,
        kx.RuntimeInconsistency,
    ]
    data, stat = client.get("/a")
    assert (data, stat.version) == (b"old", 0)
    assert client.exists("/b") is None


def test_ephemeral_nodes_live_as_long_as_their_session(server: Ensemble) -> None:
    """The owner of such a node is the session, and closing it deletes the node at once."""
    owner, other = server.kazoo(), server.kazoo()
    owner.create("/e", ephemeral=True)
    assert other.exists("/e").ephemeralOwner == owner.client_id[0]
    owner.stop()
    assert other.exists("/e") is None


def test_an_expired_session_is_replaced_by_a_new_one(server: Ensemble, recorder: Recorder) -> None:
    """The client is notified, its ephemeral nodes are gone, and a watch of another client fires."""
    client, other = server.kazoo(), server.kazoo()
    client.create("/e", ephemeral=True)
    assert other.exists("/e", watch=lambda event: recorder.add(("event", event.type))) is not None
    session_id = client.client_id[0]
    client.add_listener(recorder.add)
    server.expire(client)
    told = sorted(map(str, (recorder.take() for _ in range(4))))
    assert told == sorted(
        map(
            str,
            [
                ("event", EventType.DELETED),
                KazooState.SUSPENDED,
                KazooState.LOST,
                KazooState.CONNECTED,
            ],
        )
    )
    assert client.client_id[0] != session_id
    assert client.exists("/e") is None


def test_watches_fire_once(server: Ensemble, recorder: Recorder) -> None:
    """Data, existence and child watches each fire for their kind of change."""
    client, other = server.kazoo(), server.kazoo()
    client.create("/a")

    def watch(event: Any) -> None:
        recorder.add((event.type, event.path))

    client.get("/a", watch=watch)
    other.set("/a", b"1")
    other.set("/a", b"2")
    assert recorder.take() == (EventType.CHANGED, "/a")
    client.exists("/b", watch=watch)
    other.create("/b")
    assert recorder.take() == (EventType.CREATED, "/b")
    client.get_children("/a", watch=watch)
    other.create("/a/child")
    assert recorder.take() == (EventType.CHILD, "/a")
    client.get_children("/b", watch=watch)
    other.delete("/b")
    assert recorder.take() == (EventType.DELETED, "/b")


@pytest.mark.slow
def test_heartbeats_keep_an_idle_session_alive(server: Ensemble) -> None:
    """kazoo sends pings, which keep the session at the server."""
    client = server.kazoo(timeout_s=1)
    client.create("/e", ephemeral=True)
    pings: list[str] = []

    def observe(delivery: Any) -> None:
        name = type(delivery.message).__name__
        if name == "Ping" and delivery.target.name == "zk-1":
            pings.append(name)

    server.runtime.network.observe(observe)
    server.until(lambda: len(pings) >= 4)
    assert client.exists("/e") is not None
    assert client.state == KazooState.CONNECTED


@pytest.mark.parametrize("runtime_class", [LiveRuntime, ThreadedRuntime])
def test_both_real_time_runtimes_serve_clients(
    make_ensemble: MakeEnsemble, recorder: Recorder, runtime_class: Any
) -> None:
    """A client connects, writes, watches, loses the server and finds it again."""
    server = make_ensemble(1, runtime_class(1))
    client, other = server.kazoo(), server.kazoo()
    client.create("/a", b"x")
    client.get("/a", watch=lambda event: recorder.add(event.type))
    other.set("/a", b"y")
    assert recorder.take() == EventType.CHANGED
    session = client.client_id
    client.add_listener(recorder.add)
    server.kill(1)
    assert recorder.take() == KazooState.SUSPENDED
    server.start_server(1)
    assert recorder.take() == KazooState.CONNECTED
    assert client.get("/a")[0] == b"y"
    assert client.client_id == session


@pytest.mark.slow
def test_many_kazoo_clients_leave_nothing_behind(server: Ensemble) -> None:
    """Sessions, connections and ports are gone once the clients have stopped."""
    for _ in range(20):
        client = server.kazoo()
        client.create("/e", ephemeral=True)
        client.stop()
    server.until(lambda: server.tcp.connection_count == 0)
    assert list(server.runtime.network.nodes) == ["zk-1"]
    assert server.call(1, lambda core: core.storage.tree.sessions) == {}
