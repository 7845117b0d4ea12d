"""A connection between a follower and its leader, on which lost messages are noticed."""

from __future__ import annotations

from typing import Any

from ...protocol.host import Host
from .quorum_messages import LinkClosed


class ServerLink:
    """One end of a link; ``peer`` is the node at the other end."""

    __slots__ = ("_host", "_received", "_sent", "last_heard_ms", "link_id", "peer")

    def __init__(self, host: Host, peer: str, link_id: int) -> None:
        self._host = host
        self.peer: str = peer
        self.link_id: int = link_id
        self.last_heard_ms: int = host.now_ms()
        self._sent = 0
        self._received = 0

    def send(self, message_type: type[Any], *fields: Any) -> None:
        """Send a message of this type; its fields are link id, number, then ``fields``."""
        number = self._sent
        self._sent = number + 1
        self._host.send(self.peer, message_type(self.link_id, number, *fields))

    def accepts(self, message: Any) -> bool:
        """Return whether this message is the next one; False if messages before it were lost."""
        if message.number != self._received:
            return False
        self._received += 1
        self.last_heard_ms = self._host.now_ms()
        return True

    def close(self) -> None:
        """Tell the other end that the link is over."""
        self._host.send(self.peer, LinkClosed(self.link_id))


class Follower:
    """State that the leader keeps of one follower."""

    __slots__ = ("acked_zxid", "has_acked_epoch", "is_active", "is_sent_history", "link",
                 "server_id")  # fmt: skip

    def __init__(self, server_id: int, link: ServerLink) -> None:
        self.server_id: int = server_id
        self.link: ServerLink = link
        self.has_acked_epoch: bool = False
        self.is_sent_history: bool = False
        """True if history and ``NewLeader`` are sent; proposals and commits follow them."""
        self.is_active: bool = False
        """True if the follower has acknowledged ``NewLeader``, so that it counts for the quorum."""
        self.acked_zxid: int = 0
