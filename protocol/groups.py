"""Messages of consumer groups: members, their rebalances, committed offsets, administration."""

from __future__ import annotations

from .errors import ErrorCode
from .values import TopicPartition, message

NO_GENERATION = -1
NO_MEMBER = ""
CONSUMER_PROTOCOL_TYPE = "consumer"

# -- membership ---------------------------------------------------------------------------------


@message
class JoinGroupRequest:
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """-1 for the session timeout."""
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata), the member's favourite first."""
    reason: str | None = None


@message
class JoinGroupMember:
    """What the leader is told of a member."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


@message
class JoinGroupResponse:
    error: ErrorCode
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinGroupMember, ...] = ()
    """All members for the leader, none for the others."""
    skip_assignment: bool = False
    """The leader keeps the assignment there is (KIP-814)."""


@message
class SyncGroupRequest:
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    """None before version 5."""
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    """(member id, assignment), from the leader only."""


@message
class SyncGroupResponse:
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@message
class HeartbeatRequest:
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None


@message
class HeartbeatResponse:
    error: ErrorCode


@message
class LeavingMember:
    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


@message
class LeaveGroupRequest:
    group_id: str
    members: tuple[LeavingMember, ...]


@message
class LeftMember:
    member_id: str
    group_instance_id: str | None
    error: ErrorCode


@message
class LeaveGroupResponse:
    error: ErrorCode
    members: tuple[LeftMember, ...] = ()


# -- committed offsets --------------------------------------------------------------------------


@message
class OffsetCommitPartition:
    topic_partition: TopicPartition
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    """Version 1 only; -1 for the time of the broker."""


@message
class OffsetCommitRequest:
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    partitions: tuple[OffsetCommitPartition, ...]
    retention_time_ms: int = -1
    """Versions 2-4; -1 takes ``offsets.retention.minutes``."""


@message
class OffsetCommitResponse:
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


@message
class OffsetFetchRequest:
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """None asks for all partitions with a committed offset."""
    require_stable: bool = False


@message
class CommittedOffset:
    topic_partition: TopicPartition
    error: ErrorCode
    offset: int = -1
    leader_epoch: int = -1
    metadata: str = ""


@message
class OffsetFetchResponse:
    error: ErrorCode
    partitions: tuple[CommittedOffset, ...]


@message
class OffsetDeleteRequest:
    group_id: str
    partitions: tuple[TopicPartition, ...]


@message
class OffsetDeleteResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


# -- administration -----------------------------------------------------------------------------


@message
class DescribeGroupsRequest:
    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class DescribedMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes = b""
    assignment: bytes = b""


@message
class DescribedGroup:
    error: ErrorCode
    group_id: str
    state: str = ""
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: int | None = None
    """Bit set of ACL operations; None where they were not asked for."""


@message
class DescribeGroupsResponse:
    groups: tuple[DescribedGroup, ...]


@message
class ListGroupsRequest:
    states: tuple[str, ...] = ()
    """Empty for groups in any state (KIP-518)."""
    types: tuple[str, ...] = ()
    """Empty for groups of any type (KIP-848)."""


@message
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str
    group_type: str = "classic"


@message
class ListGroupsResponse:
    error: ErrorCode
    groups: tuple[ListedGroup, ...] = ()


@message
class DeleteGroupsRequest:
    group_ids: tuple[str, ...]


@message
class DeleteGroupsResponse:
    groups: tuple[tuple[str, ErrorCode], ...]
