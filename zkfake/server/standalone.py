"""The role of a server without peers: it serves at once and applies writes as they come."""

from __future__ import annotations

from typing import Any

from ..messages import CloseSession, CreateSession, SessionRequest, SyncRequest
from .connections import ClientConnection
from .quorum_messages import Txn
from .roles import RoleOwner
from .sessions import SessionTracker, tell_expiry


class Standalone:
    """Role of a server that numbers and applies writes itself; the storage's log stays empty.

    If the storage has a journal, a write is appended there before it is applied.
    """

    is_serving = True

    def __init__(self, server: RoleOwner) -> None:
        self._server = server
        self._tracker = SessionTracker(server.host, server.config.tick_time_ms, self._expire)

    def start(self) -> None:
        storage = self._server.storage
        storage.apply_all()
        # After a restart every session gets its full timeout again, except sessions whose clients
        # ended with a former process.
        for session_id, timeout_ms in sorted(storage.tree.sessions.items()):
            if session_id in storage.former_sessions:
                self._expire(session_id)
            else:
                self._tracker.add(session_id, timeout_ms)

    def stop(self) -> None:
        self._tracker.stop()

    def submit(
        self,
        connection: ClientConnection | None,
        session_id: int,
        xid: int,
        request: SessionRequest,
    ) -> None:
        server = self._server
        storage = server.storage
        tree = storage.tree
        if isinstance(request, SyncRequest):
            if connection is not None:
                server.answer_sync(connection, xid)
            return
        zxid = tree.last_zxid + 1
        wall_ms = server.host.wall_ms()
        txn = Txn(zxid, wall_ms, session_id, request)
        if storage.journal is not None:
            storage.append_to_journal(txn)
        response = tree.apply(zxid, wall_ms, session_id, request)
        if type(request) is CreateSession:
            self._tracker.add(session_id, request.session_timeout_ms)
        elif type(request) is CloseSession:
            self._tracker.remove(session_id)
        server.on_applied(txn, response, connection, xid)

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        alive = self._tracker.touch(session_id)
        timeout_ms = self._server.storage.tree.sessions[session_id] if alive else 0
        self._server.finish_session_init(connection, session_id, timeout_ms)

    def touch(self, session_id: int) -> None:
        self._tracker.touch(session_id)

    def _expire(self, session_id: int) -> None:
        server = self._server
        tell_expiry(server.host, session_id, server.storage.tree.sessions)
        self.submit(None, session_id, 0, CloseSession())

    def on_message(self, source: str, message: Any) -> bool:
        return False

    def on_disconnect(self, name: str) -> None:
        pass
