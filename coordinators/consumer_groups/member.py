"""A member of a consumer-protocol group, as known to its coordinator (Kafka:
``ConsumerGroupMember``). Members are immutable: a change makes a new value."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.groups import TopicIdPartitions

Protocols = tuple[tuple[str, bytes], ...]


class MemberState(IntEnum):
    """Progress of a member towards its target assignment; the numbers are Kafka's."""

    STABLE = 0
    """The member has all partitions that its epoch assigns to it."""
    UNREVOKED_PARTITIONS = 1
    """The member must revoke partitions before it enters the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """The member is in the newest epoch, but other members still hold some of its partitions."""


class ClassicMembership(NamedTuple):
    """JoinGroup data of a classic member in a group of the consumer protocol."""

    session_timeout_ms: int
    protocols: Protocols
    """Protocols as (name, metadata), in order of preference."""


class ConsumerMember(NamedTuple):
    """A member's own metadata, its epochs and its partitions."""

    member_id: str
    member_epoch: int = 0
    previous_epoch: int = -1
    """Also accepted in a heartbeat, as the response with the new epoch may have been lost."""
    state: MemberState = MemberState.STABLE
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """Names of the subscribed topics, sorted and without duplicates."""
    topic_regex: str = ""
    """Pattern of further topics to subscribe to; empty for none."""
    server_assignor: str | None = None
    assigned: TopicIdPartitions = {}
    pending_revocation: TopicIdPartitions = {}
    """Partitions that the member must revoke, but may still read."""
    classic: ClassicMembership | None = None
    """Data of a classic member; None for a member of the consumer protocol."""

    def with_member_epoch(self, epoch: int) -> ConsumerMember:
        """Return the member in a new epoch; the current one becomes the previous epoch."""
        return self._replace(member_epoch=epoch, previous_epoch=self.member_epoch)

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether the member subscribes to a topic."""
        return topic in self.topics or (
            self.topic_regex != "" and re.fullmatch(self.topic_regex, topic) is not None
        )

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has its whole target assignment of an epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def epoch_error(self, epoch: int) -> ErrorCode:
        """Return the error for an offset commit or fetch in an epoch, or NONE."""
        if epoch == self.member_epoch:
            return ErrorCode.NONE
        is_classic = self.classic is not None
        return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
