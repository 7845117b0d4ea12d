"""FastLeaderElection on its own: the winner, the timing and the notifications
(docs/kafka/zookeeper.md#leader-election-of-the-ensemble).
"""

from __future__ import annotations

import pytest
from fakekafka.tests.support.zookeeper_network import ZkNetwork
from fakekafka.zkfake.messages import CreateRequest, CreateSession
from fakekafka.zkfake.server.fast_leader_election import FastLeaderElection
from fakekafka.zkfake.server.quorum_messages import Notification, ServerState, Txn, Vote
from fakekafka.zkfake.server.storage import ZooKeeperStorage

LOOKING, FOLLOWING = ServerState.LOOKING, ServerState.FOLLOWING
LEADING, OBSERVING = ServerState.LEADING, ServerState.OBSERVING


class Voter:
    """An election among ``size`` voters, driven by the test on the network's clock."""

    def __init__(self, network: ZkNetwork, server_id: int, size: int) -> None:
        self.network = network
        network.ensemble(1)
        host = network.servers[1].host
        self.elected: list[tuple[int, Vote]] = []
        peers = {i: f"v{i}" for i in range(1, size + 1) if i != server_id}
        self.election = FastLeaderElection(
            host, server_id, peers, lambda vote: self.elected.append((self.now_ms, vote))
        )
        network.log.clear()

    @property
    def now_ms(self) -> int:
        return self.network.now_us // 1000

    def receive(
        self, server_id: int, vote: Vote, round_: int = 1, state: ServerState = LOOKING
    ) -> None:
        self.election.on_notification(Notification(server_id, state, round_, vote))

    def sent(self) -> list[tuple[str, Notification]]:
        sent = [(to, message) for _, to, message in self.network.log]
        self.network.log.clear()
        return sent


@pytest.fixture
def voter(network: ZkNetwork) -> Voter:
    """Return server 2 of 3, which is looking and has the history (epoch 1, zxid 8)."""
    voter = Voter(network, 2, 3)
    voter.election.look_for_leader(Vote(1, 8, 2))
    return voter


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Vote(2, 1, 1), Vote(1, 9, 9)),
        (Vote(1, 9, 1), Vote(1, 8, 9)),
        (Vote(1, 8, 3), Vote(1, 8, 2)),
    ],
)
def test_a_vote_wins_by_epoch_then_zxid_then_server_id(one: Vote, other: Vote) -> None:
    assert one.beats(other)
    assert not other.beats(one)
    assert not one.beats(one)


def test_an_election_starts_with_a_vote_for_oneself(voter: Voter) -> None:
    mine = Notification(2, LOOKING, 1, Vote(1, 8, 2))
    assert voter.sent() == [("v1", mine), ("v3", mine)]


def test_a_better_vote_is_adopted_and_passed_on(voter: Voter) -> None:
    voter.sent()
    voter.receive(1, Vote(1, 9, 1))
    assert voter.election.vote == Vote(1, 9, 1)
    assert voter.sent()[-2:] == [
        ("v1", Notification(2, LOOKING, 1, Vote(1, 9, 1))),
        ("v3", Notification(2, LOOKING, 1, Vote(1, 9, 1))),
    ]


def test_a_quorum_that_agrees_settles_for_200_ms(voter: Voter) -> None:
    voter.receive(1, Vote(1, 9, 1))
    voter.network.run_for(199)
    assert voter.elected == []
    voter.network.run_for(1)
    assert voter.elected == [(200, Vote(1, 9, 1))]
    assert voter.election.state is FOLLOWING


def test_the_one_voted_for_leads(voter: Voter) -> None:
    voter.receive(1, Vote(1, 8, 2))
    voter.network.run_for(200)
    assert voter.election.state is LEADING


def test_a_better_vote_while_settling_changes_the_outcome(voter: Voter) -> None:
    voter.receive(1, Vote(1, 8, 2))
    voter.network.run_for(150)
    voter.receive(3, Vote(1, 9, 3))
    voter.network.run_for(300)
    assert voter.elected == [(350, Vote(1, 9, 3))]


def test_a_worse_vote_while_settling_only_prolongs_the_wait(voter: Voter) -> None:
    voter.receive(1, Vote(1, 8, 2))
    voter.network.run_for(150)
    voter.receive(3, Vote(1, 7, 3))
    voter.network.run_for(300)
    assert voter.elected == [(350, Vote(1, 8, 2))]


def test_half_of_the_voters_are_no_quorum(network: ZkNetwork) -> None:
    voter = Voter(network, 1, 4)
    voter.election.look_for_leader(Vote(0, 0, 1))
    voter.receive(2, Vote(0, 0, 1))
    network.run_for(5000)
    assert voter.elected == []
    voter.receive(3, Vote(0, 0, 1))
    network.run_for(200)
    assert len(voter.elected) == 1


