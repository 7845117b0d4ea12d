"""A member of a group of the consumer protocol, as its coordinator knows it (Kafka:
``ConsumerGroupMember``). A member is a value: what changes it makes another."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.groups import TopicIdPartitions

Protocols = tuple[tuple[str, bytes], ...]


class MemberState(IntEnum):
    """State of a member on the way to its target assignment; the numbers are Kafka's."""

    STABLE = 0
    """It has what its epoch gives it."""
    UNREVOKED_PARTITIONS = 1
    """It has to give partitions up before it enters the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """It is in the newest epoch; others still have partitions that are meant for it."""


class ClassicMembership(NamedTuple):
    """JoinGroup of a classic member in a group of the consumer protocol."""

    session_timeout_ms: int
    protocols: Protocols
    """(name, metadata), the favourite first."""


class ConsumerMember(NamedTuple):
    """A member: what it said of itself, its epochs and its partitions."""

    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    """Accepted in a heartbeat, too: the answer with the new epoch may have been lost."""
    state: MemberState = MemberState.STABLE
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """In the order of their names, each once."""
    topic_regex: str = ""
    """It reads topics whose names match this, too; empty for none."""
    server_assignor: str | None = None
    assigned: TopicIdPartitions = {}
    pending_revocation: TopicIdPartitions = {}
    """The partitions it was told to give up, and may still read."""
    classic: ClassicMembership | None = None
    """None for a member that speaks the consumer protocol."""

    def entering(self, epoch: int) -> ConsumerMember:
        """This member in another epoch; its present one becomes the previous one."""
        return self._replace(member_epoch=epoch, previous_epoch=self.member_epoch)

    def reads(self, topic: str) -> bool:
        """Return whether it subscribes to a topic."""
        return topic in self.topics or (
            self.topic_regex != "" and re.fullmatch(self.topic_regex, topic) is not None
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all that the target assignment of an epoch gives it."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def epoch_error(self, epoch: int) -> ErrorCode:
        """The error with which a commit or a fetch of offsets in an epoch is refused."""
        if epoch == self.member_epoch:
            return ErrorCode.NONE
        is_classic = self.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
