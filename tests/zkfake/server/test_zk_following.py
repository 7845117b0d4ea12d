"""A follower on its own, which gets a leader's messages from the test."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import CreateRequest, CreateSession, SessionRequest
from fakekafka.zkfake.server.following import Following
from fakekafka.zkfake.server.journal import Entry, Saved
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
    SyncMode,
    Txn,
    UpToDate,
    Vote,
)
from fakekafka.zkfake.server.server import ZooKeeperServer
from fakekafka.zkfake.server.storage import ZooKeeperStorage

EPOCH = 1


def transaction(number: int, request: SessionRequest) -> Txn:
    """Return a transaction of session 9."""
    return Txn((EPOCH << 32) + number, 0, 9, request)


class LeaderByHand:
    """Leader 3 of three, played by the test for server 1, which has just elected it."""

    def __init__(self, network: ZkNetwork, storage: ZooKeeperStorage | None = None) -> None:
        self.network = network
        network.ensemble(3, start=False)
        network.storages[1] = storage or ZooKeeperStorage()
        self.server: ZooKeeperServer = network.start(1)
        network.log.clear()
        self.server._on_elected(Vote(0, 0, 3))
        self.link_id: int = network.messages(FollowerInfo)[-1].link_id
        self.sent = 0

    def say(self, kind: type, *fields: Any) -> None:
        number, self.sent = self.sent, self.sent + 1
        self.network.deliver("zk-3", "zk-1", kind(self.link_id, number, *fields))

    def give_history(self, *transactions: Txn) -> None:
        self.say(LeaderInfo, EPOCH)
        self.say(SyncFollower, SyncMode.DIFF, 0, None, transactions)
        self.say(NewLeader, EPOCH)

    @property
    def is_followed(self) -> bool:
        role = self.server.role
        assert isinstance(role, Following | Looking)
        return isinstance(role, Following)


@pytest.fixture
def leader(network: ZkNetwork) -> LeaderByHand:
    return LeaderByHand(network)


def test_an_epoch_below_the_one_promised_is_refused(network: ZkNetwork) -> None:
    storage = ZooKeeperStorage()
    storage.accepted_epoch = 5
    leader = LeaderByHand(network, storage)
    leader.say(LeaderInfo, 4)
    assert not leader.is_followed
    assert storage.accepted_epoch == 5
    assert network.messages(AckEpoch) == []


def test_a_new_leader_is_taken_with_its_history_alone(
    network: ZkNetwork, leader: LeaderByHand
) -> None:
    leader.say(LeaderInfo, EPOCH)
    leader.say(NewLeader, EPOCH)
    assert not leader.is_followed
    assert network.messages(Ack) == []
    assert leader.server.storage.current_epoch == 0


def test_a_history_is_taken_once(network: ZkNetwork, leader: LeaderByHand) -> None:
    leader.give_history()
    leader.say(NewLeader, EPOCH)
    assert not leader.is_followed
    assert len(network.messages(Ack)) == 1


def test_the_history_is_committed_but_not_later_proposals(leader: LeaderByHand) -> None:
    begin, create = CreateSession(6000), CreateRequest("/history")
    leader.give_history(transaction(1, begin), transaction(2, create))
    leader.say(Proposal, transaction(3, CreateRequest("/proposed")))
    leader.say(UpToDate)
    assert leader.server.children("/") == ["history"]
    leader.say(Commit, (EPOCH << 32) + 3)
    assert leader.server.children("/") == ["history", "proposed"]


def test_a_follower_takes_no_proposal_before_it_has_the_leaders_log(network: ZkNetwork) -> None:
    """A follower asks for a snapshot if it cannot truncate its own log. It does not log what
    follows the history that it did not take, and commits nothing of its own.
    """
    storage = ZooKeeperStorage()
    storage.append(Txn(7, 0, 9, CreateSession(6000)))
    leader = LeaderByHand(network, storage)
    leader.say(LeaderInfo, EPOCH)
    leader.say(SyncFollower, SyncMode.TRUNC, 5, None, ())
    leader.say(NewLeader, EPOCH)
    assert network.messages(AckEpoch)[-1].needs_snapshot
    leader.say(Proposal, transaction(1, CreateSession(6000)))
    leader.say(Commit, (EPOCH << 32) + 1)
    assert [txn.zxid for txn in storage.log] == [7]
    assert storage.tree.sessions == {}
    assert network.messages(Ack) == []


def test_a_proposal_is_logged_before_it_is_acknowledged(network: ZkNetwork) -> None:
    class FullDisk:
        is_due = False
        is_full = False

        def append(self, _entry: Entry) -> None:
            if self.is_full:
                raise OSError("the disk is full")

        def save(self, saved: Saved, entries: list[Entry]) -> None:
            raise AssertionError("no snapshot is due")

        def close(self) -> None:
            pass

    storage = ZooKeeperStorage()
    storage.journal = disk = FullDisk()
    leader = LeaderByHand(network, storage)
    leader.give_history()
    network.log.clear()
    disk.is_full = True
    with pytest.raises(OSError, match="full"):
        leader.say(Proposal, transaction(1, CreateSession(6000)))
    assert network.messages(Ack) == []


def test_a_silent_leader_is_contacted_with_growing_delays(network: ZkNetwork) -> None:
    """The follower asks eight times; the delay starts at 50 ms and doubles up to one second."""
    leader = LeaderByHand(network)
    begun_us = network.now_us
    asked_ms = [0]
    while leader.is_followed:
        count = len(network.messages(FollowerInfo))
        network.clock.step()
        if len(network.messages(FollowerInfo)) > count:
            asked_ms.append((network.now_us - begun_us) // 1000)
    assert asked_ms == [0, 50, 150, 350, 750, 1550, 2550, 3550]
    assert (network.now_us - begun_us) // 1000 == 4550


def test_a_leader_that_is_silent_for_five_ticks_is_given_up(
    network: ZkNetwork, leader: LeaderByHand
) -> None:
    """The ticks are counted from the leader's last message, whenever that came."""
    leader.give_history()
    leader.say(UpToDate)
    network.run_for(9000)
    leader.say(LeaderPing)
    network.run_for(9999)
    assert leader.is_followed
    network.run_for(1)
    assert not leader.is_followed


