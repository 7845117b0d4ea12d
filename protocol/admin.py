"""Messages of the admin APIs, as a broker or the controller handles them."""

from __future__ import annotations

from .control import PREFERRED as PREFERRED
from .control import UNCLEAN as UNCLEAN
from .errors import ErrorCode
from .values import Request, TopicPartition, message


@message
class NewTopic:
    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignment: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """(partition, replicas) pairs, given instead of the two counts."""
    config: tuple[tuple[str, str | None], ...] = ()


@message
class CreateTopicsRequest(Request["CreateTopicsResponse"]):
    topics: tuple[NewTopic, ...]
    timeout_ms: int = 30000
    validate_only: bool = False


@message
class TopicResult:
    name: str
    error: ErrorCode
    error_message: str | None = None
    topic_id: str = ""
    partitions: int = -1
    replication_factor: int = -1
    config: tuple[tuple[str, str | None], ...] = ()
    """(name, value) pairs of the topic's own configuration."""
    config_entries: tuple[ConfigEntry, ...] = ()
    """All values in force for the topic, with their sources (KIP-525); empty if not computed."""


@message
class CreateTopicsResponse:
    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


@message
class DeleteTopicsRequest(Request["DeleteTopicsResponse"]):
    topics: tuple[str, ...]
    timeout_ms: int = 30000
    topic_ids: tuple[str, ...] = ()
    nameless: int = 0
    """Number of requested topics with neither a name nor an id."""
    names_with_ids: tuple[tuple[str, str], ...] = ()
    """Requested topics with both a name and an id; the controller then refuses the request."""


@message
class DeleteTopicsResponse:
    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


@message
class NewPartitions:
    name: str
    count: int
    assignment: tuple[tuple[int, ...], ...] | None = None
    """Replicas of each added partition; with None the broker chooses them."""


@message
class CreatePartitionsRequest(Request["CreatePartitionsResponse"]):
    topics: tuple[NewPartitions, ...]
    timeout_ms: int = 30000
    validate_only: bool = False


@message
class CreatePartitionsResponse:
    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


@message
class ElectLeadersRequest(Request["ElectLeadersResponse"]):
    election_type: int
    """``PREFERRED`` or ``UNCLEAN``."""
    partitions: tuple[TopicPartition, ...] | None
    """Partitions to elect leaders for; None for all partitions."""
    timeout_ms: int = 60000


@message
class ElectLeadersResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode, str | None], ...] = ()


@message
class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    reassignments: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]
    """Target replicas per partition; None cancels an ongoing reassignment."""
    timeout_ms: int = 60000


@message
class AlterPartitionReassignmentsResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode, str | None], ...] = ()
    error_message: str | None = ""


@message
class ListPartitionReassignmentsRequest(Request["ListPartitionReassignmentsResponse"]):
    partitions: tuple[TopicPartition, ...] | None
    timeout_ms: int = 60000


@message
class OngoingReassignment:
    topic_partition: TopicPartition
    """The partition being reassigned."""
    replicas: tuple[int, ...]
    """All current replicas, including the ones being added and removed."""
    adding: tuple[int, ...]
    """Replicas being added."""
    removing: tuple[int, ...]
    """Replicas being removed."""


@message
class ListPartitionReassignmentsResponse:
    error: ErrorCode
    reassignments: tuple[OngoingReassignment, ...] = ()
    error_message: str | None = ""


TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16


@message
class ConfigResource:
    type: int
    name: str


@message
class DescribeConfigsRequest(Request["DescribeConfigsResponse"]):
    resources: tuple[tuple[ConfigResource, tuple[str, ...] | None], ...]
    include_synonyms: bool = False
    include_documentation: bool = False


@message
class ConfigEntry:
    name: str
    value: str | None
    source: int
    is_sensitive: bool = False
    read_only: bool = False
    config_type: int = 0
    is_default: bool = False
    synonyms: tuple[tuple[str, str | None, int], ...] = ()
    """(name, value, source) triples, the value in force first."""
    documentation: str | None = None


@message
class DescribeConfigsResult:
    resource: ConfigResource
    error: ErrorCode
    error_message: str | None
    entries: tuple[ConfigEntry, ...]


@message
class DescribeConfigsResponse:
    results: tuple[DescribeConfigsResult, ...]


SET = 0
DELETE = 1
APPEND = 2
SUBTRACT = 3


@message
class AlterConfigsRequest(Request["AlterConfigsResponse"]):
    """IncrementalAlterConfigs or, if ``incremental`` is false, AlterConfigs, whose values replace
    all configurations of a resource."""

    resources: tuple[tuple[ConfigResource, tuple[tuple[str, int, str | None], ...]], ...]
    """(name, operation, value) triples for each resource."""
    incremental: bool = True
    validate_only: bool = False


@message
class AlterConfigsResponse:
    results: tuple[tuple[ConfigResource, ErrorCode, str | None], ...]


UNKNOWN_BYTES = -1


@message
class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    partitions: tuple[TopicPartition, ...] | None
    """Partitions to describe; None for all partitions that the broker stores."""


@message
class StoredReplica:
    """The log of a replica in a log directory."""

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    """Number of offsets by which the log end is below the high watermark or, for a future log,
    below the end of the current log. -1 if the broker does not host the partition."""
    is_future: bool
    """True if this log is to replace the partition's current log in another directory."""


@message
class DescribedLogDir:
    error: ErrorCode
    path: str
    replicas: tuple[StoredReplica, ...] = ()
    topics: tuple[str, ...] = ()
    """Topics named in the response even if they have no replica in ``replicas``."""
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES
    """Total and usable bytes of the volume; -1 if the directory is in memory."""


@message
class DescribeLogDirsResponse:
    error: ErrorCode
    log_dirs: tuple[DescribedLogDir, ...] = ()


@message
class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    moves: tuple[tuple[TopicPartition, str], ...]
    """(partition, path of the target directory) pairs."""


@message
class AlterReplicaLogDirsResponse:
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3


@message
class FeatureUpdate:
    """A new level of a finalised feature (KIP-584)."""

    name: str
    level: int
    upgrade_type: int = UPGRADE
    """Kind of change that is permitted (KIP-778). Request version 0 could only permit a downgrade,
    which is represented as ``SAFE_DOWNGRADE``."""


@message
class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    updates: tuple[FeatureUpdate, ...]
    timeout_ms: int = 60000
    validate_only: bool = False
    """True to validate without updating; ignored with ZooKeeper, where the update is applied."""


@message
class UpdateFeaturesResponse:
    error: ErrorCode
    error_message: str | None = None
    results: tuple[tuple[str, ErrorCode, str | None], ...] = ()
    """(feature, error, message) triples."""
