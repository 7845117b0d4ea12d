"""A standalone server: sessions and their expiry, observers and views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fakekafka.protocol.errors import InvariantError
from fakekafka.protocol.host import Timer
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    CloseSession,
    ConnectionClosed,
    ConnectRequest,
    ConnectResponse,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetEphemeralsRequest,
    MultiRequest,
    SetDataRequest,
    ZkCode,
    ZooKeeperError,
)
from fakekafka.zkfake.server.quorum_messages import Notification
from fakekafka.zkfake.server.roles import ZooKeeperConfig
from fakekafka.zkfake.server.server import ZooKeeperServer
from fakekafka.zkfake.server.sessions import SessionTracker
from fakekafka.zkfake.server.storage import ZooKeeperStorage


def test_a_crashed_clients_session_expires_between_timeout_and_a_tick_later(
    single: ZkNetwork,
) -> None:
    client = single.connected(session_timeout_ms=6000)
    single.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    single.crash_client("client")
    single.run_for(5990)
    assert single.servers[1].children("/") == ["e"]
    single.run_for(2010)
    assert single.servers[1].children("/") == []


def test_heartbeats_keep_a_session(single: ZkNetwork) -> None:
    client = single.connected(session_timeout_ms=6000)
    session_id = client.session_id
    single.run_for(120_000)
    assert client.session_id == session_id
    assert client.is_connected


def test_a_short_session_expires_soon(single: ZkNetwork) -> None:
    """The tick shrinks with the timeout, so that fast tests notice a crash soon."""
    single.connected(session_timeout_ms=300)
    single.crash_client("client")
    single.run_for(400)
    assert single.servers[1].storage.tree.sessions == {}


def test_the_timeout_is_negotiated(single: ZkNetwork) -> None:
    single.config = ZooKeeperConfig(min_session_timeout_ms=4000)
    single.kill(1)
    single.start(1)
    for name, wanted_ms in (("short", 100), ("fits", 5000), ("long", 90_000)):
        single.connected(name, session_timeout_ms=wanted_ms)
    assert sorted(single.servers[1].storage.tree.sessions.values()) == [4000, 5000, 40_000]


def test_an_idle_server_has_no_timers(single: ZkNetwork) -> None:
    client = single.connected()
    closed = client.close()
    single.run_until(lambda: closed.done)
    single.run_for(10_000)
    assert single.clock.timers == []


def test_a_server_behind_its_client_refuses_it(single: ZkNetwork) -> None:
    single.deliver("x", "zk-1", ConnectRequest(5, 0, 6000, last_zxid_seen=99))
    assert single.log[-1] == ("zk-1", "x", ConnectionClosed(5))


def test_an_unknown_session_is_answered_as_expired(single: ZkNetwork) -> None:
    single.deliver("x", "zk-1", ConnectRequest(5, 123, 6000, 0))
    assert single.log[-1] == ("zk-1", "x", ConnectResponse(5, 0, 0))


def test_no_connection_is_kept_for_an_expired_session(single: ZkNetwork) -> None:
    single.deliver("x", "zk-1", ConnectRequest(5, 99, 6000, 0))
    assert single.servers[1].connections.by_id == {}


def test_a_client_can_list_its_ephemeral_nodes_below_a_path(single: ZkNetwork) -> None:
    client = single.connected()
    single.write(client, "/a")
    nodes = [CreateRequest(path, b"", ephemeral=True) for path in ("/a/b", "/c")]
    single.run(client.handle_requests(nodes))
    for prefix, found in (("/a", ("/a/b",)), ("/c", ("/c",)), ("/", ("/a/b", "/c"))):
        answer = single.servers[1]._read(client.session_id, GetEphemeralsRequest(prefix))
        assert answer.children == found


def test_a_session_that_connects_again_takes_its_old_connections_place(single: ZkNetwork) -> None:
    client = single.connected()
    single.deliver("x", "zk-1", ConnectRequest(5, client.session_id, 6000, 0))
    assert isinstance(single.log[-2][2], ConnectionClosed)
    assert single.log[-1][2] == ConnectResponse(5, client.session_id, 6000)


def test_watches_end_with_the_connection_that_set_them(single: ZkNetwork) -> None:
    """Watches end even if the session reconnects before the server noticed; the client arms them
    again (ZooKeeper: a watch belongs to a ``ServerCnxn``).
    """
    client = single.connected()
    other = single.connected("other")
    single.write(other, "/a")
    client.register_change_handler("/a", ZnodeChangeHandler())
    single.run(client.handle_request(ExistsRequest("/a")))
    assert len(single.servers[1].watches) == 1
    single.deliver("x", "zk-1", ConnectRequest(5, client.session_id, 6000, 0))
    assert len(single.servers[1].watches) == 0


def test_session_ids_are_unique_over_servers_and_restarts(single: ZkNetwork) -> None:
    first = single.connected("a").session_id
    second = single.connected("b").session_id
    single.kill(1)
    single.start(1)
    third = single.connected("c").session_id
    assert first < second < third
    assert first >> 56 == 1


def test_expiring_an_unknown_session_does_nothing(single: ZkNetwork) -> None:
    zxid = single.servers[1].last_zxid
    single.servers[1].expire_session(42)
    single.servers[1].fail_authentication(42)
    assert single.servers[1].last_zxid == zxid


def test_a_listener_gets_every_change(single: ZkNetwork) -> None:
    """The listener gets each znode that is created, set or deleted, and each session that ends."""
    seen: list[tuple[str, Any, Any]] = []
    client = single.connected()
    single.servers[1].host.state_listener = lambda *change: seen.append(change)
    single.run(
        client.handle_requests(
            [
                CreateRequest("/a", ephemeral=True),
                MultiRequest((SetDataRequest("/a", b""), CreateRequest("/b"))),
                DeleteRequest("/missing"),
                DeleteRequest("/b"),
            ]
        )
    )
    single.servers[1].expire_session(client.session_id)
    owner = hex(client.session_id)
    assert seen == [
        ("znodes/a", None, {"data": None, "version": 0, "zxid": 2, "owner": owner}),
        ("znodes/a", None, {"data": "", "version": 1, "zxid": 3, "owner": owner}),
        ("znodes/b", None, {"data": None, "version": 0, "zxid": 3}),
        ("znodes/b", None, None),
        ("znodes/a", None, None),
        (f"sessions/{owner}", None, None),
    ]


def test_views_read_the_tree_as_applied(single: ZkNetwork) -> None:
    client = single.connected()
    single.run(client.handle_requests([CreateRequest("/a", b"1"), CreateRequest("/a/b")]))
    server = single.servers[1]
    assert server.get("/a") == b"1"
    assert server.children("/a") == ["b"]
    assert server.tree() == {"/": None, "/a": b"1", "/a/b": None}
    assert server.stat("/a").num_children == 1
    assert server.last_zxid == 3
    with pytest.raises(ZooKeeperError, match="NONODE"):
        server.get("/x")


def test_a_stopped_server_closes_its_connections(single: ZkNetwork) -> None:
    client = single.connected()
    single.servers[1].stop()
    assert not single.servers[1].is_serving
    single.run_until(lambda: not client.is_connected)
    single.deliver("x", "zk-1", ConnectRequest(5, 0, 6000, 0))
    single.run_for(30_000)
    assert not client.is_connected


def test_watches_of_a_disconnected_client_are_removed(single: ZkNetwork) -> None:
    """The session lives on, and sets its watches again wherever it reconnects."""
    client = single.connected()
    other = single.connected("other")
    single.write(other, "/a")
    client.register_change_handler("/a", ZnodeChangeHandler())
    single.run(client.handle_request(ExistsRequest("/a")))
    single.servers[1].on_disconnect("client")
    assert len(single.servers[1].watches) == 0
    assert client.session_id in single.servers[1].storage.tree.sessions


def test_a_disconnected_clients_session_lives_on(single: ZkNetwork) -> None:
    client = single.connected()
    single.servers[1].on_disconnect("client")
    assert single.servers[1].connections.by_id == {}
    assert client.session_id in single.servers[1].storage.tree.sessions


def test_a_server_handles_only_messages_of_its_protocol(single: ZkNetwork) -> None:
    assert single.servers[1].on_message("x", "something") is False
    assert single.servers[1].on_message("x", ConnectionClosed(77)) is True


def test_a_standalone_server_takes_over_an_ensembles_storage(network: ZkNetwork) -> None:
    """Transactions that were logged and not known to be committed are applied."""
    network.ensemble(3)
    network.settle()
    client = network.connected()
    network.run(client.handle_request(CreateRequest("/a")))
    storage = network.storages[1]
    server = ZooKeeperServer(network.servers[1].host, 1, {1: "zk-1"}, storage)
    network.servers[1].crash()
    server.start()
    assert server.is_serving
    assert server.children("/") == ["a"]
    assert storage.last_logged_zxid == server.last_zxid
    server.stop()


def test_server_ids_fit_into_session_ids(single: ZkNetwork) -> None:
    with pytest.raises(InvariantError, match="1 to 127"):
        ZooKeeperServer(single.servers[1].host, 128, {}, ZooKeeperStorage())


def test_reads_of_a_server_without_sessions_are_refused(single: ZkNetwork) -> None:
    """A packet on a connection that was never opened closes that connection."""
    client = single.connected()
    single.servers[1].on_disconnect("client")
    responses = single.run(client.send_once([ExistsRequest("/")]))
    assert [r.code for r in responses] == [ZkCode.CONNECTIONLOSS]


# --- the tracker


def test_only_the_earliest_bucket_has_a_timer(single: ZkNetwork) -> None:
    expired: list[int] = []
    host = single.servers[1].host
    tracker = SessionTracker(host, 2000, expired.append)
    for session_id in range(1000):
        tracker.add(session_id, 6000)
    for _ in range(50):
        single.run_for(100)
        tracker.touch_all(range(500))
    assert len(single.clock.timers) <= 2
    single.run_for(3500)
    assert expired == list(range(500, 1000))
    assert 5 in tracker
    assert 700 not in tracker
    assert not tracker.touch(700)
    tracker.remove(700)
    for session_id in range(500):
        tracker.remove(session_id)
    single.run_for(60_000)
    assert expired == list(range(500, 1000))


def test_the_cause_of_an_expiry_is_the_last_contact_with_its_session(single: ZkNetwork) -> None:
    """The cause is not the session for which the tracker's timer was first set."""
    host = single.servers[1].host
    told: list[object] = []

    class Noted:
        event = 0

        def current(self) -> int:
            return self.event

        def set_shared_timer_ms(self, delay_ms: float, callback: Callable[[], object]) -> Timer:
            return host.call_later_ms(delay_ms, callback)

        def record_due_entry(self, name: str, cause: int | None) -> None:
            told.append((name, cause))

        def record_timeout(self, peers: Sequence[str], cause: int | None, waited_ms: float) -> None:
            raise AssertionError("nobody is waited for")

    host.causes = causes = Noted()
    tracker = SessionTracker(host, 2000, told.append)
    for session_id in (1, 2):
        causes.event += 1
        tracker.add(session_id, 6000)
    causes.event = 3
    tracker.touch(2)
    single.run_for(20_000)
    assert told == [("SessionTracker", 1), 1, ("SessionTracker", 3), 2]


