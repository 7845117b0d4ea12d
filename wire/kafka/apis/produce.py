"""Produce: append record batches to partitions, and acknowledge them as ``acks`` requires.

This is a hot path: records stay a view of the received frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from struct import Struct
from typing import Any

from ....protocol.data import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import TopicPartition
from ..api import Api, ApiCall, SplitRequest, reads, writes
from ..endpoints import addresses
from ..repetitions import last_of_each
from ..topics import by_topic

_NONE = ErrorCode.NONE
_COUNT = Struct(">i")
_COUNT_AT, _ATTRIBUTES_AT, _MAGIC_AT = 57, 22, 16
_HEADER_SIZE = 61
_COMPRESSED_BYTES_AT_ONCE = 128 * 1024
_RECORDS_AT_ONCE = 100_000


def _produce(
    acks: int, timeout_ms: int, topics: tuple[Any, ...], transactional_id: str | None
) -> ProduceRequest | SplitRequest:
    named = [
        ProducePartition(TopicPartition(topic, number), records)
        for topic, entries in topics
        for number, records in entries
    ]
    partitions = last_of_each(named)
    request = ProduceRequest(acks, timeout_ms, tuple(partitions), transactional_id)
    if len(partitions) > 1 and _is_expensive(partitions):
        parts = (ProduceRequest(acks, timeout_ms, (p,), transactional_id) for p in partitions)
        return SplitRequest(tuple(parts), request, _join)
    return request


def _is_expensive(partitions: Sequence[ProducePartition]) -> bool:
    """Return whether there are, or may be after decompression, so many records that validating all
    of them at once would delay other clients noticeably."""
    compressed_bytes = record_count = 0
    for entry in partitions:
        records = entry.records
        if records is None or len(records) < _HEADER_SIZE:
            continue
        magic = records[_MAGIC_AT]
        if magic < 2 or (magic == 2 and records[_ATTRIBUTES_AT] & 7):
            compressed_bytes += len(records)
        if magic == 2:
            record_count += max(0, _COUNT.unpack_from(records, _COUNT_AT)[0])
    return compressed_bytes > _COMPRESSED_BYTES_AT_ONCE or record_count > _RECORDS_AT_ONCE


def _join(responses: tuple[ProduceResponse, ...]) -> ProduceResponse:
    endpoints = dict.fromkeys(end for one in responses for end in one.node_endpoints)
    return ProduceResponse(
        tuple(result for one in responses for result in one.partitions),
        max(one.throttle_time_ms for one in responses),
        tuple(endpoints),
    )


def _produced(response: ProduceResponse, call: ApiCall) -> tuple[Any, ...]:
    """Return throttle time, results by topic, and endpoints of current leaders."""
    results: Sequence[ProducePartitionResponse] = response.partitions
    for one in results:
        if one.error is not _NONE or one.error_message or one.current_leader:
            results = [_result_for_version(result, call.version) for result in results]
            break
    endpoints = None
    if response.node_endpoints:
        endpoints = addresses(response.node_endpoints, call.listener)
    return response.throttle_time_ms, by_topic(results), endpoints


def _result_for_version(result: ProducePartitionResponse, version: int) -> ProducePartitionResponse:
    """Return the result as clients of this version know it: error 56 exists since version 4, 90 is
    never sent (docs/kafka/produce.md#answers), and a success has neither message nor leader."""
    error = result.error
    if error is _NONE and not result.record_errors:
        return replace(result, error_message=None, current_leader=None)
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 3:
        return replace(result, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if error is ErrorCode.PRODUCER_FENCED:
        return replace(result, error=ErrorCode.INVALID_PRODUCER_EPOCH)
    return result


PRODUCE = Api(
    0,
    reads(
        _produce,
        "acks timeoutMs topicData(name partitionData(index records)) transactionalId",
    ),
    writes(
        "[throttleTimeMs responses[name partitionResponses("
        "index=topic_partition.partition errorCode=error baseOffset logAppendTimeMs "
        "logStartOffset recordErrors[batchIndex batchIndexErrorMessage] errorMessage "
        "currentLeader[leaderId leaderEpoch])] nodeEndpoints[nodeId host port rack]]",
        convert=_produced,
    ),
)
"""Below version 3 records have the formats v0 and v1, which the log converts when it appends them.

Version 1 adds the throttle time, 2 the append time, 3 the transactional id, with format v2 only, 5
the log start offset, 8 record errors and message (KIP-467), 10 the current leader if the broker
asked is not the leader (KIP-951).
"""
