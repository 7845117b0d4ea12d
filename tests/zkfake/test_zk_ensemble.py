"""Several servers: quorum, synchronisation, sessions that survive their server."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.zkfake.following import CONNECT_ATTEMPTS_MAX
from fakekafka.zkfake.handlers import ZnodeChangeHandler
from fakekafka.zkfake.messages import (
    CloseSession,
    ConnectRequest,
    CreateRequest,
    CreateSession,
    DeleteRequest,
    ExistsRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    SyncRequest,
    ZkCode,
)
from fakekafka.zkfake.quorum_messages import (
    Ack,
    AckEpoch,
    Commit,
    FollowerInfo,
    LeaderInfo,
    LeaderPing,
    LinkClosed,
    NewLeader,
    Proposal,
    SyncFollower,
    SyncMode,
    Txn,
    UpToDate,
)
from fakekafka.zkfake.storage import COMMITTED_LOG_TXNS, ZooKeeperStorage

OK = ZkCode.OK


@pytest.fixture
def trio(network: Any) -> Any:
    """Three servers, the third leads."""
    network.ensemble(3)
    network.settle()
    network.log.clear()
    return network


def client_at(network: Any, server_id: int, name: str = "client", **options: Any) -> Any:
    """A client connected to one server (which it knows alone, until told otherwise)."""
    ids, network.ids = network.ids, (server_id,)
    client = network.connected(name, **options)
    network.ids = ids
    return client


def write(network: Any, client: Any, *paths: str) -> None:
    for response in network.run(client.handle_requests([CreateRequest(p) for p in paths])):
        assert response.code is OK


def messages(network: Any, *types: type) -> list[tuple[str, str, Any]]:
    return [(source, to, m) for source, to, m in network.log if isinstance(m, types)]


# --- writes and reads


@pytest.mark.parametrize("server_id", [1, 3])
def test_a_write_at_any_server_reaches_all(trio: Any, server_id: int) -> None:
    client = client_at(trio, server_id)
    write(trio, client, "/a")
    trio.run_for(10)
    assert [s.children("/") for s in trio.servers.values()] == [["a"]] * 3
    assert len({s.last_zxid for s in trio.servers.values()}) == 1


def test_a_write_is_proposed_acknowledged_and_committed(trio: Any) -> None:
    client = client_at(trio, 3)
    trio.log.clear()
    write(trio, client, "/a")
    trio.run_for(5)
    zxid = trio.servers[3].last_zxid
    assert zxid >> 32 == 1
    sent = messages(trio, Proposal, Ack, Commit)
    kinds = [type(m) for *_, m in sent]
    assert (kinds[:2], sorted(kinds[2:], key=str)) == ([Proposal] * 2, [Ack] * 2 + [Commit] * 2)
    assert kinds.index(Ack) < kinds.index(Commit)
    assert {to for _, to, m in sent if isinstance(m, Commit)} == {"zk-1", "zk-2"}
    assert {m.zxid for *_, m in sent if isinstance(m, Ack | Commit)} == {zxid}


def test_a_session_reads_its_own_writes_at_a_follower(trio: Any) -> None:
    """The read waits in the session's queue until the write before it is applied here."""
    client = client_at(trio, 1)
    responses = trio.run(
        client.handle_requests(
            [
                CreateRequest("/a", b"1"),
                GetDataRequest("/a"),
                SetDataRequest("/a", b"2", 0),
                GetDataRequest("/a"),
                SyncRequest("/"),
                GetDataRequest("/a"),
            ]
        )
    )
    assert [r.code for r in responses] == [OK] * 6
    assert [responses[i].data for i in (1, 3, 5)] == [b"1", b"2", b"2"]


def test_reads_do_not_leave_the_server(trio: Any) -> None:
    client = client_at(trio, 1)
    trio.run_for(5)
    trio.log.clear()
    trio.run(client.handle_request(GetDataRequest("/")))
    assert {source for source, _, _ in trio.log} <= {"client", "zk-1"}


def test_a_follower_may_be_behind_until_synced(trio: Any) -> None:
    """A slow link from the leader: the read is stale, after sync it is not."""
    reader, writer = client_at(trio, 1, "reader"), client_at(trio, 3, "writer")
    send, held = trio.send, []

    def slow(source: str, to: str, message: Any) -> None:
        if (source, to) == ("zk-3", "zk-1"):
            held.append((source, to, message))
        else:
            send(source, to, message)

    trio.send = slow
    write(trio, writer, "/a")
    assert trio.run(reader.handle_request(ExistsRequest("/a"))).code is ZkCode.NONODE
    synced = Task(reader.handle_requests([SyncRequest("/"), ExistsRequest("/a")]))
    trio.run_for(20)
    assert not synced.done
    trio.send = send
    for item in held:
        send(*item)
    trio.run_until(lambda: synced.done)
    assert [r.code for r in synced.result()] == [OK, OK]


