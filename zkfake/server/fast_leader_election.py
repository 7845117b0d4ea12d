"""FastLeaderElection: how the servers of an ensemble agree on the one with the newest history.

Each server votes, first for itself, and sends its vote to all others. A server adopts a vote for a
newer history (peer epoch, then zxid, then server id); a quorum that agrees for a while
(``SETTLE_MS``) ends the election. Elections are numbered by *rounds*; a server in an old round
joins a newer one. A server that is not looking answers a looking one with the leader it follows,
so late joiners find an established leader even if their own history would beat it
(docs/kafka/zookeeper.md#leader-election-of-the-ensemble).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...protocol.host import Host
from ..timers import OneTimer
from .quorum_messages import Notification, ServerState, Vote

SETTLE_MS = 200
RESEND_MS_MIN = 200
RESEND_MS_MAX = 60_000


class _ReceivedVote(NamedTuple):
    vote: Vote
    round: int
    state: ServerState


def _votes_match(one: _ReceivedVote, other: _ReceivedVote) -> bool:
    """Return whether two votes count as the same. Servers that have finished electing may differ in
    round and in the zxid at which they joined, so only leader and epoch must match for them."""
    if ServerState.LOOKING in (one.state, other.state):
        return one.vote == other.vote and one.round == other.round
    return (one.vote.leader, one.vote.peer_epoch) == (other.vote.leader, other.vote.peer_epoch)


class FastLeaderElection:
    """The election of one server; lives as long as the server object.

    ``peers`` are the other voters (id to node name). ``on_elected`` is called with the winning
    vote when a search started by ``look_for_leader`` ends.
    """

    def __init__(
        self,
        host: Host,
        server_id: int,
        peers: dict[int, str],
        on_elected: Callable[[Vote], object],
    ) -> None:
        self._host = host
        self._server_id = server_id
        self._peers = peers
        self._on_elected = on_elected
        self.state: ServerState = ServerState.LOOKING
        self.round: int = 0
        """Number of the election that this server takes part in, or took part in last."""
        self.vote: Vote = Vote(0, 0, server_id)
        """Vote for the leader proposed while looking, otherwise for the leader found."""
        self._initial_vote = self.vote
        self._votes: dict[int, _ReceivedVote] = {}  # of this round, by sender
        self._decided_votes: dict[int, _ReceivedVote] = {}  # of servers not looking, by sender
        self._contacted: dict[str, None] = {}
        self._is_looking = False
        self._is_settling = False
        self._resend_ms = RESEND_MS_MIN
        self._timer = OneTimer(host)

    @property
    def quorum(self) -> int:
        """Smallest number of voters that is a majority."""
        return (len(self._peers) + 1) // 2 + 1

    def look_for_leader(self, initial_vote: Vote) -> None:
        """Start a new round, voting for ``initial_vote`` (this server and its logged history)."""
        self.state = ServerState.LOOKING
        self.round += 1
        self._initial_vote = initial_vote
        self._votes.clear()
        self._decided_votes.clear()
        self._is_looking = True
        self._resend_ms = RESEND_MS_MIN
        self._propose(initial_vote)
        self._wait()

    def stop(self) -> None:
        """End the search without an outcome."""
        self._is_looking = False
        self._timer.cancel()

    def update_epoch(self, epoch: int) -> None:
        """Set the epoch that the leader has opened, which late joiners are sent from now on."""
        self.vote = Vote(epoch, self.vote.zxid, self.vote.leader)

    def on_disconnect(self, name: str) -> None:
        """Forget a lost node, so that it is sent the current vote again when it returns."""
        self._contacted.pop(name, None)

    # --- sending

    def _notification(self) -> Notification:
        return Notification(self._server_id, self.state, self.round, self.vote)

    def _propose(self, vote: Vote) -> None:
        self.vote = vote
        self._votes[self._server_id] = _ReceivedVote(vote, self.round, ServerState.LOOKING)
        self._broadcast()

    def _broadcast(self) -> None:
        notification = self._notification()
        for name in self._peers.values():
            self._host.send(name, notification)

    # --- waiting

    def _wait(self) -> None:
        self._is_settling = False
        self._timer.set(self._resend_ms, self._resend)

    def _resend(self) -> None:
        self._resend_ms = min(2 * self._resend_ms, RESEND_MS_MAX)
        self._broadcast()
        self._wait()

    def _settle(self) -> None:
        self._is_settling = True
        self._timer.set(SETTLE_MS, self._settled)

    def _settled(self) -> None:
        self._finish(self.vote)

    def _finish(self, vote: Vote) -> None:
        self.stop()
        self.vote = vote
        is_leader = vote.leader == self._server_id
        self.state = ServerState.LEADING if is_leader else ServerState.FOLLOWING
        self._on_elected(vote)

    # --- receiving

    def on_notification(self, notification: Notification) -> None:
        """Take another server's vote into account, and answer if the sender needs this vote."""
        name = self._peers.get(notification.server_id)
        if name is None:
            return
        sender_is_looking = notification.state is ServerState.LOOKING
        if not self._is_looking:
            if sender_is_looking and self.state is not ServerState.LOOKING:
                self._host.send(name, self._notification())
            return
        is_behind = sender_is_looking and notification.round < self.round
        if is_behind or name not in self._contacted:
            # The sender started after this server's last broadcast, or missed the round.
            self._contacted[name] = None
            self._host.send(name, self._notification())
        if not self._is_voter(notification.vote.leader):
            return
        if self._is_settling:
            if not notification.vote.beats(self.vote):
                self._settle()
                return
            self._wait()
        if sender_is_looking:
            self._on_vote(notification)
        elif notification.state is not ServerState.OBSERVING:
            self._on_decision(notification)

    def _is_voter(self, server_id: int) -> bool:
        return server_id == self._server_id or server_id in self._peers

    def _on_vote(self, notification: Notification) -> None:
        vote = notification.vote
        if notification.round < self.round:
            return
        if notification.round > self.round:
            self.round = notification.round
            self._votes.clear()
            self._propose(vote if vote.beats(self._initial_vote) else self._initial_vote)
        elif vote.beats(self.vote):
            self._propose(vote)
        self._votes[notification.server_id] = _ReceivedVote(vote, self.round, ServerState.LOOKING)
        own_vote = _ReceivedVote(self.vote, self.round, ServerState.LOOKING)
        if self._has_quorum(self._votes, own_vote):
            self._settle()
        else:
            self._wait()

    def _on_decision(self, notification: Notification) -> None:
        received = _ReceivedVote(notification.vote, notification.round, notification.state)
        sender = notification.server_id
        if notification.round == self.round:
            self._votes[sender] = received
            if self._has_quorum(self._votes, received) and self._is_confirmed(received):
                self._finish(received.vote)
                return
        self._decided_votes[sender] = received
        if self._has_quorum(self._decided_votes, received) and self._is_confirmed(received):
            self.round = notification.round
            self._finish(received.vote)
        else:
            self._wait()

    def _has_quorum(self, votes: dict[int, _ReceivedVote], expected: _ReceivedVote) -> bool:
        agreeing = sum(1 for received in votes.values() if _votes_match(received, expected))
        return agreeing >= self.quorum

    def _is_confirmed(self, received: _ReceivedVote) -> bool:
        """Return whether the named leader itself says that it leads; otherwise a dead server might
        be elected again and again."""
        if received.vote.leader == self._server_id:
            return received.round == self.round
        leader = self._decided_votes.get(received.vote.leader)
        return leader is not None and leader.state is ServerState.LEADING