def test_without_answers_the_resend_delay_doubles_up_to_a_minute(voter: Voter) -> None:
    times: list[int] = []
    voter.sent()
    for _ in range(12):
        voter.network.run_until(lambda: bool(voter.network.log))
        times.append(voter.now_ms)
        voter.sent()
    gaps = [after - before for before, after in zip([0, *times], times, strict=False)]
    assert gaps == [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60000, 60000, 60000]


def test_a_newer_round_is_joined_with_the_initial_vote(network: ZkNetwork) -> None:
    """Votes of the old round no longer count, nor does a vote that was adopted in it."""
    voter = Voter(network, 2, 5)
    voter.election.look_for_leader(Vote(1, 8, 2))
    voter.receive(1, Vote(1, 9, 1))
    voter.receive(3, Vote(1, 7, 3), round_=4)
    assert voter.election.round == 4
    assert voter.election.vote == Vote(1, 8, 2)
    voter.receive(4, Vote(1, 8, 2), round_=4)
    network.run_for(1000)
    assert voter.elected == []


def test_a_better_vote_of_a_newer_round_is_adopted(voter: Voter) -> None:
    voter.receive(3, Vote(1, 9, 3), round_=2)
    assert (voter.election.round, voter.election.vote) == (2, Vote(1, 9, 3))


def test_an_older_round_is_ignored_and_answered_with_the_vote(voter: Voter) -> None:
    voter.receive(3, Vote(0, 0, 3), round_=5)
    voter.sent()
    voter.receive(3, Vote(9, 9, 3), round_=4)
    assert voter.election.vote == Vote(1, 8, 2)
    assert voter.sent() == [("v3", Notification(2, LOOKING, 5, Vote(1, 8, 2)))]


def test_a_new_voter_is_answered_with_the_vote(voter: Voter) -> None:
    """The voter may have started after the last broadcast, so a new connection repeats the vote."""
    voter.sent()
    voter.receive(3, Vote(1, 7, 3))
    assert voter.sent() == [("v3", Notification(2, LOOKING, 1, Vote(1, 8, 2)))]
    voter.receive(3, Vote(1, 7, 3))
    assert voter.sent() == []
    voter.election.on_disconnect("v3")
    voter.receive(3, Vote(1, 7, 3))
    assert len(voter.sent()) == 1


def test_votes_of_and_for_strangers_are_ignored(voter: Voter) -> None:
    voter.receive(9, Vote(5, 5, 3))
    voter.receive(3, Vote(5, 5, 9))
    assert voter.election.vote == Vote(1, 8, 2)


def test_observers_do_not_decide(voter: Voter) -> None:
    voter.receive(1, Vote(1, 9, 1), state=OBSERVING)
    voter.receive(3, Vote(1, 9, 1), state=OBSERVING)
    voter.receive(1, Vote(1, 9, 1), state=LEADING)
    voter.network.run_for(150)
    assert voter.elected == []


def test_a_late_joiner_follows_the_leader_in_place_even_with_a_better_history(voter: Voter) -> None:
    """Leader 1 has less history than server 2, but a quorum and the leader itself confirm it."""
    voter.receive(3, Vote(1, 5, 1), round_=7, state=FOLLOWING)
    assert voter.elected == []
    voter.receive(1, Vote(1, 5, 1), round_=7, state=LEADING)
    assert voter.elected == [(0, Vote(1, 5, 1))]
    assert (voter.election.round, voter.election.state) == (7, FOLLOWING)


def test_a_late_joiner_takes_the_round_of_the_leader_in_place(voter: Voter) -> None:
    """A late joiner takes the leader's round, whichever server is heard last."""
    voter.receive(1, Vote(1, 5, 1), round_=7, state=LEADING)
    voter.receive(3, Vote(1, 5, 1), round_=7, state=FOLLOWING)
    assert (voter.elected, voter.election.round) == ([(0, Vote(1, 5, 1))], 7)


def test_a_new_election_ignores_earlier_decisions(voter: Voter) -> None:
    """A server that followed a leader before the search must confirm that it still does."""
    voter.receive(3, Vote(1, 5, 1), round_=7, state=FOLLOWING)
    voter.election.look_for_leader(Vote(1, 8, 2))
    voter.receive(1, Vote(1, 5, 1), round_=7, state=LEADING)
    assert voter.elected == []
    voter.receive(3, Vote(1, 5, 1), round_=7, state=FOLLOWING)
    assert voter.elected == [(0, Vote(1, 5, 1))]


def test_a_new_election_ignores_earlier_votes(network: ZkNetwork) -> None:
    """Two of five decided in the previous round, and make no quorum with two of this round."""
    voter = Voter(network, 2, 5)
    voter.election.look_for_leader(Vote(1, 8, 2))
    for server_id in (1, 3):
        voter.receive(server_id, Vote(1, 9, 5), state=FOLLOWING)
    voter.election.look_for_leader(Vote(1, 8, 2))
    voter.receive(5, Vote(1, 9, 5), round_=2, state=LEADING)
    voter.receive(4, Vote(1, 9, 5), round_=2, state=FOLLOWING)
    assert voter.elected == []