def test_a_session_that_was_closed_does_not_expire(single: ZkNetwork) -> None:
    """A closed session does not expire when another session of its bucket does, either."""
    expired: list[int] = []
    tracker = SessionTracker(single.servers[1].host, 2000, expired.append)
    tracker.add(1, 6000)
    tracker.add(2, 6000)
    tracker.remove(1)
    single.run_for(10_000)
    assert expired == [2]


def test_a_tracker_without_sessions_has_no_timer(single: ZkNetwork) -> None:
    """The timer is cancelled before the time at which the last session would have expired."""
    tracker = SessionTracker(single.servers[1].host, 2000, lambda _session_id: None)
    tracker.add(1, 6000)
    tracker.remove(1)
    assert single.clock.timers == []


def test_a_stopped_tracker_forgets_former_sessions(single: ZkNetwork) -> None:
    """The tracker forgets former sessions, and new ones have their whole timeout."""
    expired: list[int] = []
    host = single.servers[1].host
    tracker = SessionTracker(host, 2000, expired.append)
    tracker.add(1, 6000)
    tracker.add(2, 30_000)
    tracker.stop()
    assert 1 not in tracker
    assert not tracker.touch(1)
    assert single.clock.timers == []
    tracker.add(1, 12_000)
    single.run_for(11_990)
    assert expired == []
    single.run_for(4000)
    assert expired == [1]


