"""The role of a follower: adopts the leader's history, acknowledges proposals, applies commits.

Phases: *discovery* (the leader proposes an epoch, the follower promises it), *synchronisation*
(the follower adopts the leader's log and epoch, both at once, at ``NewLeader``), then *broadcast*.
Clients are served from ``UpToDate`` on. If the link breaks, the server returns to looking.
"""

from __future__ import annotations

from typing import Any

from ..messages import SessionRequest, SyncRequest
from ..timers import OneTimer
from .connections import ClientConnection
from .links import ServerLink
from .quorum_messages import (
    Ack,
    AckEpoch,
    Commit,
    FollowerInfo,
    FollowerPing,
    ForwardedRequest,
    LeaderInfo,
    LeaderPing,
    LinkClosed,
    NewLeader,
    Proposal,
    RequestRefused,
    RevalidateSession,
    SessionValidity,
    SyncDone,
    SyncFollower,
    SyncMode,
    UpToDate,
)
from .recorded import tell_tree
from .roles import RoleOwner

CONNECT_ATTEMPTS_MAX = 8
CONNECT_RETRY_MS_MIN = 50
CONNECT_RETRY_MS_MAX = 1000


class Following:
    """Role of a server that follows the server ``leader_id``."""

    def __init__(self, server: RoleOwner, leader_id: int) -> None:
        self._server = server
        self._leader = server.peers[leader_id]
        self.is_serving: bool = False
        self._link = ServerLink(server.host, self._leader, 0)
        self._is_accepted = False  # the leader has answered on this link
        self._attempts = 0
        self._sync: SyncFollower | None = None
        self._is_synced = False  # log and epoch equal the leader's
        self._synced_zxid = 0  # end of the leader's history as adopted at NewLeader
        self._touched: dict[int, None] = {}
        self._timer = OneTimer(server.host)
        self._waiting_since: tuple[int, int | None] = (0, None)
        """Time in milliseconds at which the wait for the leader began, and the event that was being
        handled then."""
        self._handlers: dict[type, Any] = {
            LeaderInfo: self._on_leader_info,
            SyncFollower: self._on_sync_follower,
            NewLeader: self._on_new_leader,
            UpToDate: self._on_up_to_date,
            Proposal: self._on_proposal,
            Commit: self._on_commit,
            LeaderPing: self._on_leader_ping,
            SessionValidity: self._on_session_validity,
            RequestRefused: self._on_request_refused,
            SyncDone: self._on_sync_done,
        }

    # --- life

    def start(self) -> None:
        self._begin_waiting()
        self._connect()

    def stop(self) -> None:
        self._timer.cancel()

    def _begin_waiting(self) -> None:
        host = self._server.host
        self._waiting_since = host.now_ms(), None if host.causes is None else host.causes.current()

    def _give_up(self) -> None:
        self._link.close()
        self._server.look()

    def _give_up_silent(self) -> None:
        """Give up a leader that did not answer in time, and report the wait as the cause."""
        host = self._server.host
        if host.causes is not None:
            since_ms, begun_by = self._waiting_since
            host.causes.record_timeout((self._leader,), begun_by, host.now_ms() - since_ms)
        self._give_up()

    def _connect(self) -> None:
        """Open a link, and retry a limited number of times while the leader does not answer."""
        if self._attempts == CONNECT_ATTEMPTS_MAX:
            self._give_up_silent()
            return
        host = self._server.host
        self._link = ServerLink(host, self._leader, host.rng.getrandbits(62))
        self._link.send(FollowerInfo, self._server.server_id, self._server.storage.accepted_epoch)
        delay_ms = min(CONNECT_RETRY_MS_MIN << self._attempts, CONNECT_RETRY_MS_MAX)
        self._attempts += 1
        self._timer.set(delay_ms, self._connect)

    def _check_leader(self) -> None:
        """Look for a new leader if the current one has been silent for too long."""
        config = self._server.config
        limit_ms = config.tick_time_ms * config.sync_limit_ticks
        silent_ms = self._server.host.now_ms() - self._link.last_heard_ms
        if silent_ms >= limit_ms:
            causes = self._server.host.causes
            if causes is not None:
                causes.record_timeout((self._leader,), causes.current(), silent_ms)
            self._give_up()
        else:
            self._timer.set(limit_ms - silent_ms, self._check_leader)

    def on_disconnect(self, name: str) -> None:
        if name == self._leader:
            self._server.look()

    # --- messages of the leader

    def on_message(self, source: str, message: Any) -> bool:
        if isinstance(message, FollowerInfo):
            self._server.host.send(source, LinkClosed(message.link_id))
            return True
        if getattr(message, "link_id", None) != self._link.link_id:
            return True
        if isinstance(message, LinkClosed):
            if self._is_accepted:
                self._server.look()
            return True  # otherwise the leader does not lead yet: the timer retries
        if not self._link.accepts(message):
            self._give_up()
            return True
        if not self._is_accepted:
            self._is_accepted = True
            config = self._server.config
            self._begin_waiting()
            self._timer.set(config.tick_time_ms * config.init_limit_ticks, self._give_up_silent)
        self._handlers[type(message)](message)
        return True

    def _on_leader_info(self, info: LeaderInfo) -> None:
        storage = self._server.storage
        if info.new_epoch < storage.accepted_epoch:
            self._give_up()
            return
        # An epoch is promised once: an acknowledgement that repeats the promise does not count.
        is_first_promise = info.new_epoch > storage.accepted_epoch
        storage.accepted_epoch = info.new_epoch
        self._link.send(
            AckEpoch, storage.current_epoch if is_first_promise else -1, storage.last_logged_zxid
        )

    def _on_sync_follower(self, sync: SyncFollower) -> None:
        self._sync = sync

    def _on_new_leader(self, new_leader: NewLeader) -> None:
        """Adopt the leader's history and its epoch, both or neither."""
        storage = self._server.storage
        sync, self._sync = self._sync, None
        if sync is None:
            self._give_up()
            return
        if sync.mode is SyncMode.SNAP and sync.snapshot is not None:
            before = storage.tree
            storage.install(sync.snapshot)
            listener = self._server.host.state_listener
            if listener is not None:
                tell_tree(listener, storage.tree, before)
        elif sync.mode is SyncMode.TRUNC and not storage.truncate_after(sync.truncate_to):
            self._link.send(AckEpoch, -1, storage.last_logged_zxid, True)
            return
        for transaction in sync.transactions:
            storage.append(transaction)
        self._is_synced = True
        storage.current_epoch = new_leader.epoch
        self._synced_zxid = storage.last_logged_zxid
        self._link.send(Ack, new_leader.epoch << 32)

    def _on_up_to_date(self, _message: UpToDate) -> None:
        server = self._server
        server.apply_committed(self._synced_zxid)
        server.election.update_epoch(server.storage.current_epoch)
        self.is_serving = True
        self._check_leader()

    def _on_proposal(self, proposal: Proposal) -> None:
        if not self._is_synced:
            return  # the leader sends it again, after the snapshot that was requested
        self._server.storage.append(proposal.transaction)
        self._link.send(Ack, proposal.transaction.zxid)

    def _on_commit(self, commit: Commit) -> None:
        if self._is_synced:
            self._server.apply_committed(commit.zxid)

    def _on_leader_ping(self, _ping: LeaderPing) -> None:
        touched, self._touched = self._touched, {}
        self._link.send(FollowerPing, tuple(touched))

    def _on_session_validity(self, validity: SessionValidity) -> None:
        connection = self._server.connections.by_id.get(validity.connection_id)
        if connection is not None:
            self._server.finish_session_init(
                connection, validity.session_id, validity.session_timeout_ms
            )

    def _on_request_refused(self, refused: RequestRefused) -> None:
        connection = self._server.connections.by_id.get(refused.connection_id)
        if connection is not None:
            self._server.close_connection(connection)

    def _on_sync_done(self, done: SyncDone) -> None:
        connection = self._server.connections.by_id.get(done.connection_id)
        if connection is not None:
            self._server.answer_sync(connection, done.xid)

    # --- clients

    def submit(
        self,
        connection: ClientConnection | None,
        session_id: int,
        xid: int,
        request: SessionRequest | SyncRequest,
    ) -> None:
        connection_id = 0 if connection is None else connection.connection_id
        self._link.send(ForwardedRequest, session_id, connection_id, xid, request)

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        self._link.send(RevalidateSession, session_id, connection.connection_id)

    def touch(self, session_id: int) -> None:
        self._touched[session_id] = None
