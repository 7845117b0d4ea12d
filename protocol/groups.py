"""Messages of consumer groups: members, their rebalances, committed offsets, administration, and
the consumer protocol (KIP-848), whose coordinator assigns."""

from __future__ import annotations

from .config import CLASSIC_PROTOCOL as CLASSIC_PROTOCOL
from .config import CONSUMER_PROTOCOL as CONSUMER_PROTOCOL
from .errors import ErrorCode
from .values import Request, TopicPartition, message

NO_GENERATION = -1
NO_MEMBER = ""
CONSUMER_PROTOCOL_TYPE = "consumer"

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""Epochs that a member sends to join, to leave, and to leave for a while with its place kept."""

TopicIdPartitions = dict[str, tuple[int, ...]]
"""Topic id -> numbers of partitions in ascending order. Never changed once it is handed out."""

# -- membership ---------------------------------------------------------------------------------


@message
class JoinGroupRequest(Request["JoinGroupResponse"]):
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
    """Member as the leader of its group is told of it."""

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
class SyncGroupRequest(Request["SyncGroupResponse"]):
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
class HeartbeatRequest(Request["HeartbeatResponse"]):
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
class LeaveGroupRequest(Request["LeaveGroupResponse"]):
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
class OffsetCommitRequest(Request["OffsetCommitResponse"]):
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
class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """None asks for all partitions with a committed offset."""
    require_stable: bool = False
    member_id: str | None = None
    """Since version 9, by members of groups of the consumer protocol."""
    member_epoch: int = -1


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
    """Of the whole group. Version 1 of the API has no field for it."""
    partitions: tuple[CommittedOffset, ...]

    def as_told(self, api_version: int, version_1_tells_errors: bool) -> OffsetFetchResponse:
        """Return the answer as a client of this version hears it.

        Since Kafka 3.5 one of version 1 hears neither the group's error nor any partition
        (``OffsetFetchResponse``, ``KafkaApis``).
        """
        is_lost = api_version == 1 and not version_1_tells_errors
        if not is_lost or self.error is ErrorCode.NONE:
            return self
        return OffsetFetchResponse(ErrorCode.NONE, ())


@message
class OffsetDeleteRequest(Request["OffsetDeleteResponse"]):
    group_id: str
    partitions: tuple[TopicPartition, ...]


@message
class OffsetDeleteResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...] = ()


# -- administration -----------------------------------------------------------------------------


@message
class DescribeGroupsRequest(Request["DescribeGroupsResponse"]):
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
class ListGroupsRequest(Request["ListGroupsResponse"]):
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
class DeleteGroupsRequest(Request["DeleteGroupsResponse"]):
    group_ids: tuple[str, ...]


@message
class DeleteGroupsResponse:
    groups: tuple[tuple[str, ErrorCode], ...]


# -- the consumer protocol (KIP-848) -----------------------------------------------------------


@message
class ConsumerGroupHeartbeatRequest(Request["ConsumerGroupHeartbeatResponse"]):
    group_id: str
    member_id: str
    member_epoch: int
    """0 joins, -1 leaves, -2 leaves a static member's place to it."""
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    """-1, or None below: as in the heartbeat before."""
    topics: tuple[str, ...] | None = None
    topic_regex: str | None = None
    """Since version 1; the names of further topics match it."""
    server_assignor: str | None = None
    owned: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    """(topic id, partitions) that the member reads."""


@message
class ConsumerGroupHeartbeatResponse:
    error: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    """(topic id, partitions) that the member may read now; None where nothing has changed."""


@message
class ConsumerGroupDescribeRequest(Request["ConsumerGroupDescribeResponse"]):
    group_ids: tuple[str, ...]
    include_authorized_operations: bool = False


@message
class AssignedTopic:
    topic_id: str
    topic: str
    partitions: tuple[int, ...]


@message
class ConsumerGroupMemberDescription:
    member_id: str
    group_instance_id: str | None
    rack: str | None
    member_epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    topic_regex: str | None
    assignment: tuple[AssignedTopic, ...]
    target_assignment: tuple[AssignedTopic, ...]


@message
class ConsumerGroupDescription:
    error: ErrorCode
    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor: str = ""
    members: tuple[ConsumerGroupMemberDescription, ...] = ()
    authorized_operations: int | None = None
    """Bit set of ACL operations; None where they were not asked for."""
    error_message: str | None = None


@message
class ConsumerGroupDescribeResponse:
    groups: tuple[ConsumerGroupDescription, ...]