def test_a_tracker_sets_a_timer_only_for_the_next_expiry(single: ZkNetwork) -> None:
    """A later expiry needs no timer, and an earlier one replaces the timer."""
    tracker = SessionTracker(single.servers[1].host, 2000, lambda _session_id: None)
    for session_id, timeout_ms in enumerate((10_000, 20_000, 5000, 3000)):
        tracker.add(session_id, timeout_ms)
        assert len(single.clock.timers) == 1
    assert single.clock.timers[0] <= 4000


def test_a_shorter_session_brings_the_timer_forward(single: ZkNetwork) -> None:
    expired: list[int] = []
    tracker = SessionTracker(single.servers[1].host, 2000, expired.append)
    tracker.add(1, 30_000)
    tracker.add(2, 600)
    single.run_for(900)
    assert expired == [2]
    tracker.stop()
    single.run_for(60_000)
    assert expired == [2]


def test_one_session_closing_is_one_transaction(single: ZkNetwork) -> None:
    client = single.connected()
    zxid = single.servers[1].last_zxid
    single.run(client.handle_requests([CreateRequest("/a", ephemeral=True)]))
    client.close()
    single.run_for(5)
    assert single.servers[1].last_zxid == zxid + 2
    requests = [getattr(m, "request", None) for *_, m in single.log]
    assert requests.count(CloseSession()) == 1


def test_a_standalone_server_has_no_use_for_votes(single: ZkNetwork) -> None:
    assert not any(isinstance(m, Notification) for *_, m in single.log)