def test_a_new_election_resets_the_resend_delay(voter: Voter) -> None:
    """The interval starts at 200 ms again, however long it was in the previous search."""
    voter.network.run_for(10_000)
    voter.election.look_for_leader(Vote(1, 8, 2))
    voter.sent()
    voter.network.run_for(200)
    assert len(voter.sent()) == 2


def test_a_leader_that_does_not_confirm_is_not_followed(network: ZkNetwork) -> None:
    """Two followers of a dead leader would otherwise make a quorum with this server."""
    voter = Voter(network, 1, 5)
    voter.election.look_for_leader(Vote(0, 0, 1))
    for server_id in (2, 3, 4):
        voter.receive(server_id, Vote(1, 5, 5), round_=3, state=FOLLOWING)
    assert voter.elected == []
    voter.receive(5, Vote(1, 5, 5), round_=3, state=LEADING)
    assert voter.elected == [(0, Vote(1, 5, 5))]


def test_a_leader_that_now_follows_another_is_not_followed(voter: Voter) -> None:
    """A quorum names the server as leader, and it does so itself, but says that it follows."""
    voter.receive(1, Vote(1, 9, 1), round_=7, state=FOLLOWING)
    voter.receive(3, Vote(1, 9, 1), round_=7, state=FOLLOWING)
    assert voter.elected == []


def test_followers_of_the_same_round_complete_the_election(voter: Voter) -> None:
    """The others decided while this server still looked, so it does not wait for better votes."""
    voter.receive(1, Vote(1, 9, 1), state=LEADING)
    assert voter.elected == []
    voter.receive(3, Vote(1, 9, 1), state=FOLLOWING)
    assert voter.elected == [(0, Vote(1, 9, 1))]


def test_a_server_cannot_become_leader_of_another_round(voter: Voter) -> None:
    """The votes are those of stale followers of a server that crashed and came back."""
    voter.receive(1, Vote(1, 9, 2), round_=7, state=FOLLOWING)
    voter.receive(3, Vote(1, 9, 2), round_=7, state=FOLLOWING)
    assert voter.elected == []


def test_decisions_agree_by_leader_and_epoch(voter: Voter) -> None:
    """Votes agree by leader and epoch, as late followers joined at another zxid and round."""
    voter.receive(3, Vote(4, 500, 1), round_=9, state=FOLLOWING)
    voter.receive(1, Vote(4, 5, 1), round_=7, state=LEADING)
    assert voter.elected == [(0, Vote(4, 5, 1))]


def test_a_decided_server_answers_servers_that_are_looking(voter: Voter) -> None:
    voter.receive(1, Vote(1, 9, 1))
    voter.network.run_for(200)
    voter.election.update_epoch(2)
    voter.sent()
    voter.receive(3, Vote(9, 99, 3), round_=4)
    answer = Notification(2, FOLLOWING, 1, Vote(2, 9, 1))
    assert voter.sent() == [("v3", answer)]
    voter.receive(1, Vote(2, 9, 1), state=LEADING)
    assert voter.sent() == []


def test_a_stopped_election_sends_nothing(voter: Voter) -> None:
    voter.election.stop()
    voter.sent()
    voter.receive(3, Vote(9, 99, 3))
    voter.network.run_for(100_000)
    assert (voter.sent(), voter.elected) == ([], [])


# --- whole ensembles


def test_five_servers_started_one_after_another_follow_the_third(network: ZkNetwork) -> None:
    """With equal histories the third server completes the quorum; 4 and 5 come too late to win."""
    network.ensemble(5, start=False)
    for server_id in network.ids:
        network.start(server_id)
        network.run_for(1000)
        assert network.serving() == ([] if server_id < 3 else list(range(1, server_id + 1)))
    assert network.leaders() == [3]


def test_the_newest_history_wins_over_the_largest_id(network: ZkNetwork) -> None:
    """Of the (epoch, zxid, sid) (1,9,1), (1,8,2) and (1,8,3), the first wins, so server 1 leads."""
    network.ensemble(3, start=False)
    for server_id, zxids in ((1, (8, 9)), (2, (8,)), (3, (8,))):
        storage = network.storages[server_id] = ZooKeeperStorage()
        storage.accepted_epoch = storage.current_epoch = 1
        storage.append(Txn(7, 0, 1, CreateSession(60_000)))
        for zxid in zxids:
            storage.append(Txn(zxid, 0, 1, CreateRequest(f"/{zxid}")))
        network.start(server_id)
    assert network.settle() == 1
    assert {tuple(s.tree()) for s in network.servers.values()} == {("/", "/8", "/9")}


def test_the_largest_id_wins_among_equals_started_together(network: ZkNetwork) -> None:
    network.ensemble(3)
    assert network.settle() == 3
    assert network.now_us < 300_000


def test_a_restarted_leader_with_the_largest_id_follows_its_successor(network: ZkNetwork) -> None:
    network.ensemble(3)
    network.settle()
    network.kill(3)
    assert network.settle() == 2
    network.start(3)
    assert network.settle(3) == 2