def test_a_sync_behind_writes_under_way_waits_for_them(trio: Any) -> None:
    for server_id in (1, 3):
        client = client_at(trio, server_id, f"c{server_id}")
        other = client_at(trio, 3, f"o{server_id}")
        path = f"/{server_id}"
        Task(other.handle_request(CreateRequest(path)))
        trio.run_for(2)
        responses = trio.run(client.handle_requests([SyncRequest("/"), ExistsRequest(path)]))
        assert [r.code for r in responses] == [OK, OK]


def test_a_multi_is_atomic_on_every_server(trio: Any) -> None:
    client = client_at(trio, 2)
    bad = MultiRequest((CreateRequest("/a"), DeleteRequest("/missing")))
    good = MultiRequest((CreateRequest("/a"), CreateRequest("/a/b")))
    responses = trio.run(client.handle_requests([bad, good]))
    assert [r.code for r in responses] == [ZkCode.NONODE, OK]
    trio.run_for(5)
    assert {tuple(s.tree()) for s in trio.servers.values()} == {("/", "/a", "/a/b")}


def test_watches_fire_at_the_follower_that_holds_them(trio: Any) -> None:
    client, other = client_at(trio, 1), client_at(trio, 2, "other")
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")

    client.register_change_handler("/a", Handler())
    trio.run(client.handle_request(ExistsRequest("/a")))
    write(trio, other, "/a")
    trio.run_for(5)
    assert log == ["created"]


# --- losing servers


def test_committed_writes_survive_the_loss_of_any_minority(network: Any) -> None:
    network.ensemble(5)
    leader = network.settle()
    client = network.connected(session_timeout_ms=30_000)
    write(network, client, "/a", "/b")
    network.kill(leader)
    network.kill(1)
    network.settle(3)
    assert all(s.children("/") == ["a", "b"] for s in network.servers.values())
    write(network, client, "/c")


def test_nothing_is_served_without_a_quorum(trio: Any) -> None:
    client = client_at(trio, 3)
    write(trio, client, "/a")
    trio.kill(1)
    trio.kill(2)
    trio.run_for(2500)
    assert trio.serving() == []
    assert not client.is_connected
    trio.start(1)
    trio.settle(2)
    write(trio, client, "/b")


def test_a_follower_that_loses_its_leader_stops_serving(trio: Any) -> None:
    client = client_at(trio, 1)
    trio.isolate("zk-3")
    trio.run_for(11_000)
    assert 3 not in trio.serving()
    assert trio.settle(2) == 2
    trio.run(client.wait_until_connected())
    write(trio, client, "/a")


def test_an_isolated_leader_commits_nothing(trio: Any) -> None:
    """What it logged alone is truncated when it comes back."""
    client = client_at(trio, 3)
    trio.isolate("zk-3")
    trio.cuts -= {("client", "zk-3"), ("zk-3", "client")}
    task = Task(client.send_once([CreateRequest("/lost")]))
    trio.run_until(lambda: task.done)
    assert task.result()[0].code is ZkCode.CONNECTIONLOSS
    assert trio.storages[3].log[-1].request == CreateRequest("/lost")
    trio.settle(2)
    other = client_at(trio, 2, "other")
    write(trio, other, "/kept")
    trio.heal()
    trio.settle(3)
    trio.run_for(100)
    assert [s.children("/") for s in trio.servers.values()] == [["kept"]] * 3
    modes = [m.mode for *_, m in messages(trio, SyncFollower)]
    assert modes[-1] is SyncMode.TRUNC


def test_a_write_acknowledged_by_a_quorum_survives_its_leader(trio: Any) -> None:
    """The leader dies before it can commit: the successor has logged the write, and keeps it."""
    client = client_at(trio, 3)
    trio.lose = lambda _s, _t, m: isinstance(m, Ack)
    task = Task(client.send_once([CreateRequest("/a")]))
    trio.run_for(5)
    trio.kill(3)
    trio.lose = lambda *_: False
    trio.settle(2)
    assert all(s.children("/") == ["a"] for s in trio.servers.values())
    assert task.result()[0].code is ZkCode.CONNECTIONLOSS


