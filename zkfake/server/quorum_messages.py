"""Messages between the servers of an ensemble.

``Notification`` belongs to leader election. All others belong to a link that a follower opens to
its leader; each direction of a link counts its messages from 0, so that a lost one is noticed and
the link given up, as TCP would.
"""

from __future__ import annotations

from enum import Enum

from ...protocol.values import message
from ..messages import SessionRequest, ZkCode
from ..znode import TreeSnapshot


class ServerState(Enum):
    """State of a server; observers are not modelled but may be named in a notification."""

    LOOKING = "LOOKING"
    FOLLOWING = "FOLLOWING"
    LEADING = "LEADING"
    OBSERVING = "OBSERVING"


@message
class Vote:
    """A proposed leader with what makes it eligible."""

    peer_epoch: int
    zxid: int
    leader: int
    """Server id."""

    def beats(self, other: Vote) -> bool:
        """Return whether this vote wins: peer epoch, then zxid, then server id."""
        return (self.peer_epoch, self.zxid, self.leader) > (
            other.peer_epoch,
            other.zxid,
            other.leader,
        )


@message
class Notification:
    """A server's current vote."""

    server_id: int
    state: ServerState
    round: int
    """Election round of the sender (ZooKeeper: logical clock, election epoch)."""
    vote: Vote


@message
class Txn:
    """A numbered write; every server applies the same ones in the same order."""

    zxid: int
    """Epoch in the high 32 bits, counter in the low ones."""
    time_ms: int
    session_id: int
    request: SessionRequest
    origin: int = 0
    """Server whose client asked; 0 when none did (an expired session)."""
    connection_id: int = 0
    xid: int = 0


# --- follower to leader


@message
class FollowerInfo:
    """Opening of a link."""

    link_id: int
    number: int
    server_id: int
    accepted_epoch: int


@message
class AckEpoch:
    """The follower promises to accept no older epoch, and says what it has."""

    link_id: int
    number: int
    current_epoch: int
    last_logged_zxid: int
    needs_snapshot: bool = False
    """Its log and the leader's have no common point: only a snapshot helps."""


@message
class Ack:
    """The transaction (or, with an epoch's first zxid, the new leader's history) is on disk."""

    link_id: int
    number: int
    zxid: int


@message
class FollowerPing:
    """Answer to ``LeaderPing``, with the sessions heard of since the last one."""

    link_id: int
    number: int
    touched_sessions: tuple[int, ...]


@message
class ForwardedRequest:
    """A client's write, to be numbered by the leader."""

    link_id: int
    number: int
    session_id: int
    connection_id: int
    """0 when no client asked for it."""
    xid: int
    request: SessionRequest


@message
class RevalidateSession:
    """A client came with a session of its own: is it still alive?"""

    link_id: int
    number: int
    session_id: int
    connection_id: int


# --- leader to follower


@message
class LeaderInfo:
    """The epoch the leader proposes: higher than any a quorum has accepted."""

    link_id: int
    number: int
    new_epoch: int


class SyncMode(Enum):
    DIFF = "DIFF"
    TRUNC = "TRUNC"
    SNAP = "SNAP"


@message
class SyncFollower:
    """Changes that make the follower's history equal to the leader's, up to a point."""

    link_id: int
    number: int
    mode: SyncMode
    truncate_to: int
    """TRUNC: forget what was logged after this zxid."""
    snapshot: TreeSnapshot | None
    """SNAP: the whole tree; replaces everything."""
    transactions: tuple[Txn, ...]
    """To be logged after that."""


@message
class NewLeader:
    """End of the synchronisation; the acknowledgement makes the epoch the follower's own."""

    link_id: int
    number: int
    epoch: int


@message
class UpToDate:
    """A quorum has the leader's history: apply it and serve clients."""

    link_id: int
    number: int


@message
class Proposal:
    """Log this and acknowledge."""

    link_id: int
    number: int
    transaction: Txn


@message
class Commit:
    """A quorum has logged everything up to ``zxid``: apply it."""

    link_id: int
    number: int
    zxid: int


@message
class LeaderPing:
    link_id: int
    number: int


@message
class SessionValidity:
    """Answer to ``RevalidateSession``."""

    link_id: int
    number: int
    session_id: int
    connection_id: int
    session_timeout_ms: int
    """0 when the session has expired."""


@message
class RequestRefused:
    """The leader did not number a forwarded request: its session has moved elsewhere."""

    link_id: int
    number: int
    connection_id: int
    code: ZkCode


@message
class SyncDone:
    """Answer to a forwarded sync: everything committed before it has been sent."""

    link_id: int
    number: int
    connection_id: int
    xid: int


@message
class LinkClosed:
    """Either end has given the link up."""

    link_id: int
