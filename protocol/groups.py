"""Messages of consumer groups: membership and rebalances, committed offsets, administration, and
the consumer protocol (KIP-848), in which the coordinator computes the assignment."""

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
"""Member epochs that request to join, to leave, and to leave temporarily as a static member."""

TopicIdPartitions = dict[str, tuple[int, ...]]
"""Topic id -> partition numbers in ascending order. Not modified once it is shared."""

# -- membership ---------------------------------------------------------------------------------


@message
class JoinGroupRequest(Request["JoinGroupResponse"]):
    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """Rebalance timeout in milliseconds; -1 stands for the session timeout."""
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    """(name, metadata) pairs in the member's order of preference."""
    reason: str | None = None


@message
class JoinGroupMember:
    """A member as described to the leader of its group."""

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
    """All members in the response to the leader; empty for the other members."""
    skip_assignment: bool = False
    """True if the leader may skip the assignment (KIP-814)."""


@message
class SyncGroupRequest(Request["SyncGroupResponse"]):
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    """Protocol type; absent below version 5."""
    protocol: str | None
    assignments: tuple[tuple[str, bytes], ...]
    """(member id, assignment) pairs; sent by the leader only."""


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
    """Commit time in milliseconds, in version 1 only; -1 for the time of the broker."""


@message
class OffsetCommitRequest(Request["OffsetCommitResponse"]):
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None
    partitions: tuple[OffsetCommitPartition, ...]
    retention_time_ms: int = -1
    """Retention time in milliseconds, in versions 2-4; -1 for ``offsets.retention.minutes``."""


@message
class OffsetCommitResponse:
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


@message
class OffsetFetchRequest(Request["OffsetFetchResponse"]):
    group_id: str
    partitions: tuple[TopicPartition, ...] | None
    """Partitions to fetch offsets of; None for all partitions with a committed offset."""
    require_stable: bool = False
    member_id: str | None = None
    """Id of a member of a consumer-protocol group; since version 9."""
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
    """Error of the whole group; version 1 of the API has no field for it."""
    partitions: tuple[CommittedOffset, ...]

    def for_version(self, api_version: int, version_1_has_errors: bool) -> OffsetFetchResponse:
        """Return the response as sent to a client that uses ``api_version``.

        Since Kafka 3.5, a version 1 response to a failed request has neither the group's error nor
        any partition (``OffsetFetchResponse``, ``KafkaApis``).
        """
        is_omitted = api_version == 1 and not version_1_has_errors
        if not is_omitted or self.error is ErrorCode.NONE:
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
    """Permitted ACL operations as a bit field; None unless requested."""


@message
class DescribeGroupsResponse:
    groups: tuple[DescribedGroup, ...]


@message
class ListGroupsRequest(Request["ListGroupsResponse"]):
    states: tuple[str, ...] = ()
    """States of the groups to list (KIP-518); empty for groups in any state."""
    types: tuple[str, ...] = ()
    """Types of the groups to list (KIP-848); empty for groups of any type."""


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
    """Epoch of the member, or 0 to join, -1 to leave, -2 to leave temporarily (static members)."""
    group_instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    """Rebalance timeout in milliseconds. -1 here, or None in a field below, means that the value
    is the same as in the previous heartbeat."""
    topics: tuple[str, ...] | None = None
    topic_regex: str | None = None
    """Regular expression for the names of further topics to subscribe to; since version 1."""
    server_assignor: str | None = None
    owned: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    """(topic id, partitions) pairs that the member currently reads."""


@message
class ConsumerGroupHeartbeatResponse:
    error: ErrorCode
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    """(topic id, partitions) pairs that the member may read now; None if unchanged."""


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
    """Permitted ACL operations as a bit field; None unless requested."""
    error_message: str | None = None


@message
class ConsumerGroupDescribeResponse:
    groups: tuple[ConsumerGroupDescription, ...]
