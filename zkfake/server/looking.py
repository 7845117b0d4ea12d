"""The role of a server that looks for a leader: it serves no clients."""

from __future__ import annotations

from typing import Any

from ..messages import SessionRequest
from .connections import ClientConnection
from .quorum_messages import FollowerInfo, LinkClosed, Vote
from .roles import RoleOwner


class Looking:
    """Role of a server in an election, whose outcome decides the server's next role."""

    is_serving = False

    def __init__(self, server: RoleOwner) -> None:
        self._server = server

    def start(self) -> None:
        server = self._server
        storage = server.storage
        server.election.look_for_leader(
            Vote(storage.current_epoch, storage.last_logged_zxid, server.server_id)
        )

    def stop(self) -> None:
        self._server.election.stop()

    def submit(
        self,
        connection: ClientConnection | None,
        session_id: int,
        xid: int,
        request: SessionRequest,
    ) -> None:
        if connection is not None:
            self._server.close_connection(connection)

    def revalidate(self, connection: ClientConnection, session_id: int) -> None:
        self._server.close_connection(connection)

    def touch(self, session_id: int) -> None:
        pass

    def on_message(self, source: str, message: Any) -> bool:
        if isinstance(message, FollowerInfo):
            # This server does not lead (yet): the follower retries, or looks elsewhere.
            self._server.host.send(source, LinkClosed(message.link_id))
        return True

    def on_disconnect(self, name: str) -> None:
        pass
