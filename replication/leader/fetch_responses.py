"""Fetch responses: batches, nothing new, go elsewhere, cut your log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.data import EpochEndOffset, FetchPartitionResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ..log.log import Log

_NONE = ErrorCode.NONE


def empty_response(topic_partition: TopicPartition, log: Log) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        topic_partition,
        _NONE,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
    )


def with_preferred_replica(
    response: FetchPartitionResponse, broker_id: int
) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        response.topic_partition,
        _NONE,
        response.high_watermark,
        response.last_stable_offset,
        response.log_start_offset,
        preferred_read_replica=broker_id,
    )


def with_diverging_epoch(
    response: FetchPartitionResponse, diverging_epoch: EpochEndOffset
) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        response.topic_partition,
        _NONE,
        response.high_watermark,
        response.last_stable_offset,
        response.log_start_offset,
        diverging_epoch=diverging_epoch,
    )


def with_no_aborted_transactions(response: FetchPartitionResponse) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        response.topic_partition,
        _NONE,
        response.high_watermark,
        response.last_stable_offset,
        response.log_start_offset,
        aborted_transactions=(),
    )
