"""Messages of transactions: what producers, brokers and administrators ask (KIP-98, KIP-664)."""

from __future__ import annotations

from .errors import ErrorCode
from .groups import OffsetCommitPartition
from .values import Request, TopicPartition, message


@message
class TransactionPartitions:
    """Partitions to be added to one transaction, or to be looked for in it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    """Asks whether they belong to the transaction, and adds none (KIP-890)."""


@message
class AddPartitionsToTxnRequest(Request["AddPartitionsToTxnResponse"]):
    """A producer sends one transaction; a broker that verifies sends one or several."""

    transactions: tuple[TransactionPartitions, ...]


@message
class AddPartitionsToTxnResult:
    transactional_id: str
    partitions: tuple[tuple[TopicPartition, ErrorCode], ...]


@message
class AddPartitionsToTxnResponse:
    results: tuple[AddPartitionsToTxnResult, ...]
    error: ErrorCode = ErrorCode.NONE
    """Of the whole request; versions below 4 do not have it."""


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
    """(producer id, what became of each partition)."""


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
    """Producer as a partition's leader knows it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int
    """-1 while no transaction of it is open on the partition."""


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
    """Empty for all states."""
    producer_ids: tuple[int, ...] = ()
    """Empty for all producers."""
    duration_ms: int = -1
    """Only transactions open for longer than this; -1 for all (KIP-994)."""


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
