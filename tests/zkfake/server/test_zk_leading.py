"""A leader on its own, whose followers are played by the test."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import CloseSession, CreateRequest, CreateSession, SyncRequest
from fakekafka.zkfake.server.leading import Leading
from fakekafka.zkfake.server.looking import Looking
from fakekafka.zkfake.server.quorum_messages import (
    Ack,
    AckEpoch,
    Commit,
    FollowerInfo,
    ForwardedRequest,
    LeaderInfo,
    LeaderPing,
    LinkClosed,
    NewLeader,
    Proposal,
    SyncDone,
    SyncFollower,
    SyncMode,
    Txn,
    Vote,
)
from fakekafka.zkfake.server.server import ZooKeeperServer
from fakekafka.zkfake.server.storage import ZooKeeperStorage

HISTORY = 1 << 32
"""Zxid that acknowledges the history of the leader of epoch 1."""


class Led:
    """Server 3 of ``size``, just elected; ``sessions`` are the timeouts of sessions in its log."""

    def __init__(self, network: ZkNetwork, size: int = 3, **sessions: int) -> None:
        self.network = network
        network.ensemble(size, start=False)
        storage = network.storages[3] = ZooKeeperStorage()
        for number, timeout_ms in enumerate(sessions.values(), 1):
            storage.append(Txn(number, 0, number, CreateSession(timeout_ms)))
        self.server: ZooKeeperServer = network.start(3)
        self.server._on_elected(Vote(0, 0, 3))
        network.log.clear()

    @property
    def leading(self) -> Leading:
        role = self.server.role
        assert isinstance(role, Leading)
        return role

    def follower(self, server_id: int, link_id: int = 0) -> FollowerByHand:
        return FollowerByHand(self.network, server_id, link_id or server_id)


class FollowerByHand:
    """Sends the leader what a test tells it to, and returns the messages on its link."""

    def __init__(self, network: ZkNetwork, server_id: int, link_id: int) -> None:
        self.network = network
        self.name = f"zk-{server_id}"
        self.server_id = server_id
        self.link_id = link_id
        self.sent = 0

    def say(self, kind: type, *fields: Any) -> None:
        number, self.sent = self.sent, self.sent + 1
        self.network.deliver(self.name, "zk-3", kind(self.link_id, number, *fields))

    def join(self, promised: int = 0, epoch: int = 0, zxid: int = 0) -> None:
        """Send all messages up to the leader's history, which is sent once a quorum has joined."""
        self.say(FollowerInfo, self.server_id, promised)
        self.say(AckEpoch, epoch, zxid)

    def follow(self) -> FollowerByHand:
        self.join()
        self.say(Ack, HISTORY)
        return self

    def write(self, path: str) -> int:
        """Forward a write that no client waits for, and return the zxid that the leader assigns."""
        self.say(ForwardedRequest, 1, 0, 0, CreateRequest(path))
        zxid: int = self.network.messages(Proposal)[-1].transaction.zxid
        return zxid

    def received(self, kind: type) -> list[Any]:
        return [
            message
            for _, to, message in self.network.log
            if to == self.name
            and isinstance(message, kind)
            and getattr(message, "link_id", None) == self.link_id
        ]


def test_the_new_epoch_is_above_all_promised_epochs(network: ZkNetwork) -> None:
    led = Led(network)
    follower = led.follower(1)
    follower.say(FollowerInfo, 1, 9)
    assert [info.new_epoch for info in follower.received(LeaderInfo)] == [10]
    assert led.server.storage.accepted_epoch == 10


def test_a_promise_given_before_does_not_count(network: ZkNetwork) -> None:
    """The follower may have promised the epoch to another leader."""
    led = Led(network)
    follower = led.follower(1)
    follower.join(epoch=-1)
    assert (follower.received(NewLeader), led.server.storage.current_epoch) == ([], 0)


