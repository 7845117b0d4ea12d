"""Ensembles of several servers: the quorum, writes and reads, and lost servers."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    SyncRequest,
    ZkCode,
)
from fakekafka.zkfake.server.quorum_messages import Ack, Commit, Proposal, SyncFollower, SyncMode

OK = ZkCode.OK


@pytest.mark.parametrize("server_id", [1, 3])
def test_a_write_at_any_server_reaches_all(trio: ZkNetwork, server_id: int) -> None:
    client = trio.client_at(server_id)
    trio.write(client, "/a")
    trio.run_for(10)
    assert [s.children("/") for s in trio.servers.values()] == [["a"]] * 3
    assert len({s.last_zxid for s in trio.servers.values()}) == 1


def test_a_write_is_proposed_acknowledged_and_committed(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.log.clear()
    trio.write(client, "/a")
    trio.run_for(5)
    zxid = trio.servers[3].last_zxid
    assert zxid >> 32 == 1
    sent = trio.messages(Proposal, Ack, Commit)
    kinds = [type(m) for m in sent]
    assert (kinds[:2], sorted(kinds[2:], key=str)) == ([Proposal] * 2, [Ack] * 2 + [Commit] * 2)
    assert kinds.index(Ack) < kinds.index(Commit)
    assert {m.zxid for m in sent if isinstance(m, Ack | Commit)} == {zxid}


def test_a_session_reads_its_own_writes_at_a_follower(trio: ZkNetwork) -> None:
    """The read waits in the session's queue until the follower has applied the write before it."""
    client = trio.client_at(1)
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


def test_all_reads_behind_a_write_are_answered(trio: ZkNetwork) -> None:
    """No later write is needed to answer the second read."""
    client = trio.client_at(1)
    reads = GetDataRequest("/a"), ExistsRequest("/a"), GetDataRequest("/a")
    trio.log.clear()
    responses = trio.run(client.handle_requests((CreateRequest("/a", b"1"), *reads)), limit_ms=1000)
    assert [r.code for r in responses] == [OK] * 4
    assert len(trio.messages(Commit)) == 2


def test_reads_do_not_leave_the_server(trio: ZkNetwork) -> None:
    client = trio.client_at(1)
    trio.run_for(5)
    trio.log.clear()
    trio.run(client.handle_request(GetDataRequest("/")))
    assert {source for source, _, _ in trio.log} <= {"client", "zk-1"}


def test_a_follower_may_be_behind_until_synced(trio: ZkNetwork) -> None:
    """With a slow link from the leader, a read is stale until the session has synced."""
    reader, writer = trio.client_at(1, "reader"), trio.client_at(3, "writer")
    with trio.held_back("zk-3", "zk-1"):
        trio.write(writer, "/a")
        assert trio.run(reader.handle_request(ExistsRequest("/a"))).code is ZkCode.NONODE
        synced = Task(reader.handle_requests([SyncRequest("/"), ExistsRequest("/a")]))
        trio.run_for(20)
        assert not synced.done
    trio.run_until(lambda: synced.done)
    assert [r.code for r in synced.result()] == [OK, OK]


def test_a_sync_waits_for_earlier_pending_writes(trio: ZkNetwork) -> None:
    for server_id in (1, 3):
        client = trio.client_at(server_id, f"c{server_id}")
        other = trio.client_at(3, f"o{server_id}")
        path = f"/{server_id}"
        Task(other.handle_request(CreateRequest(path)))
        trio.run_for(2)
        responses = trio.run(client.handle_requests([SyncRequest("/"), ExistsRequest(path)]))
        assert [r.code for r in responses] == [OK, OK]


def test_a_multi_is_atomic_on_every_server(trio: ZkNetwork) -> None:
    client = trio.client_at(2)
    bad = MultiRequest((CreateRequest("/a"), DeleteRequest("/missing")))
    good = MultiRequest((CreateRequest("/a"), CreateRequest("/a/b")))
    responses = trio.run(client.handle_requests([bad, good]))
    assert [r.code for r in responses] == [ZkCode.NONODE, OK]
    trio.run_for(5)
    assert {tuple(s.tree()) for s in trio.servers.values()} == {("/", "/a", "/a/b")}


def test_watches_fire_at_the_follower_where_they_were_set(trio: ZkNetwork) -> None:
    client, other = trio.client_at(1), trio.client_at(2, "other")
    log: list[str] = []

    class Handler(ZnodeChangeHandler):
        def on_creation(self) -> None:
            log.append("created")

    client.register_change_handler("/a", Handler())
    trio.run(client.handle_request(ExistsRequest("/a")))
    trio.write(other, "/a")
    trio.run_for(5)
    assert log == ["created"]


