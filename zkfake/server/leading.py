"""The role of a leader: opens an epoch, brings a quorum to its own history, then orders writes.

Phases: *discovery* (learn the epochs that a quorum has accepted, propose a higher epoch, have a
quorum promise it), *synchronisation* (every follower adopts the leader's history; when a quorum
has, that history is committed), *broadcast* (a write is logged by a quorum, then committed
everywhere). A follower that joins later goes through the same phases alone. A leader excluded a
quorum within the time limits returns to looking.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from ..messages import CloseSession, CreateSession, SessionRequest, SyncRequest, ZkCode
from ..timers import OneTimer
from ..znode import TreeSnapshot
from .connections import ClientConnection
from .links import Follower, ServerLink
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
    Txn,
    UpToDate,
)
from .roles import RoleOwner
from .sessions import SessionTracker, tell_expiry
from .storage import ZooKeeperStorage

_COUNTER_MAX = 0xFFFFFFFF

_Difference = tuple[SyncMode, int, TreeSnapshot | None, tuple[Txn, ...]]
"""Mode, zxid to truncate to, snapshot, and the transactions to log afterwards."""


class Leading:
    """Role of a server that leads the ensemble."""

    def __init__(self, server: RoleOwner) -> None:
        self._server = server
        self.is_serving: bool = False
        self.epoch: int = 0
        """Epoch that this leader opens; 0 until a quorum has reported its accepted epochs."""
        self._followers: dict[int, Follower] = {}  # by link id
        self._accepted_epochs = {server.server_id: server.storage.accepted_epoch}
        self._epoch_acks = {server.server_id: None}
        self._history = (server.storage.current_epoch, server.storage.last_logged_zxid)
        self._next_zxid = 0
        self._tracker = SessionTracker(server.host, server.config.tick_time_ms, self._expire)
        self._session_owners: dict[int, int] = {}
        """Server to which the client of each session is connected, as far as known."""
        self._syncs: deque[tuple[int, Follower | ClientConnection, int, int]] = deque()
        """Syncs that wait: zxid to wait for, requester, connection id, xid."""
        self._quorum_seen_ms = 0
        self._next_ping_ms = 0.0
        self._timer = OneTimer(server.host)
        self._handlers: dict[type, Any] = {
            AckEpoch: self._on_ack_epoch,
            Ack: self._on_ack,
            FollowerPing: self._on_follower_ping,
            ForwardedRequest: self._on_forwarded_request,
            RevalidateSession: self._on_revalidate_session,
        }

    # --- life

    def start(self) -> None:
        config = self._server.config
        limit_ms = config.tick_time_ms * config.init_limit_ticks
        causes = self._server.host.causes
        begun_by = None if causes is None else causes.current()

        def give_up() -> None:
            if causes is not None:
                causes.record_timeout(self._peers_except(set()), begun_by, limit_ms)
            self._give_up()

        self._timer.set(limit_ms, give_up)

    def stop(self) -> None:
        self.is_serving = False
        self._tracker.stop()
        self._timer.cancel()

    def _give_up(self) -> None:
        for follower in self._followers.values():
            follower.link.close()
        self._server.look()

    def _is_quorum(self, count: int) -> bool:
        return count >= self._server.election.quorum

    def on_disconnect(self, name: str) -> None:
        for follower in list(self._followers.values()):
            if follower.link.peer == name:
                self._remove_follower(follower)

    def _remove_follower(self, follower: Follower) -> None:
        """Drop a follower; the next ping checks whether a quorum is left."""
        follower.link.close()
        self._followers.pop(follower.link.link_id, None)

    # --- messages of followers

    def on_message(self, source: str, message: Any) -> bool:
        if isinstance(message, FollowerInfo):
            self._on_follower_info(source, message)
            return True
        link_id = getattr(message, "link_id", None)
        follower = None if link_id is None else self._followers.get(link_id)
        if follower is None:
            if link_id is not None and not isinstance(message, LinkClosed):
                self._server.host.send(source, LinkClosed(link_id))
            return True
        if isinstance(message, LinkClosed) or not follower.link.accepts(message):
            self._remove_follower(follower)
            return True
        handler = self._handlers.get(type(message))
        if handler is not None:
            handler(follower, message)
        return True

    def _on_follower_info(self, source: str, info: FollowerInfo) -> None:
        for previous in list(self._followers.values()):
            if previous.server_id == info.server_id:
                self._remove_follower(previous)
        follower = Follower(info.server_id, ServerLink(self._server.host, source, info.link_id))
        if not follower.link.accepts(info):
            follower.link.close()
            return
        self._followers[info.link_id] = follower
        follower.link.send(LeaderPing)  # shows that this server leads
        if self.epoch:
            if info.accepted_epoch > self.epoch:
                # This follower can never accept the epoch; the next election opens a higher one.
                self._server.storage.accepted_epoch = info.accepted_epoch
                self._give_up()
                return
            follower.link.send(LeaderInfo, self.epoch)
            return
        self._accepted_epochs[info.server_id] = info.accepted_epoch
        if self._is_quorum(len(self._accepted_epochs)):
            self.epoch = max(self._accepted_epochs.values()) + 1
            self._server.storage.accepted_epoch = self.epoch
            for each in self._followers.values():
                each.link.send(LeaderInfo, self.epoch)

    def _on_ack_epoch(self, follower: Follower, ack: AckEpoch) -> None:
        follower.acked_zxid = ack.last_logged_zxid
        if ack.needs_snapshot:
            self._send_history(follower, force_snapshot=True)
            return
        follower.has_acked_epoch = True
        storage = self._server.storage
        if storage.current_epoch == self.epoch:
            self._send_history(follower)
            return
        if (ack.current_epoch, ack.last_logged_zxid) > self._history:
            self._give_up()  # this follower has a newer history, so it should lead
            return
        if ack.current_epoch == -1:
            return  # the follower had promised this epoch before
        self._epoch_acks[follower.server_id] = None
        if self._is_quorum(len(self._epoch_acks)):
            storage.current_epoch = self.epoch
            self._next_zxid = (self.epoch << 32) + 1
            for each in list(self._followers.values()):
                if each.has_acked_epoch:
                    self._send_history(each)

    def _send_history(self, follower: Follower, force_snapshot: bool = False) -> None:
        """Bring a follower to this server's history, and send the proposals after it.

        The history is everything logged until a quorum has adopted it, then everything committed.
        """
        storage = self._server.storage
        end = storage.applied_position() if self.is_serving else len(storage.log)
        link = follower.link
        link.send(SyncFollower, *_difference(storage, follower.acked_zxid, end, force_snapshot))
        link.send(NewLeader, self.epoch)
        follower.is_sent_history = True
        follower.acked_zxid = storage.log[end - 1].zxid if end else storage.base_zxid
        for transaction in storage.log_between(end, len(storage.log)):
            link.send(Proposal, transaction)

    def _on_ack(self, follower: Follower, ack: Ack) -> None:
        if ack.zxid != self.epoch << 32:
            follower.acked_zxid = ack.zxid
            self._commit()
            return
        follower.is_active = True
        if self.is_serving:
            follower.link.send(UpToDate)
        elif self._is_quorum(self._active_count()):
            self._establish()

    def _active_count(self) -> int:
        """Return the number of servers that hold this leader's history, this server included."""
        return 1 + sum(follower.is_active for follower in self._followers.values())

    def _establish(self) -> None:
        """Commit the whole history, which a quorum has adopted, and begin to serve clients."""
        server = self._server
        server.apply_committed(server.storage.last_logged_zxid)
        for session_id, timeout_ms in sorted(server.storage.tree.sessions.items()):
            self._tracker.add(session_id, timeout_ms)
        server.election.update_epoch(self.epoch)
        self.is_serving = True
        for follower in self._followers.values():
            if follower.is_active:
                follower.link.send(UpToDate)
        self._quorum_seen_ms = server.host.now_ms()
        self._ping()
        # The clients of these sessions ended with a former process and cannot come back.
        for session_id in server.storage.former_sessions:
            if session_id in server.storage.tree.sessions:
                self._expire(session_id)

    # --- heartbeats

    def _ping(self) -> None:
        """Ping all followers and schedule the next ping; give up if no quorum answers any more."""
        server = self._server
        tick_ms = server.config.tick_time_ms
        now_ms = server.host.now_ms()
        limit_ms = tick_ms * server.config.sync_limit_ticks
        for follower in list(self._followers.values()):
            if now_ms - follower.link.last_heard_ms > limit_ms:
                self._remove_follower(follower)
        if self._is_quorum(self._active_count()):
            self._quorum_seen_ms = now_ms
        elif now_ms - self._quorum_seen_ms >= tick_ms // 2:
            self._tell_silence(now_ms - self._quorum_seen_ms + limit_ms)
            self._give_up()
            return
        for follower in self._followers.values():
            follower.link.send(LeaderPing)
        interval_ms = self._ping_interval_ms()
        self._next_ping_ms = now_ms + interval_ms
        self._timer.set(interval_ms, self._ping)

    def _tell_silence(self, silent_ms: int) -> None:
        """Report to the recorder of the run that too few followers are heard from."""
        causes = self._server.host.causes
        if causes is not None:
            heard = {follower.server_id for follower in self._followers.values()}
            causes.record_timeout(self._peers_except(heard), causes.current(), silent_ms)

    def _peers_except(self, heard: set[int]) -> list[str]:
        server = self._server
        excluded = heard | {server.server_id}
        return [name for server_id, name in server.peers.items() if server_id not in excluded]

    def _ping_interval_ms(self) -> float:
        """Return half a tick, or less if short sessions need their heartbeats passed on faster."""
        half_tick_ms = self._server.config.tick_time_ms / 2
        timeouts = self._server.storage.tree.sessions.values()
        return min(half_tick_ms, max(1, min(timeouts) / 6)) if timeouts else half_tick_ms

    def _ping_by(self, delay_ms: float) -> None:
        """Ping after ``delay_ms`` at the latest, as a new session may need."""
        by_ms = self._server.host.now_ms() + delay_ms
        if self._next_ping_ms > by_ms:
            self._next_ping_ms = by_ms
            self._timer.set(delay_ms, self._ping)

    def _on_follower_ping(self, _follower: Follower, ping: FollowerPing) -> None:
        self._tracker.touch_all(ping.touched_sessions)

    # --- sessions

    def touch(self, session_id: int) -> None:
        self._tracker.touch(session_id)

    def _expire(self, session_id: int) -> None:
        server = self._server
        tell_expiry(server.host, session_id, server.storage.tree.sessions)
        self._propose(session_id, CloseSession())

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        timeout_ms = self._validate(session_id, self._server.server_id)
        self._server.finish_session_init(connection, session_id, timeout_ms)

    def _on_revalidate_session(self, follower: Follower, request: RevalidateSession) -> None:
        session_id = request.session_id
        timeout_ms = self._validate(session_id, follower.server_id)
        local = self._server.connections.by_session.get(session_id)
        if local is not None:
            self._server.close_connection(local)
        follower.link.send(SessionValidity, session_id, request.connection_id, timeout_ms)

    def _validate(self, session_id: int, server_id: int) -> int:
        """Note which server a session's client is connected to; return the session's timeout in
        milliseconds, or 0 if the session is over."""
        if not self._tracker.touch(session_id):
            return 0
        self._session_owners[session_id] = server_id
        return self._server.storage.tree.sessions.get(session_id, 0)

    # --- writes

    def submit(
        self,
        connection: ClientConnection | None,
        session_id: int,
        xid: int,
        request: SessionRequest,
    ) -> None:
        server_id = self._server.server_id
        if connection is None:
            self._propose(session_id, request)
        elif isinstance(request, SyncRequest):
            self._sync(connection, connection.connection_id, xid)
        elif self._is_connected_to(session_id, server_id):
            self._propose(session_id, request, server_id, connection.connection_id, xid)
        else:
            self._server.close_connection(connection)

    def _on_forwarded_request(self, follower: Follower, forwarded: ForwardedRequest) -> None:
        request = forwarded.request
        session_id = forwarded.session_id
        connection_id = forwarded.connection_id
        if isinstance(request, SyncRequest):
            self._sync(follower, connection_id, forwarded.xid)
        elif connection_id == 0:
            self._propose(session_id, request)
        elif self._is_connected_to(session_id, follower.server_id):
            self._propose(session_id, request, follower.server_id, connection_id, forwarded.xid)
        else:
            follower.link.send(RequestRefused, connection_id, ZkCode.SESSIONMOVED)

    def _is_connected_to(self, session_id: int, server_id: int) -> bool:
        """Return whether the session's client is connected to that server; a new session's is.

        Requests that a client sent before it changed servers must not be applied after newer ones.
        """
        return self._session_owners.setdefault(session_id, server_id) == server_id

    def _propose(
        self,
        session_id: int,
        request: SessionRequest,
        origin: int = 0,
        connection_id: int = 0,
        xid: int = 0,
    ) -> None:
        if not self.is_serving:
            return
        if isinstance(request, CloseSession):
            self._tracker.remove(session_id)
        zxid = self._next_zxid
        if zxid & _COUNTER_MAX == _COUNTER_MAX:
            self._give_up()  # the epoch has no zxid left
            return
        self._next_zxid = zxid + 1
        wall_ms = self._server.host.wall_ms()
        transaction = Txn(zxid, wall_ms, session_id, request, origin, connection_id, xid)
        self._server.storage.append(transaction)
        for follower in self._followers.values():
            if follower.is_sent_history:
                follower.link.send(Proposal, transaction)

    def _commit(self) -> None:
        """Commit the transactions that a quorum has logged by now."""
        storage = self._server.storage
        next_unapplied = storage.next_unapplied
        if next_unapplied is None or not self.is_serving:
            return
        acked = [f.acked_zxid for f in self._followers.values() if f.is_active]
        acked.append(storage.last_logged_zxid)
        acked.sort(reverse=True)
        quorum = self._server.election.quorum
        if len(acked) < quorum or acked[quorum - 1] < next_unapplied.zxid:
            return
        zxid = acked[quorum - 1]
        for follower in self._followers.values():
            if follower.is_sent_history:
                follower.link.send(Commit, zxid)
        first = storage.applied_position()
        for txn in storage.log_between(first, storage.position_at_most(zxid)):
            self._server.apply_committed(txn.zxid)
            if isinstance(txn.request, CreateSession):
                self._tracker.add(txn.session_id, txn.request.session_timeout_ms)
                self._ping_by(txn.request.session_timeout_ms / 6)
            elif isinstance(txn.request, CloseSession):
                self._session_owners.pop(txn.session_id, None)
        while self._syncs and self._syncs[0][0] <= zxid:
            _, requester, connection_id, xid = self._syncs.popleft()
            self._answer_sync(requester, connection_id, xid)

    def _sync(self, requester: Follower | ClientConnection, connection_id: int, xid: int) -> None:
        storage = self._server.storage
        if storage.next_unapplied is None:
            self._answer_sync(requester, connection_id, xid)
        else:
            self._syncs.append((storage.last_logged_zxid, requester, connection_id, xid))

    def _answer_sync(
        self, requester: Follower | ClientConnection, connection_id: int, xid: int
    ) -> None:
        if isinstance(requester, Follower):
            if requester.link.link_id in self._followers:
                requester.link.send(SyncDone, connection_id, xid)
        else:
            self._server.answer_sync(requester, xid)


def _difference(
    storage: ZooKeeperStorage, follower_zxid: int, end: int, force_snapshot: bool
) -> _Difference:
    """Return the changes that bring a follower, which has logged up to ``follower_zxid``, to
    position ``end`` of the log (``LearnerHandler``).

    Transactions that only the follower has are truncated. If the leader's log does not reach back
    far enough, the follower gets the whole tree.
    """
    if force_snapshot or follower_zxid < storage.base_zxid:
        start = storage.applied_position()
        return SyncMode.SNAP, 0, storage.tree.snapshot(), storage.log_between(start, end)
    position = storage.position_of(follower_zxid)
    if position is not None and position <= end:
        return SyncMode.DIFF, 0, None, storage.log_between(position, end)
    start = min(storage.position_at_most(follower_zxid), end)
    common = storage.log[start - 1].zxid if start else storage.base_zxid
    return SyncMode.TRUNC, common, None, storage.log_between(start, end)