def test_a_follower_that_comes_again_counts_once(network: ZkNetwork) -> None:
    """The follower's former link is closed, as two links of one server do not count twice."""
    led = Led(network, 5)
    one, other = led.follower(1), led.follower(2)
    one.say(FollowerInfo, 1, 0)
    other.say(FollowerInfo, 2, 0)
    one.say(AckEpoch, 0, 0)
    other.say(AckEpoch, 0, 0)
    one.say(Ack, HISTORY)
    again = led.follower(1, link_id=11)
    again.join(promised=1, epoch=-1)
    again.say(Ack, HISTORY)
    assert one.received(LinkClosed) == [LinkClosed(one.link_id)]
    assert not led.server.is_serving
    other.say(Ack, HISTORY)
    assert led.server.is_serving


def test_a_write_that_a_follower_had_to_truncate_does_not_count_as_logged(
    network: ZkNetwork,
) -> None:
    """A follower that logged an uncommitted write and reconnects has to truncate it, and counts
    again only after logging it once more.
    """
    led = Led(network, 5)
    one, other = led.follower(1), led.follower(2)
    one.say(FollowerInfo, 1, 0)
    other.say(FollowerInfo, 2, 0)
    for follower in (one, other):
        follower.say(AckEpoch, 0, 0)
        follower.say(Ack, HISTORY)
    zxid = other.write("/a")
    again = led.follower(1, link_id=11)
    again.join(promised=1, epoch=-1, zxid=zxid)
    assert [sync.mode for sync in again.received(SyncFollower)] == [SyncMode.TRUNC]
    again.say(Ack, HISTORY)
    other.say(Ack, zxid)
    assert network.messages(Commit) == []
    again.say(Ack, zxid)
    assert {commit.zxid for commit in network.messages(Commit)} == {zxid}


def test_a_joining_follower_gets_a_commit_during_synchronization(network: ZkNetwork) -> None:
    """The write was proposed before the follower joined, and is not part of its history."""
    led = Led(network)
    follower, newcomer = led.follower(1).follow(), led.follower(2)
    zxid = follower.write("/a")
    newcomer.join(promised=1, epoch=-1)
    follower.say(Ack, zxid)
    assert [commit.zxid for commit in newcomer.received(Commit)] == [zxid]


def test_nothing_is_proposed_before_a_quorum_has_the_history(network: ZkNetwork) -> None:
    led = Led(network)
    follower = led.follower(1)
    follower.join()
    follower.say(ForwardedRequest, 1, 0, 0, CreateRequest("/early"))
    assert led.server.storage.log == []


def test_a_follower_silent_beyond_the_limit_is_lost(network: ZkNetwork) -> None:
    """A follower is lost after five silent ticks; a leader without a quorum starts an election."""
    led = Led(network)
    follower = led.follower(1).follow()
    network.run_for(10_000)
    assert (led.server.is_serving, follower.received(LinkClosed)) == (True, [])
    network.run_for(1000)
    assert isinstance(led.server.role, Looking)
    assert follower.received(LinkClosed) == [LinkClosed(1)]


def test_a_quorum_may_be_missing_for_half_a_tick(network: ZkNetwork) -> None:
    """Short sessions make the leader check more often, but wait no less long for a quorum."""
    led = Led(network, short=600)
    follower = led.follower(1).follow()
    network.deliver("zk-1", "zk-3", LinkClosed(follower.link_id))
    network.run_for(900)
    assert led.server.is_serving
    network.run_for(200)
    assert isinstance(led.server.role, Looking)


def test_the_shortest_session_determines_how_often_heartbeats_are_collected(
    network: ZkNetwork,
) -> None:
    led = Led(network, long=30_000, short=600)
    follower = led.follower(1).follow()
    network.log.clear()
    network.run_for(500)
    assert len(follower.received(LeaderPing)) == 5


def test_a_session_that_is_being_closed_does_not_expire(network: ZkNetwork) -> None:
    """The session's end is proposed once, however long the commit takes."""
    led = Led(network, short=600)
    follower = led.follower(1).follow()
    led.server.expire_session(1)
    network.run_for(5000)
    requests = [proposal.transaction.request for proposal in follower.received(Proposal)]
    assert requests == [CloseSession()]


