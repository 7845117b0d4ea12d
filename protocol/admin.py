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
    """(partition, replicas) pairs; given instead of the two counts."""
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
    """Names and values where sources do not matter; else ``config_entries``."""
    config_entries: tuple[ConfigEntry, ...] = ()


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
    """The number of topics asked for that have neither name nor id."""
    names_with_ids: tuple[tuple[str, str], ...] = ()
    """Topics that have both, for which a controller refuses the whole request."""


@message
class DeleteTopicsResponse:
    topics: tuple[TopicResult, ...]
    throttle_time_ms: int = 0


@message
class NewPartitions:
    name: str
    count: int
    assignment: tuple[tuple[int, ...], ...] | None = None
    """Replicas of each added partition; None lets the broker choose."""


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
    """None asks for all partitions."""
    timeout_ms: int = 60000


@message
class ElectLeadersResponse:
    error: ErrorCode
    partitions: tuple[tuple[TopicPartition, ErrorCode, str | None], ...] = ()


@message
class AlterPartitionReassignmentsRequest(Request["AlterPartitionReassignmentsResponse"]):
    reassignments: tuple[tuple[TopicPartition, tuple[int, ...] | None], ...]
    """Target replicas per partition; None cancels."""
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
    """The partition that moves."""
    replicas: tuple[int, ...]
    """All its replicas at present, those that are added included."""
    adding: tuple[int, ...]
    """Replicas that are added."""
    removing: tuple[int, ...]
    """Replicas that go."""


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
    """(name, value, source), the value in force first."""
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
    """AlterConfigs (``incremental`` false: the list replaces all) or IncrementalAlterConfigs."""

    resources: tuple[tuple[ConfigResource, tuple[tuple[str, int, str | None], ...]], ...]
    """Per resource: (name, operation, value)."""
    incremental: bool = True
    validate_only: bool = False


@message
class AlterConfigsResponse:
    results: tuple[tuple[ConfigResource, ErrorCode, str | None], ...]


UNKNOWN_BYTES = -1


@message
class DescribeLogDirsRequest(Request["DescribeLogDirsResponse"]):
    partitions: tuple[TopicPartition, ...] | None
    """None asks for all that the broker stores."""


@message
class StoredReplica:
    """A log in a log directory."""

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int
    """Of a log: how far its end is below its high watermark. Of a future one: how many records
    are still to be copied. -1 if the broker does not host the partition."""
    is_future: bool
    """It will replace the partition's log, which lies in another directory."""


@message
class DescribedLogDir:
    error: ErrorCode
    path: str
    replicas: tuple[StoredReplica, ...] = ()
    topics: tuple[str, ...] = ()
    """Topics to be named even if none of ``replicas`` is theirs."""
    total_bytes: int = UNKNOWN_BYTES
    usable_bytes: int = UNKNOWN_BYTES
    """Size of the volume; -1 if the directory is in memory."""


@message
class DescribeLogDirsResponse:
    error: ErrorCode
    log_dirs: tuple[DescribedLogDir, ...] = ()


@message
class AlterReplicaLogDirsRequest(Request["AlterReplicaLogDirsResponse"]):
    moves: tuple[tuple[TopicPartition, str], ...]
    """(partition, path of the directory that it is to lie in)."""


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
    """Which changes are permitted (KIP-778). Before, a downgrade that was permitted was safe."""


@message
class UpdateFeaturesRequest(Request["UpdateFeaturesResponse"]):
    updates: tuple[FeatureUpdate, ...]
    timeout_ms: int = 60000
    validate_only: bool = False
    """KRaft only: with ZooKeeper the update is done."""


@message
class UpdateFeaturesResponse:
    error: ErrorCode
    error_message: str | None = None
    results: tuple[tuple[str, ErrorCode, str | None], ...] = ()
    """(feature, error, message)."""
