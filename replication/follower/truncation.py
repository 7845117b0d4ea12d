"""The offset to which a follower truncates, given the leader's end offset of an epoch
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
    """Raise ``InvariantError`` if the response has a partition that was not requested."""
    asked = {entry.topic_partition for entry in request.partitions}
    for answer in response.partitions:
        invariant(
            answer.topic_partition in asked,
            f"the leader answered for {answer.topic_partition}, which was not asked",
        )


def truncation_offset(
    log: Log, fetch_offset: int, is_fetching: bool, epoch: int, end_offset: int
) -> tuple[int, bool]:
    """Return the offset to truncate to, and whether this completes the truncation.

    ``epoch`` is the leader's largest epoch not above the requested one, and ``end_offset`` the end
    of that epoch. While fetching, further rounds follow with the next fetches.
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