def test_each_reign_has_its_own_epoch(trio: Any) -> None:
    """The epoch is the high half of every zxid and always above the one before."""
    client = trio.connected(session_timeout_ms=30_000)
    epochs = []
    for number in range(4):
        write(trio, client, f"/{number}")
        epochs.append(trio.servers[trio.leaders()[0]].last_zxid >> 32)
        leader = trio.leaders()[0]
        trio.kill(leader)
        trio.settle(2)
        trio.start(leader)
        trio.settle(3)
    assert epochs == [1, 2, 3, 4]


def test_an_ensemble_of_two_needs_both(network: Any) -> None:
    network.ensemble(2)
    assert network.settle() == 2
    network.kill(1)
    network.run_for(3000)
    assert network.serving() == []


# --- catching up


def test_a_restarted_follower_gets_the_difference(trio: Any) -> None:
    client = client_at(trio, 3)
    write(trio, client, "/a")
    trio.run_for(5)
    trio.kill(1)
    write(trio, client, "/b", "/c")
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    (sync,) = [m for *_, m in messages(trio, SyncFollower)]
    assert (sync.mode, len(sync.transactions)) == (SyncMode.DIFF, 2)
    assert trio.servers[1].children("/") == ["a", "b", "c"]


def test_a_follower_too_far_behind_gets_a_snapshot(trio: Any) -> None:
    client = client_at(trio, 3)
    trio.run_for(5)
    trio.kill(1)
    requests = [SetDataRequest("/", b"%d" % i) for i in range(2 * COMMITTED_LOG_TXNS + 5)]
    trio.run(client.handle_requests(requests))
    write(trio, client, "/a")
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    (sync,) = [m for *_, m in messages(trio, SyncFollower)]
    assert sync.mode is SyncMode.SNAP
    assert trio.servers[1].tree() == trio.servers[3].tree()
    assert len(trio.storages[3].log) <= 2 * COMMITTED_LOG_TXNS
    write(trio, client, "/b")
    trio.run_for(5)
    snapshots = [s.storage.tree.snapshot() for s in trio.servers.values()]
    assert snapshots[0] == snapshots[1] == snapshots[2]


def test_a_server_with_an_empty_disk_is_brought_up_again(trio: Any) -> None:
    client = client_at(trio, 3)
    write(trio, client, "/a")
    trio.kill(1)
    trio.storages[1] = ZooKeeperStorage()
    trio.start(1)
    trio.settle(3)
    assert trio.servers[1].children("/") == ["a"]


def test_a_follower_without_a_common_point_asks_for_a_snapshot(trio: Any) -> None:
    """A disk that was meddled with: its log does not hold where the leader would cut it."""
    client = client_at(trio, 3)
    write(trio, client, "/a")
    trio.run_for(5)
    trio.kill(1)
    write(trio, client, "/b")
    foreign = trio.storages[1] = ZooKeeperStorage()
    foreign.append(Txn(1, 0, 9, CreateSession(60_000)))
    foreign.append(Txn((1 << 32) + 2, 0, 9, CreateRequest("/foreign")))
    foreign.append(Txn((1 << 32) + 99, 0, 9, CreateRequest("/foreign2")))
    foreign.settle()
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    modes = [m.mode for *_, m in messages(trio, SyncFollower)]
    assert modes == [SyncMode.TRUNC, SyncMode.SNAP]
    assert [m.needs_snapshot for *_, m in messages(trio, AckEpoch)] == [False, True]
    assert trio.servers[1].tree() == trio.servers[3].tree()


def test_a_joining_follower_gets_what_is_under_way(trio: Any) -> None:
    """A write that has no quorum yet is proposed to the newcomer, whose word completes it."""
    client = client_at(trio, 3)
    trio.kill(1)
    trio.run_for(5)
    trio.lose = lambda source, to, m: (source, to) == ("zk-2", "zk-3") and isinstance(m, Ack)
    task = Task(client.send_once([CreateRequest("/a")]))
    trio.run_for(5)
    assert not task.done
    trio.start(1)
    trio.run_until(lambda: task.done, limit_ms=1900)
    assert task.result()[0].code is OK


# --- sessions