def test_a_leader_that_has_given_up_makes_no_proposals(network: ZkNetwork) -> None:
    """Sessions that expire together use up the epoch, and only one election begins."""
    led = Led(network, a=6000, b=6000, c=6000)
    led.follower(1).follow()
    led.leading._next_zxid = (1 << 32) + 0xFFFFFFFE
    before = led.server.election.round
    network.run_for(8100)
    assert isinstance(led.server.role, Looking)
    assert led.server.election.round == before + 1


def test_syncs_wait_for_earlier_proposals(network: ZkNetwork) -> None:
    """A committed write answers all syncs that wait for it, in their order, and no later ones."""
    led = Led(network)
    follower = led.follower(1).follow()

    def sync(xid: int) -> None:
        follower.say(ForwardedRequest, 1, 7, xid, SyncRequest("/"))

    first = follower.write("/a")
    sync(1)
    sync(2)
    second = follower.write("/b")
    sync(3)
    follower.say(Ack, first)
    assert [done.xid for done in follower.received(SyncDone)] == [1, 2]
    follower.say(Ack, second)
    assert [done.xid for done in follower.received(SyncDone)] == [1, 2, 3]


def test_a_sync_of_a_departed_client_is_not_answered(network: ZkNetwork) -> None:
    """Syncs of a follower that reconnected and of a client that left are not answered."""
    led = Led(network)
    follower = led.follower(1).follow()
    zxid = follower.write("/a")
    follower.say(ForwardedRequest, 1, 7, 1, SyncRequest("/"))
    client = led.server.connections.open("client", 77)
    client.queue.append((1, SyncRequest("/")))
    led.leading.submit(client, 1, 1, SyncRequest("/"))
    led.server.close_connection(client)
    again = led.follower(1, link_id=11)
    again.join(promised=1, epoch=-1)
    again.say(Ack, HISTORY)
    network.log.clear()
    again.say(Ack, zxid)
    assert {type(message) for *_, message in network.log} == {Commit}


def test_a_leader_that_gives_up_closes_all_links(network: ZkNetwork) -> None:
    """Followers start a new election at once, not when the leader has been silent long enough."""
    led = Led(network)
    follower, ahead = led.follower(1).follow(), led.follower(2)
    ahead.say(FollowerInfo, 2, 9)
    assert isinstance(led.server.role, Looking)
    assert follower.received(LinkClosed) == [LinkClosed(1)]
    assert ahead.received(LinkClosed) == [LinkClosed(2)]


@pytest.mark.parametrize("link_id", [1, 99])
def test_a_message_of_a_closed_link_is_answered_with_link_closed(
    network: ZkNetwork, link_id: int
) -> None:
    """A message on a closed link is answered with LinkClosed, unless it is LinkClosed itself."""
    led = Led(network)
    follower = led.follower(1).follow()
    network.deliver("zk-1", "zk-3", LinkClosed(follower.link_id))
    network.log.clear()
    network.deliver("zk-1", "zk-3", LinkClosed(link_id))
    assert network.log == []
    network.deliver("zk-1", "zk-3", Ack(link_id, 3, HISTORY))
    assert network.log == [("zk-3", "zk-1", LinkClosed(link_id))]


def test_a_leader_that_was_stopped_has_no_timers(network: ZkNetwork) -> None:
    led = Led(network, session=6000)
    led.follower(1).follow()
    network.run_for(5)
    led.leading.stop()
    assert network.clock.timers == []


def test_no_state_is_kept_for_an_ended_session(trio: ZkNetwork) -> None:
    leading = trio.servers[3].role
    assert isinstance(leading, Leading)
    client = trio.client_at(1)
    trio.write(client, "/a")
    assert list(leading._session_owners) == [client.session_id]
    closed = client.close()
    trio.run_until(lambda: closed.done)
    trio.run_for(5)
    assert leading._session_owners == {}