def test_a_leader_has_ten_ticks_for_its_history(network: ZkNetwork, leader: LeaderByHand) -> None:
    leader.say(LeaderPing)
    network.run_for(19_999)
    assert leader.is_followed
    network.run_for(1)
    assert not leader.is_followed


def test_a_disconnected_leader_is_given_up_at_once(leader: LeaderByHand) -> None:
    leader.server.on_disconnect("zk-2")
    assert leader.is_followed
    leader.server.on_disconnect("zk-3")
    assert not leader.is_followed


def test_messages_of_another_link_are_ignored(network: ZkNetwork, leader: LeaderByHand) -> None:
    network.deliver("zk-3", "zk-1", LeaderInfo(leader.link_id + 1, 0, EPOCH))
    network.deliver("zk-3", "zk-1", LinkClosed(leader.link_id + 1))
    assert leader.is_followed
    assert network.messages(AckEpoch) == []
    leader.give_history()
    assert len(network.messages(Ack)) == 1


def test_a_leader_that_is_not_leading_yet_is_contacted_again(
    network: ZkNetwork, leader: LeaderByHand
) -> None:
    """The leader closes the link, and the follower retries, as it had not begun to synchronize."""
    network.deliver("zk-3", "zk-1", LinkClosed(leader.link_id))
    assert leader.is_followed
    network.run_for(50)
    assert len(network.messages(FollowerInfo)) == 2


def test_a_lost_message_ends_the_link_at_once(network: ZkNetwork, leader: LeaderByHand) -> None:
    leader.give_history()
    leader.sent += 1
    leader.say(LeaderPing)
    assert not leader.is_followed
    assert LinkClosed(leader.link_id) in network.messages(LinkClosed)


def test_a_follower_that_was_stopped_has_no_timers(
    network: ZkNetwork, leader: LeaderByHand
) -> None:
    network.run_for(5)
    leader.server.role.stop()
    assert network.clock.timers == []


def test_a_follower_refuses_followers(network: ZkNetwork, leader: LeaderByHand) -> None:
    """A server that takes the follower for the leader is told at once that it is not."""
    network.log.clear()
    network.deliver("zk-2", "zk-1", FollowerInfo(5, 0, 2, 0))
    assert network.log == [("zk-1", "zk-2", LinkClosed(5))]
    assert leader.is_followed