def test_a_session_moves_to_another_server_with_its_ephemerals_and_watches(trio: Any) -> None:
    client = trio.connected(session_timeout_ms=12_000)
    other = client_at(trio, 3 if client.server != "zk-3" else 2, "other")
    session_id = client.session_id
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")

    client.register_change_handler("/new", Handler())
    trio.run(client.handle_requests([CreateRequest("/e", ephemeral=True), ExistsRequest("/new")]))
    trio.kill(int(client.server[-1]))
    write(trio, other, "/new")
    trio.run(client.wait_until_connected())
    trio.run_for(50)
    assert client.session_id == session_id
    assert log == ["created"]
    assert trio.servers[trio.leaders()[0]].children("/") == ["e", "new"]


def test_heartbeats_at_a_follower_keep_a_short_session_at_the_leader(trio: Any) -> None:
    """The leader's pings collect them often enough."""
    client = client_at(trio, 1, session_timeout_ms=600)
    session_id = client.session_id
    trio.run_for(20_000)
    assert client.session_id == session_id
    assert client.is_connected


def test_a_crashed_clients_session_expires_on_all_servers(trio: Any) -> None:
    client = client_at(trio, 1)
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    trio.crash_client("client")
    trio.run_for(12_000)
    assert [s.children("/") for s in trio.servers.values()] == [[]] * 3
    assert [s.storage.tree.sessions for s in trio.servers.values()] == [{}] * 3


@pytest.mark.parametrize("server_id", [1, 3])
def test_a_session_can_be_expired_at_any_server(trio: Any, server_id: int) -> None:
    client = client_at(trio, 1)
    session_id = client.session_id
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    trio.servers[server_id].expire_session(session_id)
    trio.run_until(lambda: client.session_id not in (0, session_id))
    assert trio.servers[3].children("/") == []


def test_closing_at_a_follower_ends_the_session_everywhere(trio: Any) -> None:
    client = client_at(trio, 1)
    trio.run(client.handle_request(CreateRequest("/e", ephemeral=True)))
    closed = client.close()
    trio.run_until(lambda: closed.done)
    trio.run_for(5)
    assert [s.storage.tree.sessions for s in trio.servers.values()] == [{}] * 3
    assert [len(s.connections.by_id) for s in trio.servers.values()] == [0] * 3


def test_an_expired_session_is_refused_by_a_follower(trio: Any) -> None:
    client = client_at(trio, 1)
    trio.isolate("client")
    trio.run_for(12_000)
    trio.heal()
    old = client.session_id
    trio.run_until(lambda: client.session_id not in (0, old))
    assert old not in trio.servers[1].storage.tree.sessions


def test_what_a_session_sent_before_it_moved_is_not_applied_after(trio: Any) -> None:
    """A forwarded write held back on its way is refused once the session is elsewhere."""
    client = client_at(trio, 1)
    session_id = client.session_id
    send, held = trio.send, []

    def hold(source: str, to: str, message: Any) -> None:
        if (source, to) == ("zk-1", "zk-3"):
            held.append((source, to, message))
        else:
            send(source, to, message)

    trio.send = hold
    Task(client.send_once([CreateRequest("/late")]))
    trio.run_for(3)
    send("client", "zk-2", ConnectRequest(77, session_id, 6000, 0))
    trio.run_for(10)
    trio.send = send
    for item in held:
        send(*item)
    trio.run_for(10)
    assert trio.servers[3].children("/") == []
    assert session_id not in trio.servers[1].connections.by_session
    assert session_id in trio.servers[2].connections.by_session


def test_a_session_that_moves_away_from_the_leader_closes_its_connection(trio: Any) -> None:
    client = client_at(trio, 3)
    trio.deliver("client", "zk-1", ConnectRequest(77, client.session_id, 6000, 0))
    trio.run_for(5)
    assert client.session_id not in trio.servers[3].connections.by_session
    trio.servers[3].role.submit(None, client.session_id, 0, CloseSession())
    trio.run_for(5)
    assert trio.servers[1].connections.by_session == {}


# --- faults between servers


@pytest.mark.parametrize("kind", [Proposal, Ack, Commit, LeaderPing])
def test_a_message_lost_between_servers_costs_the_link_not_the_data(trio: Any, kind: type) -> None:
    client = trio.connected(session_timeout_ms=30_000)
    lost: list[Any] = []

    def lose_once(_source: str, _to: str, message: Any) -> bool:
        if isinstance(message, kind) and len(lost) < 1:
            lost.append(message)
            return True
        return False

    trio.lose = lose_once
    for number in range(5):
        write_until_done(trio, client, f"/{number}")
        trio.run_for(1500)
    trio.settle(3)
    trio.run_for(5000)
    assert len(lost) == 1
    trees = [s.tree() for s in trio.servers.values()]
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) == 6


