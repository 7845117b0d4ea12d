"""Transactions, and the ids of producers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....protocol.control import AllocateProducerIdsRequest
from ....protocol.data import InitProducerIdRequest
from ....protocol.errors import ErrorCode
from ....protocol.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
    TransactionMarker,
    TransactionPartitions,
    WriteTxnMarkersRequest,
)
from ....protocol.values import TopicPartition
from ..api import Api, ApiCall, each, reads, writes
from ..topics import PARTITION_ERRORS, Topics, by_topic, partitions_of


def _fenced_before(version: int) -> Callable[[Any, ApiCall], Any]:
    """Return a function that replaces PRODUCER_FENCED in responses below ``version`` (KIP-588)."""

    def known(response: Any, call: ApiCall) -> Any:
        if call.version < version and response.error is ErrorCode.PRODUCER_FENCED:
            return replace(response, error=ErrorCode.INVALID_PRODUCER_EPOCH)
        return response

    return known


INIT_PRODUCER_ID = Api(
    22,
    reads(InitProducerIdRequest, "transactionalId transactionTimeoutMs producerId producerEpoch"),
    writes("errorCode=error producerId producerEpoch", convert=_fenced_before(4)),
)
"""Get an id and an epoch for an idempotent or transactional producer.

Version 3 adds the producer's present id and epoch (KIP-360), 4 PRODUCER_FENCED in place of
INVALID_PRODUCER_EPOCH. 5 only adds an error of KIP-890.
"""


def _transaction(
    transactional_id: str, producer_id: int, epoch: int, topics: Topics, verify_only: bool = False
) -> TransactionPartitions:
    partitions = partitions_of(topics)
    return TransactionPartitions(transactional_id, producer_id, epoch, partitions, verify_only)


def _add_partitions(
    call: ApiCall, transactions: tuple[TransactionPartitions, ...], *v3_fields: Any
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions if call.version >= 4 else (_transaction(*v3_fields),)
    )


def _added(response: AddPartitionsToTxnResponse, call: ApiCall) -> tuple[ErrorCode, Any, Any]:
    """Return error and results of transactions, and the only transaction's results before 4."""

    def client_error(error: ErrorCode) -> ErrorCode:
        if error is ErrorCode.PRODUCER_FENCED and call.version < 2:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return error

    results = [
        (
            result.transactional_id,
            by_topic((partition, client_error(error)) for partition, error in result.partitions),
        )
        for result in response.results
    ]
    return response.error, results, results[0][1] if results else ()


_RESULTS = "[name resultsByPartition[partitionIndex=partition partitionErrorCode]]"
ADD_PARTITIONS_TO_TXN = Api(
    24,
    reads(
        _add_partitions,
        "call transactions(transactionalId producerId producerEpoch topics(name partitions) "
        "verifyOnly) v3AndBelowTransactionalId v3AndBelowProducerId v3AndBelowProducerEpoch "
        "v3AndBelowTopics(name partitions)",
        transactions=each(_transaction),
    ),
    writes(
        f"[errorCode resultsByTransaction[transactionalId topicResults{_RESULTS}] "
        f"resultsByTopicV3AndBelow{_RESULTS}]",
        convert=_added,
    ),
)
"""Add partitions to a transaction before it writes to them.

Version 2 adds PRODUCER_FENCED in place of INVALID_PRODUCER_EPOCH (KIP-588), 4, between brokers,
several transactions at once, which may be verified only (KIP-890). 5 only adds an error.
"""

ADD_OFFSETS_TO_TXN = Api(
    25,
    reads(AddOffsetsToTxnRequest, "transactionalId producerId producerEpoch groupId"),
    writes("errorCode=error", convert=_fenced_before(2)),
)
"""Add a group to a transaction before it commits offsets of the group."""

END_TXN = Api(
    26,
    reads(EndTxnRequest, "transactionalId producerId producerEpoch committed"),
    writes("errorCode=error", convert=_fenced_before(2)),
)
"""Commit or abort a transaction."""


def _marker(
    producer_id: int, epoch: int, is_commit: bool, topics: Topics, coordinator_epoch: int
) -> TransactionMarker:
    partitions = partitions_of(topics)
    return TransactionMarker(producer_id, epoch, is_commit, partitions, coordinator_epoch)


WRITE_TXN_MARKERS = Api(
    27,
    reads(
        WriteTxnMarkersRequest,
        "markers(producerId producerEpoch transactionResult topics(name partitionIndexes) "
        "coordinatorEpoch)",
        markers=each(_marker),
    ),
    writes(
        f"markers[producerId topics{PARTITION_ERRORS}]",
        topics=by_topic,
    ),
)
"""End transactions on partitions, as a transaction coordinator does, or an administrator who aborts
a hanging transaction."""


DESCRIBE_PRODUCERS = Api(
    61,
    reads(DescribeProducersRequest, "topics(name partitionIndexes)", topics=partitions_of),
    writes(
        "topics=partitions[name partitions(partitionIndex=topic_partition.partition "
        "errorCode=error errorMessage activeProducers=producers(producerId producerEpoch "
        "lastSequence lastTimestamp coordinatorEpoch "
        "currentTxnStartOffset=transaction_start_offset))]",
        topics=by_topic,
    ),
)
"""List the producers that the leader of a partition knows (KIP-664)."""


def _numbers(partitions: tuple[TopicPartition, ...]) -> Any:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    return topics.items()


DESCRIBE_TRANSACTIONS = Api(
    65,
    reads(DescribeTransactionsRequest, "transactionalIds"),
    writes(
        "transactionStates=transactions(errorCode=error transactionalId transactionState=state "
        "transactionTimeoutMs=timeout_ms transactionStartTimeMs=start_time_ms producerId "
        "producerEpoch topics=partitions[topic partitions])",
        topics=_numbers,
    ),
)
"""Describe transactions by their transactional ids, as the coordinator knows them (KIP-664)."""

LIST_TRANSACTIONS = Api(
    66,
    reads(ListTransactionsRequest, "stateFilters producerIdFilters durationFilter"),
    writes(
        "errorCode=error unknownStateFilters=unknown_states "
        "transactionStates=transactions(transactionalId producerId transactionState=state)"
    ),
)
"""List the transactional ids of one coordinator (KIP-664).

Version 1 adds a filter for transactions that have been open for longer than a time (KIP-994).
"""

ALLOCATE_PRODUCER_IDS = Api(
    67,
    reads(AllocateProducerIdsRequest, "brokerId brokerEpoch"),
    writes("errorCode=error producerIdStart=first_producer_id producerIdLen=count"),
)
"""Give a broker a block of producer ids from the controller (KIP-730).

As with AlterPartition, a sender over TCP is a client.
"""
