"""Offset to which a follower truncates once the leader has told where an epoch ends
(docs/kafka/replica-fetchers.md; Kafka's ``AbstractFetcherThread.getOffsetTruncationState``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.data import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from ...protocol.errors import invariant

if TYPE_CHECKING:
    from ..log.log import Log


def check_only_asked(
    request: OffsetForLeaderEpochRequest, response: OffsetForLeaderEpochResponse
) -> None:
    """Raise ``InvariantError`` if a partition is answered that was not asked."""
    asked = {entry.topic_partition for entry in request.partitions}
    for answer in response.partitions:
        invariant(
            answer.topic_partition in asked,
            f"the leader answered for {answer.topic_partition}, which was not asked",
        )


def truncation_offset(
    log: Log, fetch_offset: int, is_fetching: bool, epoch: int, end_offset: int
) -> tuple[int, bool]:
    """The offset to cut to, and whether that ends the truncation.

    The leader's answer: ``epoch`` is its largest one not above the one asked, ``end_offset``
    where that ends. While fetching, further rounds happen by themselves.
    """
    if end_offset < 0:
        return fetch_offset, True
    log_end_offset = log.log_end_offset
    if epoch < 0:
        return min(end_offset, log_end_offset), True
    own = log.end_offset_for_epoch(epoch)
    if own.end_offset < 0:
        return min(end_offset, log_end_offset), True
    if own.leader_epoch != epoch:
        return min(own.end_offset, log_end_offset), is_fetching
    return min(own.end_offset, end_offset, log_end_offset), True