def write_until_done(network: Any, client: Any, path: str) -> None:
    """A create whose answer may get lost: the repetition finds the node."""
    code = network.run(client.handle_request(CreateRequest(path))).code
    assert code in (OK, ZkCode.NODEEXISTS)


@pytest.mark.parametrize(
    "kind", [FollowerInfo, LeaderInfo, AckEpoch, SyncFollower, NewLeader, UpToDate, LinkClosed]
)
def test_a_message_lost_while_forming_delays_the_ensemble_only(network: Any, kind: type) -> None:
    lost: list[Any] = []

    def lose_twice(_source: str, _to: str, message: Any) -> bool:
        if isinstance(message, kind) and len(lost) < 2:
            lost.append(message)
            return True
        return False

    network.lose = lose_twice
    network.ensemble(3)
    network.settle(3)
    client = network.connected()
    write(network, client, "/a")


@pytest.mark.slow
def test_killing_and_restarting_any_server_at_any_step_loses_nothing(make_network: Any) -> None:
    """One server dies after every single event of electing, forming, writing and moving on."""
    victims = (1, 2, 3)
    for victim in victims:
        for steps in range(0, 160, 2):
            network = make_network()
            network.ensemble(3)
            client = network.client(session_timeout_ms=30_000)
            task = Task(client.handle_requests([CreateRequest(f"/{i}") for i in range(3)]))
            for _ in range(steps):
                network.step()
            network.kill(victim)
            network.run_for(700)
            network.start(victim)
            network.run_until(lambda task=task: task.done)
            assert {r.code for r in task.result()} <= {OK, ZkCode.NODEEXISTS}
            network.settle(3)
            network.run_for(3000)
            assert [s.children("/") for s in network.servers.values()] == [["0", "1", "2"]] * 3


def test_a_leader_that_is_not_there_is_given_up(trio: Any) -> None:
    """A follower that elected a dead server asks some times, then looks again."""
    trio.isolate("zk-1")
    trio.run_for(11_000)
    trio.log.clear()
    trio.servers[1]._on_elected(trio.servers[3].election.vote)
    trio.run_for(6000)
    assert len(messages(trio, FollowerInfo)) == CONNECT_ATTEMPTS_MAX
    assert not trio.servers[1].is_serving
    trio.heal()
    trio.settle(3)


def test_a_leader_nobody_follows_gives_up(trio: Any) -> None:
    trio.kill(1)
    trio.kill(2)
    trio.servers[3]._on_elected(trio.servers[3].election.vote)
    trio.run_for(25_000)
    trio.start(1)
    trio.settle(2)


def test_a_follower_that_promised_a_higher_epoch_makes_the_leader_start_over(trio: Any) -> None:
    trio.kill(1)
    trio.storages[1].accepted_epoch = 9
    trio.start(1)
    trio.run_for(2000)
    trio.settle(3)
    assert trio.servers[trio.leaders()[0]].storage.current_epoch == 10


def test_a_leader_refuses_to_lead_one_with_more(trio: Any) -> None:
    """Discovery finds a follower with a newer history: that one must lead."""
    trio.kill(1)
    trio.kill(2)
    trio.run_for(3000)
    newer = trio.storages[1]
    newer.current_epoch = newer.accepted_epoch = 4
    newer.append(Txn((4 << 32) + 1, 0, 1, CreateSession(60_000)))
    trio.start(1)
    vote = trio.servers[3].election.vote
    trio.servers[3]._on_elected(vote)
    trio.servers[1]._on_elected(vote)
    assert trio.settle(2) == 1


def test_an_epoch_that_is_used_up_is_followed_by_the_next(trio: Any) -> None:
    client = trio.connected(session_timeout_ms=30_000)
    trio.servers[3].role._next_zxid = (1 << 32) + 0xFFFFFFFE
    write(trio, client, "/a")
    write_until_done(trio, client, "/b")
    assert trio.servers[trio.leaders()[0]].last_zxid >> 32 == 2


def test_the_same_seed_gives_the_same_run(make_network: Any) -> None:
    """Every message, in order."""
    logs = []
    for _ in range(2):
        network = make_network(seed=5)
        network.ensemble(3)
        client = network.client()
        Task(client.handle_requests([CreateRequest(f"/{i}") for i in range(5)]))
        network.run_for(1000)
        network.kill(3)
        network.run_for(10_000)
        logs.append([repr(entry) for entry in network.log])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 100
