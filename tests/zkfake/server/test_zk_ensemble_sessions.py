"""Sessions belong to the ensemble: they survive the server to which they are connected."""

from __future__ import annotations

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    ClientPacket,
    CloseSession,
    ConnectionClosed,
    ConnectRequest,
    CreateRequest,
    ExistsRequest,
    GetDataRequest,
    Ping,
    ZkCode,
)

OK = ZkCode.OK


def is_ping(message: object) -> bool:
    return isinstance(message, Ping)


def test_a_session_moves_to_another_server_with_its_ephemerals_and_watches(trio: ZkNetwork) -> None:
    client = trio.connected(session_timeout_ms=12_000)
    other = trio.client_at(3 if client.server != "zk-3" else 2, "other")
    session_id = client.session_id
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")

    client.register_change_handler("/new", Handler())
    trio.run(client.handle_requests([CreateRequest("/e", ephemeral=True), ExistsRequest("/new")]))
    trio.kill(int(client.server[-1]))
    trio.write(other, "/new")
    trio.run(client.wait_until_connected())
    trio.run_for(50)
    assert client.session_id == session_id
    assert log == ["created"]
    assert trio.servers[trio.leaders()[0]].children("/") == ["e", "new"]


def test_a_request_needs_a_session(trio: ZkNetwork) -> None:
    """A request that comes before the follower has the session's id closes the connection."""
    trio.deliver("x", "zk-1", ConnectRequest(5, 0, 6000, 0))
    trio.deliver("x", "zk-1", ClientPacket(5, 0, 0, 1, GetDataRequest("/")))
    assert trio.log[-1] == ("zk-1", "x", ConnectionClosed(5))


def test_a_follower_carries_the_heartbeats_of_all_its_clients(trio: ZkNetwork) -> None:
    """A follower reports the sessions of all its clients in its answer to the leader's ping."""
    clients = [trio.client_at(1, name, session_timeout_ms=6000) for name in ("a", "b", "c")]
    sessions = [client.session_id for client in clients]
    trio.run_for(60_000)
    assert [client.session_id for client in clients] == sessions
    assert sorted(trio.servers[3].storage.tree.sessions) == sorted(sessions)


def test_heartbeats_at_a_follower_keep_a_short_session_at_the_leader(trio: ZkNetwork) -> None:
    """The leader pings often enough to collect the heartbeats of a short session."""
    client = trio.client_at(1, session_timeout_ms=600)
    session_id = client.session_id
    trio.run_for(20_000)
    assert client.session_id == session_id
    assert client.is_connected


@pytest.mark.parametrize("server_id", [1, 3])
def test_requests_keep_a_session_as_heartbeats_do(trio: ZkNetwork, server_id: int) -> None:
    """A busy client sends no heartbeats; its requests keep the session, and a follower reports them
    to the leader.
    """
    client = trio.client_at(server_id, session_timeout_ms=600)
    session_id = client.session_id
    trio.log.clear()
    for _ in range(100):
        assert trio.run(client.handle_request(ExistsRequest("/nothing"))).code is ZkCode.NONODE
        trio.run_for(50)
    assert not [1 for source, _, message in trio.log if source == "client" and is_ping(message)]
    assert (client.session_id, client.is_connected) == (session_id, True)
    assert all(session_id in server.storage.tree.sessions for server in trio.servers.values())


@pytest.mark.parametrize("server_id", [1, 3])
def test_a_reconnection_renews_the_session_timeout(trio: ZkNetwork, server_id: int) -> None:
    """``LearnerHandler``'s REVALIDATE touches the session, as a connection to the leader does."""
    client = trio.client_at(server_id, session_timeout_ms=6000)
    session_id = client.session_id
    trio.isolate("client")
    trio.run_for(5500)
    assert not client.is_connected
    trio.heal()
    trio.run(client.wait_until_connected())
    trio.isolate("client")
    trio.run_for(5500)
    assert all(session_id in server.storage.tree.sessions for server in trio.servers.values())
    trio.run_for(3000)
    assert not any(session_id in server.storage.tree.sessions for server in trio.servers.values())


def test_a_crashed_clients_session_expires_on_all_servers(trio: ZkNetwork) -> None:
    client = trio.client_at(1)
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    trio.crash_client("client")
    trio.run_for(12_000)
    assert [s.children("/") for s in trio.servers.values()] == [[]] * 3
    assert [s.storage.tree.sessions for s in trio.servers.values()] == [{}] * 3


@pytest.mark.parametrize("server_id", [1, 3])
def test_a_session_can_be_expired_at_any_server(trio: ZkNetwork, server_id: int) -> None:
    client = trio.client_at(1)
    session_id = client.session_id
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    trio.servers[server_id].expire_session(session_id)
    trio.run_until(lambda: client.session_id not in (0, session_id))
    assert trio.servers[3].children("/") == []


def test_closing_at_a_follower_ends_the_session_everywhere(trio: ZkNetwork) -> None:
    client = trio.client_at(1)
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    closed = client.close()
    trio.run_until(lambda: closed.done)
    trio.run_for(5)
    assert [s.storage.tree.sessions for s in trio.servers.values()] == [{}] * 3
    assert [len(s.connections.by_id) for s in trio.servers.values()] == [0] * 3


def test_an_expired_session_is_refused_by_a_follower(trio: ZkNetwork) -> None:
    client = trio.client_at(1)
    trio.isolate("client")
    trio.run_for(12_000)
    trio.heal()
    old = client.session_id
    trio.run_until(lambda: client.session_id not in (0, old))
    assert old not in trio.servers[1].storage.tree.sessions


def test_a_write_sent_before_its_session_moved_is_refused_after(trio: ZkNetwork) -> None:
    """A forwarded write that is delayed on its way is refused once the session has moved."""
    client = trio.client_at(1)
    session_id = client.session_id
    with trio.held_back("zk-1", "zk-3"):
        Task(client.send_once([CreateRequest("/late")]))
        trio.run_for(3)
        trio.send("client", "zk-2", ConnectRequest(77, session_id, 6000, 0))
        trio.run_for(10)
    trio.run_for(10)
    assert trio.servers[3].children("/") == []
    assert session_id not in trio.servers[1].connections.by_session
    assert session_id in trio.servers[2].connections.by_session


def test_a_session_that_moves_away_from_the_leader_closes_its_connection(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.deliver("client", "zk-1", ConnectRequest(77, client.session_id, 6000, 0))
    trio.run_for(5)
    assert client.session_id not in trio.servers[3].connections.by_session
    trio.servers[3].role.submit(None, client.session_id, 0, CloseSession())
    trio.run_for(5)
    assert trio.servers[1].connections.by_session == {}
