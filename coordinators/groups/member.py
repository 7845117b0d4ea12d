"""A member of a classic group: the data of its JoinGroup, and the replies that it waits for."""

from __future__ import annotations

from collections.abc import Collection

from ...protocol.errors import invariant
from ...protocol.groups import DescribedMember, JoinGroupRequest
from ...protocol.values import assembled
from .effects import JoinReply, SyncReply
from .records import MemberValue

Protocols = tuple[tuple[str, bytes], ...]


@assembled
class Member:
    """A member as known to its coordinator."""

    member_id: str
    group_instance_id: str | None
    """Set for static members (KIP-345), which return under a new member id."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    """Protocols as (name, metadata), in order of preference."""
    assignment: bytes = b""
    awaiting_join: JoinReply | None = None
    """Reply to an open JoinGroup, which waits for the end of the rebalance."""
    awaiting_sync: SyncReply | None = None
    """Reply to an open SyncGroup, which waits for the leader's assignment."""
    is_new: bool = False
    """True if the member first joined in the current rebalance."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_waiting(self) -> bool:
        """True while the member has an open request, so that no heartbeat is due."""
        return self.awaiting_join is not None or self.awaiting_sync is not None

    def metadata(self, protocol: str) -> bytes:
        """Return the member's metadata for a protocol that it supports."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)

    def vote(self, candidates: Collection[str]) -> str:
        """Return the member's preferred protocol among the candidates."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        invariant(False, f"{self.member_id} supports none of {sorted(candidates)}")
        raise AssertionError

    def describe(self, protocol: str | None) -> DescribedMember:
        """Describe the member for DescribeGroups; metadata and assignment need a protocol."""
        return DescribedMember(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            b"" if protocol is None else self.metadata(protocol),
            b"" if protocol is None else self.assignment,
        )

    def to_value(self, protocol: str, assignment: bytes) -> MemberValue:
        """Return the member's part of the group's record."""
        return MemberValue(
            self.member_id,
            self.group_instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol),
            assignment,
        )


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """Return the rebalance timeout; in version 0, which lacks it, the session timeout."""
    timeout_ms = request.rebalance_timeout_ms
    return request.session_timeout_ms if timeout_ms < 0 else timeout_ms
