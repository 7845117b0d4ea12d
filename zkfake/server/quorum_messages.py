"""Messages between the servers of an ensemble.

``Notification`` belongs to leader election. All others belong to a link that a follower opens to
its leader; each direction of a link counts its messages from 0, so that a lost message is noticed
and the link given up, as TCP would.
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
    """A proposed leader, with the history that makes it eligible."""

    peer_epoch: int
    zxid: int
    leader: int
    """Id of the server proposed."""

    def beats(self, other: Vote) -> bool:
        """Return whether this vote wins: compare peer epoch, then zxid, then server id."""
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
    """A numbered write; all servers apply the same writes in the same order."""

    zxid: int
    """Epoch in the high 32 bits, counter in the low ones."""
    time_ms: int
    session_id: int
    request: SessionRequest
    origin: int = 0
    """Id of the server whose client sent the request; 0 if no client did (an expired session)."""
    connection_id: int = 0
    xid: int = 0


# --- follower to leader


@message
class FollowerInfo:
    """First message of a link, sent by the follower that opens it."""

    link_id: int
    number: int
    server_id: int
    accepted_epoch: int


@message
class AckEpoch:
    """A follower's promise to accept no older epoch, with the history that it holds."""

    link_id: int
    number: int
    current_epoch: int
    last_logged_zxid: int
    needs_snapshot: bool = False
    """True if the logs of follower and leader have no point in common, so only a snapshot helps."""


@message
class Ack:
    """The transaction (or, with an epoch's first zxid, the new leader's history) is on disk."""

    link_id: int
    number: int
    zxid: int


@message
class FollowerPing:
    """Answer to ``LeaderPing``, with the sessions heard from since the last answer."""

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
    """Connection of the client that sent the request; 0 if no client did."""
    xid: int
    request: SessionRequest


@message
class RevalidateSession:
    """Asks whether the session with which a client has connected is still alive."""

    link_id: int
    number: int
    session_id: int
    connection_id: int


# --- leader to follower


@message
class LeaderInfo:
    """The epoch that the leader proposes: higher than any that a quorum has accepted."""

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
    """With TRUNC, the zxid after which the follower's log is removed."""
    snapshot: TreeSnapshot | None
    """With SNAP, the whole tree, which replaces the follower's tree and log."""
    transactions: tuple[Txn, ...]
    """Transactions to log after the truncation or the snapshot."""


@message
class NewLeader:
    """End of the synchronisation: the follower adopts history and epoch, and acknowledges them."""

    link_id: int
    number: int
    epoch: int


@message
class UpToDate:
    """A quorum has adopted the leader's history: the follower applies it and serves clients."""

    link_id: int
    number: int


@message
class Proposal:
    """A transaction for the follower to log and acknowledge."""

    link_id: int
    number: int
    transaction: Txn


@message
class Commit:
    """A quorum has logged everything up to ``zxid``: the follower applies it."""

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
    """Timeout of the session in milliseconds; 0 if the session has expired."""


@message
class RequestRefused:
    """The leader refused a forwarded request, as its session has moved to another server."""

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
    """Sent by an end that has given up the link, or does not know it."""

    link_id: int
