"""Transaction messages of producers, brokers and administrators (KIP-98, KIP-664)."""

from __future__ import annotations

from .errors import ErrorCode
from .groups import OffsetCommitPartition
from .values import Request, TopicPartition, message


@message
class TransactionPartitions:
    """Partitions to be added to a transaction, or verified to belong to it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    """True to verify that the partitions belong to the transaction, adding none (KIP-890)."""


@message
class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    """A request with one transaction of a producer, or with several that a broker verifies."""

    transactions: tuple[TransactionPartitions, ...]


@message
class AddPartitionsToTxnResult:
    transactional_id: str
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


@message
class AddPartitionsToTxnResponse:
    results: tuple[AddPartitionsToTxnResult, ...]
    error: ErrorCode = ErrorCode.NONE
    """Error of the whole request; absent below version 4."""


@message
class AddOffsetsToTxnRequest(Request["AddOffsetsToTxnResponse"]):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str


@message
class AddOffsetsToTxnResponse:
    error: ErrorCode


@message
class EndTxnRequest(Request["EndTxnResponse"]):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool


@message
class EndTxnResponse:
    error: ErrorCode


@message
class TransactionMarker:
    """The end of one transaction, to be written to partitions that one broker leads."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    partitions: tuple[TopicPartition, ...]
    coordinator_epoch: int


@message
class WriteTxnMarkersRequest(Request["WriteTxnMarkersResponse"]):
    markers: tuple[TransactionMarker, ...]


@message
class WriteTxnMarkersResponse:
    markers: tuple[tuple[int, tuple[tuple[TopicPartition, ErrorCode], ...]], ...]
    """(producer id, (partition, error) pairs) for each marker."""


@message
class TxnOffsetCommitRequest(Request["TxnOffsetCommitResponse"]):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[OffsetCommitPartition, ...]
    generation: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


@message
class TxnOffsetCommitResponse:
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


@message
class DescribeProducersRequest(Request["DescribeProducersResponse"]):
    partitions: tuple[TopicPartition, ...]


@message
class ActiveProducer:
    """A producer as known to the leader of a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int
    """First offset of the producer's open transaction on the partition; -1 if there is none."""


@message
class DescribedProducers:
    topic_partition: TopicPartition
    error: ErrorCode
    producers: tuple[ActiveProducer, ...] = ()
    error_message: str | None = None


@message
class DescribeProducersResponse:
    partitions: tuple[DescribedProducers, ...]


@message
class DescribeTransactionsRequest(Request["DescribeTransactionsResponse"]):
    transactional_ids: tuple[str, ...]


@message
class DescribedTransaction:
    transactional_id: str
    error: ErrorCode
    state: str = ""
    timeout_ms: int = 0
    start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    partitions: tuple[TopicPartition, ...] = ()


@message
class DescribeTransactionsResponse:
    transactions: tuple[DescribedTransaction, ...]


@message
class ListTransactionsRequest(Request["ListTransactionsResponse"]):
    states: tuple[str, ...] = ()
    """States of the transactions to list; empty for all states."""
    producer_ids: tuple[int, ...] = ()
    """Producers of the transactions to list; empty for all producers."""
    duration_ms: int = -1
    """Lists only transactions open for more than this many milliseconds; -1 for all (KIP-994)."""


@message
class ListedTransaction:
    transactional_id: str
    producer_id: int
    state: str


@message
class ListTransactionsResponse:
    error: ErrorCode
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()
