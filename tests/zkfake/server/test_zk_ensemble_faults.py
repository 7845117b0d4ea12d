"""Faults between servers, while an ensemble is forming and afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.awaiting import Task
from fakekafka.tests.support.watch_handlers import ZnodeChangeHandler
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import (
    CreateRequest,
    CreateSession,
    GetDataRequest,
    SetDataRequest,
    ZkCode,
)
from fakekafka.zkfake.server.following import CONNECT_ATTEMPTS_MAX, Following
from fakekafka.zkfake.server.leading import Leading
from fakekafka.zkfake.server.looking import Looking
from fakekafka.zkfake.server.quorum_messages import (
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
    Txn,
    UpToDate,
)

OK = ZkCode.OK


@pytest.mark.parametrize("kind", [Proposal, Ack, Commit, LeaderPing])
def test_a_message_lost_between_servers_costs_the_link_not_the_data(
    trio: ZkNetwork, kind: type
) -> None:
    client = trio.connected(session_timeout_ms=30_000)
    lost: list[Any] = []

    def lose_once(_source: str, _to: str, message: Any) -> bool:
        if isinstance(message, kind) and len(lost) < 1:
            lost.append(message)
            return True
        return False

    trio.lose = lose_once
    for number in range(5):
        trio.write_until_done(client, f"/{number}")
        trio.run_for(1500)
    trio.settle(3)
    trio.run_for(5000)
    assert len(lost) == 1
    trees = [s.tree() for s in trio.servers.values()]
    assert trees[0] == trees[1] == trees[2]
    assert len(trees[0]) == 6


@pytest.mark.parametrize(
    "kind", [FollowerInfo, LeaderInfo, AckEpoch, SyncFollower, NewLeader, UpToDate, LinkClosed]
)
def test_a_message_lost_while_forming_delays_the_ensemble_only(
    network: ZkNetwork, kind: type
) -> None:
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
    network.write(client, "/a")


@pytest.mark.slow
def test_killing_and_restarting_any_server_at_any_step_loses_nothing() -> None:
    """One server dies after each event of electing, forming, writing and recovering."""
    victims = (1, 2, 3)
    for victim in victims:
        for steps in range(0, 160, 2):
            network = ZkNetwork()
            network.ensemble(3)
            client = network.client(session_timeout_ms=30_000)
            task = Task(client.handle_requests([CreateRequest(f"/{i}") for i in range(3)]))
            for _ in range(steps):
                network.clock.step()
            network.kill(victim)
            network.run_for(700)
            network.start(victim)
            network.run_until(lambda: task.done)  # noqa: B023
            assert {r.code for r in task.result()} <= {OK, ZkCode.NODEEXISTS}
            network.settle(3)
            network.run_for(3000)
            assert [s.children("/") for s in network.servers.values()] == [["0", "1", "2"]] * 3


def test_a_follower_gives_up_a_leader_that_does_not_run(trio: ZkNetwork) -> None:
    """A follower that elected a dead server retries a few times, then starts a new election."""
    trio.isolate("zk-1")
    trio.run_for(11_000)
    trio.log.clear()
    trio.servers[1]._on_elected(trio.servers[3].election.vote)
    trio.run_for(6000)
    assert len(trio.messages(FollowerInfo)) == CONNECT_ATTEMPTS_MAX
    assert not trio.servers[1].is_serving
    trio.heal()
    trio.settle(3)


def test_a_leader_without_followers_gives_up(trio: ZkNetwork) -> None:
    trio.kill(1)
    trio.kill(2)
    trio.servers[3]._on_elected(trio.servers[3].election.vote)
    trio.run_for(25_000)
    trio.start(1)
    trio.settle(2)


def test_a_follower_that_promised_a_higher_epoch_makes_the_leader_start_over(
    trio: ZkNetwork,
) -> None:
    trio.kill(1)
    trio.storages[1].accepted_epoch = 9
    trio.start(1)
    trio.run_for(2000)
    trio.settle(3)
    assert trio.servers[trio.leaders()[0]].storage.current_epoch == 10


@pytest.mark.parametrize("has_logged_more", [True, False])
def test_a_leader_refuses_to_lead_one_with_a_newer_epoch(
    trio: ZkNetwork, has_logged_more: bool
) -> None:
    """Discovery finds a follower with a newer history, which must lead. A newer epoch is enough,
    even if the follower has not logged more.
    """
    trio.kill(1)
    trio.kill(2)
    trio.run_for(3000)
    newer = trio.storages[1]
    newer.current_epoch = newer.accepted_epoch = 4
    if has_logged_more:
        newer.append(Txn((4 << 32) + 1, 0, 1, CreateSession(60_000)))
    assert has_logged_more == (newer.last_logged_zxid > trio.storages[3].last_logged_zxid)
    trio.start(1)
    vote = trio.servers[3].election.vote
    trio.servers[3]._on_elected(vote)
    trio.servers[1]._on_elected(vote)
    assert trio.settle(2) == 1


def test_an_epoch_is_promised_once(trio: ZkNetwork) -> None:
    """A follower that reconnects does not count for the epoch that it promised before."""
    trio.kill(1)
    trio.log.clear()
    trio.start(1)
    trio.settle(3)
    (ack,) = trio.messages(AckEpoch)
    assert ack.current_epoch == -1


def test_a_follower_whose_link_is_closed_looks_for_a_leader_at_once(trio: ZkNetwork) -> None:
    """The follower does not wait until the leader has been silent for long enough."""
    following = trio.servers[1].role
    assert isinstance(following, Following)
    trio.deliver("zk-3", "zk-1", LinkClosed(following._link.link_id))
    assert isinstance(trio.servers[1].role, Looking)
    trio.settle(3)


def test_an_epoch_that_is_used_up_is_followed_by_the_next(trio: ZkNetwork) -> None:
    client = trio.connected(session_timeout_ms=30_000)
    leading = trio.servers[3].role
    assert isinstance(leading, Leading)
    leading._next_zxid = (1 << 32) + 0xFFFFFFFE
    trio.write(client, "/a")
    trio.write_until_done(client, "/b")
    assert trio.servers[trio.leaders()[0]].last_zxid >> 32 == 2


def test_the_same_seed_gives_the_same_run() -> None:
    """Runs of the same seed have the same messages in the same order."""
    logs = []
    for _ in range(2):
        network = ZkNetwork(seed=5)
        network.ensemble(3)
        client = network.client()
        Task(client.handle_requests([CreateRequest(f"/{i}") for i in range(5)]))
        network.run_for(1000)
        network.kill(3)
        network.run_for(10_000)
        logs.append([repr(entry) for entry in network.log])
    assert logs[0] == logs[1]
    assert len(logs[0]) > 100


@pytest.mark.slow
def test_a_watcher_ends_up_with_the_last_value_whatever_fails() -> None:
    """The watcher reads only when it is notified, while servers die and messages are lost. No
    relevant event is lost over reconnections, and the watcher never sees an older value after a
    newer one.
    """
    for seed in range(12):
        network = ZkNetwork(seed)
        network.ensemble(3)
        network.settle()
        reader = network.connected("reader", session_timeout_ms=40_000)
        writer = network.connected("writer", session_timeout_ms=40_000)
        network.write(writer, "/n")
        seen: list[int] = []

        async def look(reader: Any = reader, seen: list[int] = seen) -> None:
            response = await reader.handle_request(GetDataRequest("/n"))
            seen.append(int(response.raise_if_failed().data or 0))

        class Watch(ZnodeChangeHandler):
            def on_data_change(self, look: Any = look) -> None:
                Task(look())

        reader.register_change_handler("/n", Watch())
        network.run(look())
        requests = [SetDataRequest("/n", b"%d" % number) for number in range(1, 40)]

        async def write_all(writer: Any = writer, requests: Any = requests) -> None:
            for request in requests:
                assert (await writer.handle_request(request)).code is OK

        writing = Task(write_all())
        while not writing.done:
            victim = network.rng.choice(network.ids)
            fault = network.rng.choice(["kill", "lose", "lose reader's server", "none"])
            if fault == "kill":
                network.kill(victim)
            elif fault == "lose":
                network.lose = lambda *_, network=network: network.rng.random() < 0.05
            elif fault == "lose reader's server":
                network.cut("reader", reader.server)
            network.run_for(network.rng.choice([1, 5, 20, 3000]))
            network.heal()
            network.lose = lambda *_: False
            if victim not in network.servers:
                network.start(victim)
            network.run_for(network.rng.choice([1, 5, 20, 3000]))
        network.run_until(lambda: seen[-1] == 39, limit_ms=30_000)  # noqa: B023
        assert seen == sorted(seen)
