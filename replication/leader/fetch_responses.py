"""Fetch responses without records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.data import AbortedTransaction, EpochEndOffset, FetchPartitionResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ..log.log import Log

_NONE = ErrorCode.NONE


def empty_response(
    topic_partition: TopicPartition,
    log: Log,
    last_stable_offset: int,
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None,
    preferred_read_replica: int = -1,
    diverging_epoch: EpochEndOffset | None = None,
) -> FetchPartitionResponse:
    """No records: there is nothing new, or the fetcher has to go elsewhere or to cut its log."""
    return FetchPartitionResponse(
        topic_partition,
        _NONE,
        log.high_watermark,
        last_stable_offset,
        log.log_start_offset,
        (),
        aborted_transactions,
        preferred_read_replica,
        diverging_epoch,
    )