def test_committed_writes_survive_the_loss_of_any_minority(network: ZkNetwork) -> None:
    network.ensemble(5)
    leader = network.settle()
    client = network.connected(session_timeout_ms=30_000)
    network.write(client, "/a", "/b")
    network.kill(leader)
    network.kill(1)
    network.settle(3)
    assert all(s.children("/") == ["a", "b"] for s in network.servers.values())
    network.write(client, "/c")


def test_nothing_is_served_without_a_quorum(trio: ZkNetwork) -> None:
    client = trio.client_at(3)
    trio.write(client, "/a")
    trio.kill(1)
    trio.kill(2)
    trio.run_for(2500)
    assert trio.serving() == []
    assert not client.is_connected
    trio.start(1)
    trio.settle(2)
    trio.write(client, "/b")


def test_a_follower_that_loses_its_leader_stops_serving(trio: ZkNetwork) -> None:
    client = trio.client_at(1)
    trio.isolate("zk-3")
    trio.run_for(11_000)
    assert 3 not in trio.serving()
    assert trio.settle(2) == 2
    trio.run(client.wait_until_connected())
    trio.write(client, "/a")


def test_an_isolated_leader_commits_nothing(trio: ZkNetwork) -> None:
    """The write that only the isolated leader logged is truncated when that server rejoins."""
    client = trio.client_at(3)
    trio.isolate("zk-3")
    trio.cuts -= {("client", "zk-3"), ("zk-3", "client")}
    task = Task(client.send_once([CreateRequest("/lost")]))
    trio.run_until(lambda: task.done)
    assert task.result()[0].code is ZkCode.CONNECTIONLOSS
    assert trio.storages[3].log[-1].request == CreateRequest("/lost")
    trio.settle(2)
    other = trio.client_at(2, "other")
    trio.write(other, "/kept")
    trio.heal()
    trio.settle(3)
    trio.run_for(100)
    assert [s.children("/") for s in trio.servers.values()] == [["kept"]] * 3
    modes = [m.mode for m in trio.messages(SyncFollower)]
    assert modes[-1] is SyncMode.TRUNC


def test_a_write_that_only_the_leader_has_logged_is_not_committed(trio: ZkNetwork) -> None:
    """The write is not committed together with an earlier write that a quorum has."""
    client = trio.client_at(3)
    proposed: list[int] = []

    def lose(_source: str, _to: str, message: Any) -> bool:
        if not isinstance(message, Proposal):
            return False
        proposed.append(message.transaction.zxid)
        return proposed[-1] > proposed[0]

    trio.lose = lose
    trio.log.clear()
    tasks = [Task(client.send_once([CreateRequest(path)])) for path in ("/a", "/b")]
    trio.run_for(50)
    assert len(set(proposed)) == 2
    assert [task.done for task in tasks] == [True, False]
    assert trio.servers[3].children("/") == ["a"]
    assert {message.zxid for message in trio.messages(Commit)} == {proposed[0]}
    trio.kill(3)
    trio.lose = lambda *_: False
    trio.settle(2)
    assert all(server.children("/") == ["a"] for server in trio.servers.values())


def test_a_write_acknowledged_by_a_quorum_survives_its_leader(trio: ZkNetwork) -> None:
    """The leader dies before it commits, but its successor has logged the write and keeps it."""
    client = trio.client_at(3)
    trio.lose = lambda _s, _t, m: isinstance(m, Ack)
    task = Task(client.send_once([CreateRequest("/a")]))
    trio.run_for(5)
    trio.kill(3)
    trio.lose = lambda *_: False
    trio.settle(2)
    assert all(s.children("/") == ["a"] for s in trio.servers.values())
    assert task.result()[0].code is ZkCode.CONNECTIONLOSS


def test_each_leadership_has_its_own_epoch(trio: ZkNetwork) -> None:
    """The epoch is the high half of every zxid, and rises with each leader."""
    client = trio.connected(session_timeout_ms=30_000)
    epochs = []
    for number in range(4):
        trio.write(client, f"/{number}")
        epochs.append(trio.servers[trio.leaders()[0]].last_zxid >> 32)
        leader = trio.leaders()[0]
        trio.kill(leader)
        trio.settle(2)
        trio.start(leader)
        trio.settle(3)
    assert epochs == [1, 2, 3, 4]


def test_an_ensemble_of_two_needs_both(network: ZkNetwork) -> None:
    network.ensemble(2)
    assert network.settle() == 2
    network.kill(1)
    network.run_for(3000)
    assert network.serving() == []
