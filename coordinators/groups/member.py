"""One member of a group: what it said when it joined, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ...protocol.errors import invariant
from ...protocol.groups import DescribedMember, JoinGroupResponse, SyncGroupResponse
from ...protocol.host import Timer

Protocols = tuple[tuple[str, bytes], ...]
JoinAnswer = Callable[[JoinGroupResponse], object]
SyncAnswer = Callable[[SyncGroupResponse], object]


class Member:
    """A member as its coordinator knows it."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocol_type",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocol_type: str,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        """Set for static members (KIP-345), who come back under a new member id."""
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocol_type = protocol_type
        self.protocols = protocols
        """(name, metadata), the favourite first."""
        self.assignment = assignment
        self.awaiting_join: JoinAnswer | None = None
        """What answers its JoinGroup, which waits for the end of the rebalance."""
        self.awaiting_sync: SyncAnswer | None = None
        """What answers its SyncGroup, which waits for the leader's assignment."""
        self.is_new = False
        """Joined for the first time in the rebalance under way."""
        self.session: Timer | None = None
        """Ends its session; None while nothing has to be heard of it."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """Whether a request of it is open, so that no heartbeat is due."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def stop_session(self) -> None:
        """Expect no more heartbeats."""
        if self.session is not None:
            self.session.cancel()
            self.session = None

    def metadata(self, protocol: str) -> bytes:
        """Return its metadata for a protocol that it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """The first of its protocols that is among the candidates."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        invariant(False, f"{self.member_id} supports none of {sorted(candidates)}")
        raise AssertionError

    def answer_sync(self, response: SyncGroupResponse) -> bool:
        """Answer its open SyncGroup; False if there is none."""
        respond = self.awaiting_sync
        if respond is None:
            return False
        self.awaiting_sync = None
        respond(response)
        return True

    def describe(self, protocol: str | None) -> DescribedMember:
        """For DescribeGroups; with a protocol also metadata and assignment."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )
