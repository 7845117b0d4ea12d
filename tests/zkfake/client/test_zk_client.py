"""The ZooKeeper client: pipelining, lost connections and heartbeats."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.errors import UsageError
from fakekafka.tests.support.zookeeper_network import ZkNetwork, codes
from fakekafka.zkfake.client.client import ClientState, ZooKeeperClient
from fakekafka.zkfake.messages import (
    ClientPacket,
    ConnectionClosed,
    ConnectRequest,
    ConnectResponse,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Ping,
    Request,
    ServerPacket,
    SetDataRequest,
    SetWatches,
    SyncRequest,
    ZkCode,
)


def test_pipelined_requests_are_answered_in_order(single: ZkNetwork) -> None:
    client = single.connected()
    requests: list[Request] = [CreateRequest("/a", b"0")]
    requests += [SetDataRequest("/a", b"%d" % i, i) for i in range(30)]
    responses = single.run(client.handle_requests(requests))
    assert [r.stat.version for r in responses] == [0, *range(1, 31)]


def test_no_more_requests_are_under_way_than_allowed(single: ZkNetwork) -> None:
    """Ten requests, two at a time, take five round trips of two milliseconds."""
    client = single.connected(max_in_flight=2)
    start_us = single.now_us
    single.run(client.handle_requests([ExistsRequest("/a")] * 10))
    assert single.now_us - start_us == 10_000


def test_the_limit_holds_over_all_callers(single: ZkNetwork) -> None:
    client = single.connected(max_in_flight=1)
    first = Task(client.handle_request(CreateRequest("/a")))
    second = Task(client.handle_request(CreateRequest("/a")))
    assert sum(isinstance(m, ClientPacket) for _, _, m in single.log) == 1
    single.run_until(lambda: second.done)
    assert (first.result().code, second.result().code) == (ZkCode.OK, ZkCode.NODEEXISTS)


def test_no_requests_are_answered_at_once(single: ZkNetwork) -> None:
    client = single.connected()
    assert single.run(client.handle_requests([])) == []
    assert single.run(client.send_once([])) == []


def test_sync_is_answered_with_its_path(single: ZkNetwork) -> None:
    client = single.connected()
    response = single.run(client.handle_request(SyncRequest("/x")))
    assert (response.code, response.path) == (ZkCode.OK, "/x")


def test_a_client_needs_a_server(single: ZkNetwork) -> None:
    with pytest.raises(UsageError, match="at least one server"):
        ZooKeeperClient(None, [], 6000)  # type: ignore[arg-type]


def test_requests_under_way_survive_a_lost_connection(single: ZkNetwork) -> None:
    """The create took effect and its answer was lost, so the repetition finds the node."""
    client = single.connected()
    single.lose = lambda source, _to, m: isinstance(m, ServerPacket)
    task = Task(client.handle_requests([CreateRequest("/a"), GetDataRequest("/a")]))
    single.run_for(20)
    single.lose = lambda *_: False
    single.run_until(lambda: task.done)
    assert codes(task.result()) == [ZkCode.NODEEXISTS, ZkCode.OK]


def test_after_a_connection_loss_all_later_requests_of_the_batch_are_lost(
    single: ZkNetwork,
) -> None:
    """CP-199: all requests after the lost one fail with CONNECTIONLOSS."""
    client = single.connected(max_in_flight=3)
    dropped: list[int] = []

    def lose_third(_source: str, _to: str, message: Any) -> bool:
        if isinstance(message, ServerPacket) and message.xid == 3 and not dropped:
            dropped.append(message.xid)
            return True
        return False

    single.lose = lose_third
    responses = single.run(client.send_once([CreateRequest(f"/{i}") for i in range(8)]))
    assert codes(responses) == [ZkCode.OK] * 2 + [ZkCode.CONNECTIONLOSS] * 6
    assert responses[5].path == "/5"


def test_a_gap_in_the_packets_is_noticed_by_the_server_too(single: ZkNetwork) -> None:
    client = single.connected()
    dropped: list[Any] = []

    def lose_once(_source: str, _to: str, message: Any) -> bool:
        if isinstance(message, ClientPacket) and not dropped:
            dropped.append(message)
            return True
        return False

    single.lose = lose_once
    responses = single.run(client.handle_requests([CreateRequest("/a"), CreateRequest("/b")]))
    assert codes(responses) == [ZkCode.OK, ZkCode.OK]
    assert sum(isinstance(m, ConnectRequest) for _, _, m in single.log) == 2


def test_without_a_connection_single_attempts_fail_with_the_attempt(single: ZkNetwork) -> None:
    client = single.connected()
    single.kill(1)
    single.run_for(5)
    assert not client.is_connected
    responses = single.run(client.send_once([ExistsRequest("/a"), ExistsRequest("/b")]))
    assert codes(responses) == [ZkCode.CONNECTIONLOSS] * 2


def test_a_restarted_server_knows_its_sessions_and_nodes(single: ZkNetwork) -> None:
    client = single.connected()
    session_id = client.session_id
    single.run(client.handle_request(CreateRequest("/e", b"mine", ephemeral=True)))
    single.kill(1)
    single.run_for(3000)
    single.start(1)
    single.run_until(lambda: client.is_connected)
    assert client.session_id == session_id
    assert single.servers[1].get("/e") == b"mine"


def test_a_silent_connection_is_given_up_after_two_thirds_of_the_timeout(single: ZkNetwork) -> None:
    client = single.connected(session_timeout_ms=6000)
    single.cut("client", "zk-1")
    single.run_for(3900)
    assert client.is_connected
    single.run_for(200)
    assert not client.is_connected


def test_disconnected_is_not_expired(single: ZkNetwork) -> None:
    """The session survives if the client reconnects in time."""
    client = single.connected()
    session_id = client.session_id
    single.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    single.cut("client", "zk-1")
    single.run_for(4500)
    assert not client.is_connected
    single.heal()
    single.run(client.wait_until_connected())
    assert client.session_id == session_id
    assert single.servers[1].children("/") == ["e"]


def test_watches_are_armed_again_after_a_reconnection(
    single: ZkNetwork, watcher: Any, log: list[str]
) -> None:
    """Watches of nodes that changed meanwhile fire at once, and the others stay armed."""
    client, other = single.connected(), single.connected("other")
    paths = ("/set", "/gone", "/new", "/same", "/missing")
    for path in paths:
        client.register_change_handler(path, watcher(path + " "))
        if path not in ("/new", "/missing"):
            single.run(other.handle_request(CreateRequest(path)))
        single.run(client.handle_request(ExistsRequest(path)))
    for path in ("/", "/same", "/gone"):
        client.register_child_change_handler(path, watcher(path + " "))
        single.run(client.handle_request(GetChildrenRequest(path, watch=True)))
    single.cut("client", "zk-1")
    single.run(other.handle_request(SetDataRequest("/set", b"")))
    single.run(other.handle_request(DeleteRequest("/gone")))
    single.run(other.handle_request(CreateRequest("/new")))
    single.run_for(4500)
    single.heal()
    single.run(client.wait_until_connected())
    single.run_for(10)
    assert sum(isinstance(getattr(m, "request", None), SetWatches) for *_, m in single.log) == 1
    assert log == ["/set changed", "/gone deleted", "/new created", "/ children", "/gone deleted"]
    log.clear()
    single.run(other.handle_request(CreateRequest("/same/child")))
    single.run(other.handle_request(SetDataRequest("/same", b"")))
    single.run(other.handle_request(CreateRequest("/missing")))
    single.run_for(10)
    assert log == ["/same children", "/same changed", "/missing created"]


def test_an_idle_client_pings_every_third_of_its_timeout(single: ZkNetwork) -> None:
    single.connected(session_timeout_ms=6000)
    single.run_for(19_000)
    pings = [m for source, _, m in single.log if isinstance(m, Ping) and source == "client"]
    assert len(pings) == 9


def test_a_busy_client_sends_no_pings(single: ZkNetwork) -> None:
    client = single.connected(session_timeout_ms=6000)

    for _ in range(20):
        single.run(client.handle_request(ExistsRequest("/a")))
        single.run_for(1000)
    assert not [m for *_, m in single.log if isinstance(m, Ping)]


def test_a_client_tries_the_next_server(network: ZkNetwork) -> None:
    """Two of the three servers do not exist; an attempt takes a third of the timeout."""
    network.ensemble(1)
    network.ids = (1, 2, 3)
    client = network.client(session_timeout_ms=6000)
    network.run_until(lambda: client.is_connected, limit_ms=9000)
    assert client.server == "zk-1"


def test_a_client_tries_each_server_within_its_session_timeout(
    network: ZkNetwork,
) -> None:
    """Each server gets a share of the timeout (ZooKeeper: ``ClientCnxn``, ``connectTimeout``)."""
    network.ensemble(3, start=False)
    network.client(session_timeout_ms=6000)
    network.run_for(6000)
    asked = {to for _, to, message in network.log if isinstance(message, ConnectRequest)}
    assert asked == {"zk-1", "zk-2", "zk-3"}


def test_an_answer_to_an_attempt_that_was_given_up_is_ignored(single: ZkNetwork) -> None:
    """The client has already told the server that it closed the connection."""
    single.kill(1)
    client = single.client(session_timeout_ms=6000)
    single.run_until(lambda: bool(single.messages(ConnectionClosed)))
    (closed, *_) = single.messages(ConnectionClosed)
    single.deliver("zk-1", "client", ConnectResponse(closed.connection_id, 99, 6000))
    assert (client.is_connected, client.session_id) == (False, 0)


def test_a_client_whose_connection_is_lost_while_it_closes_is_closed(single: ZkNetwork) -> None:
    """The session of such a client is left to expire."""
    client = single.connected()
    single.cut("client", "zk-1")
    closed = client.close()
    single.run_until(lambda: closed.done)
    assert client.state is ClientState.CLOSED


def test_packets_for_an_earlier_client_of_the_node_are_refused(single: ZkNetwork) -> None:
    """A restarted process gets packets for its predecessor and closes that connection, as
    TCP does.
    """
    old = single.connected()
    single.run(old.handle_request(CreateRequest("/a")))
    session_id = old.session_id
    single.crash_client("client")
    new = single.connected()
    assert new.session_id != session_id
    single.servers[1].connections.by_session[session_id].send_ping()
    single.run_for(5)
    assert session_id not in single.servers[1].connections.by_session
    assert new.is_connected


def test_other_messages_are_not_the_clients(single: ZkNetwork) -> None:
    client = single.connected()
    assert client.on_message("zk-1", "something else") is False


def test_a_lost_answer_to_a_connect_request_is_requested_again(single: ZkNetwork) -> None:
    """The server repeats its answer and opens no second session."""
    single.lose = lambda _s, _t, message: isinstance(message, ConnectResponse)
    client = single.client(session_timeout_ms=6000)
    single.run_for(500)
    single.lose = lambda *_: False
    single.run_until(lambda: client.is_connected, limit_ms=600)
    assert list(single.servers[1].storage.tree.sessions) == [client.session_id]


def test_a_connection_request_may_be_lost_in_a_cut_network(single: ZkNetwork) -> None:
    single.isolate("client")
    client = single.client(session_timeout_ms=6000)
    single.run_for(2500)
    single.heal()
    single.run_until(lambda: client.is_connected, limit_ms=1100)
