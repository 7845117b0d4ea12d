"""Messages of the data plane: produce, fetch, offsets, leader epochs and metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import ErrorCode
from .values import BrokerInfo, Request, TopicPartition, message

if TYPE_CHECKING:
    from .records.batch import RecordBatch

ACKS_ALL = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1
ISOLATION_LEVELS = (READ_UNCOMMITTED, READ_COMMITTED)
CONSUMER_REPLICA_ID = -1
DEBUGGING_REPLICA_ID = -2
LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5


@message
class RequestContext:
    """The client that sent a request over a connection, as the broker knows it."""

    client_id: str = ""
    api_version: int = -1
    listener: str = "PLAINTEXT"
    principal: str = "User:ANONYMOUS"
    client_host: str = "127.0.0.1"
    security_protocol: str = "PLAINTEXT"
    is_token_authenticated: bool = False
    """True if the client authenticated with a delegation token."""


INTERNAL_CONTEXT = RequestContext()
"""Context of requests that did not arrive over a socket, treated as the newest API version."""


@message
class ProducePartition:
    topic_partition: TopicPartition
    records: bytes | memoryview | None
    """The batches as sent by the client, not yet validated."""


@message
class ProduceRequest(Request["ProduceResponse | None"]):
    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]
    transactional_id: str | None = None


@message
class ProducePartitionResponse:
    topic_partition: TopicPartition
    error: ErrorCode
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[tuple[int, str | None], ...] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None
    """(leader, leader epoch) for a client that sent the request to the wrong broker (KIP-951)."""


@message
class ProduceResponse:
    partitions: tuple[ProducePartitionResponse, ...]
    throttle_time_ms: int = 0
    node_endpoints: tuple[BrokerInfo, ...] = ()
    """Addresses of the brokers in ``current_leader`` fields (KIP-951)."""


@message
class FetchPartition:
    topic_partition: TopicPartition
    fetch_offset: int
    log_start_offset: int = -1
    max_bytes: int = 1048576
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


@message
class FetchRequest(Request["FetchResponse"]):
    replica_id: int
    """Broker id of a follower, -1 for a consumer, or -2 for a debugging consumer."""
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    partitions: tuple[FetchPartition, ...]
    isolation_level: int = READ_UNCOMMITTED
    session_id: int = 0
    session_epoch: int = -1
    forgotten: tuple[TopicPartition, ...] = ()
    rack_id: str = ""
    replica_epoch: int = -1
    """Broker epoch of the fetching follower (KIP-903), -1 if not sent."""


@message
class EpochEndOffset:
    """A leader epoch and its end offset (exclusive); (-1, -1) if undefined."""

    leader_epoch: int
    end_offset: int


@message
class AbortedTransaction:
    producer_id: int
    first_offset: int


@message
class FetchPartitionResponse:
    topic_partition: TopicPartition
    error: ErrorCode
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: tuple[RecordBatch, ...] = ()
    """Whole batches as stored; a follower stores the same bytes as the leader."""
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None
    preferred_read_replica: int = -1
    diverging_epoch: EpochEndOffset | None = None
    current_leader: tuple[int, int] | None = None
    """(leader, leader epoch) for a client that sent the request to the wrong broker (KIP-951)."""


@message
class FetchResponse:
    error: ErrorCode
    session_id: int
    partitions: tuple[FetchPartitionResponse, ...]
    throttle_time_ms: int = 0
    node_endpoints: tuple[BrokerInfo, ...] = ()


@message
class ListOffsetsPartition:
    topic_partition: TopicPartition
    timestamp: int
    """Timestamp in milliseconds, or one of the special values such as ``LATEST_TIMESTAMP``."""
    current_leader_epoch: int = -1
    offsets_max: int = 1
    """Maximum number of offsets in the response; version 0 only."""


@message
class ListOffsetsRequest(Request["ListOffsetsResponse"]):
    replica_id: int
    partitions: tuple[ListOffsetsPartition, ...]
    isolation_level: int = READ_UNCOMMITTED


@message
class ListOffsetsPartitionResponse:
    topic_partition: TopicPartition
    error: ErrorCode
    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1
    old_style_offsets: tuple[int, ...] = ()
    """The offsets of a version 0 response: base offsets of segments, newest first."""


@message
class ListOffsetsResponse:
    partitions: tuple[ListOffsetsPartitionResponse, ...]


@message
class OffsetForLeaderEpochPartition:
    topic_partition: TopicPartition
    leader_epoch: int
    current_leader_epoch: int = -1


@message
class OffsetForLeaderEpochRequest(Request["OffsetForLeaderEpochResponse"]):
    replica_id: int
    partitions: tuple[OffsetForLeaderEpochPartition, ...]


@message
class OffsetForLeaderEpochPartitionResponse:
    topic_partition: TopicPartition
    error: ErrorCode
    leader_epoch: int = -1
    end_offset: int = -1


@message
class OffsetForLeaderEpochResponse:
    partitions: tuple[OffsetForLeaderEpochPartitionResponse, ...]


@message
class DeleteRecordsRequest(Request["DeleteRecordsResponse"]):
    timeout_ms: int
    offsets: tuple[tuple[TopicPartition, int], ...]
    """(partition, new log start offset) pairs; -1 stands for the high watermark."""


@message
class DeleteRecordsResponse:
    partitions: tuple[tuple[TopicPartition, ErrorCode, int], ...]
    """(partition, error, low watermark or -1) triples."""


@message
class InitProducerIdRequest(Request["InitProducerIdResponse"]):
    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int = -1
    producer_epoch: int = -1


@message
class InitProducerIdResponse:
    error: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


@message
class MetadataRequest(Request["MetadataResponse"]):
    topics: tuple[str, ...] | None
    """Topics to describe; None for all topics, empty for none."""
    allow_auto_topic_creation: bool = True
    topic_ids: tuple[str, ...] = ()
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False


@message
class MetadataPartition:
    error: ErrorCode
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]


@message
class MetadataTopic:
    error: ErrorCode
    name: str | None
    is_internal: bool
    partitions: tuple[MetadataPartition, ...]
    topic_id: str = ""
    authorized_operations: int | None = None
    """Permitted ACL operations as a bit field; None without an authorizer."""


@message
class MetadataResponse:
    brokers: tuple[BrokerInfo, ...]
    cluster_id: str
    controller_id: int
    topics: tuple[MetadataTopic, ...]
    authorized_operations: int | None = None


@message
class FindCoordinatorRequest(Request["FindCoordinatorResponse"]):
    keys: tuple[str, ...]
    key_type: int = 0
    """0 for groups, 1 for transactions."""


@message
class Coordinator:
    key: str
    error: ErrorCode
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_message: str | None = None


@message
class FindCoordinatorResponse:
    coordinators: tuple[Coordinator, ...]
