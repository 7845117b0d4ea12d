"""Offsets of a partition: by time, by leader epoch, and the first offset that is kept."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

from ....protocol.data import (
    CONSUMER_REPLICA_ID,
    ISOLATION_LEVELS,
    DeleteRecordsRequest,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochRequest,
)
from ....protocol.errors import ErrorCode
from ..api import Api, ApiCall, CodecAnswer, reads, writes
from ..error_responses import error_response
from ..repetitions import last_of_each
from ..topics import by_topic, each_partition


def _list_offsets(
    replica_id: int, partitions: tuple[ListOffsetsPartition, ...], isolation_level: int
) -> ListOffsetsRequest | CodecAnswer:
    request = ListOffsetsRequest(replica_id, partitions, isolation_level)
    if isolation_level not in ISOLATION_LEVELS:  # IsolationLevel.forId throws
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request


def _listed(response: ListOffsetsResponse, call: ApiCall) -> ListOffsetsResponse:
    """Replace OFFSET_NOT_AVAILABLE, which exists since version 5
    (docs/kafka/offsets-and-epochs.md#listoffsets)."""
    if call.version >= 5:
        return response
    new_error, old_error = ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE
    return ListOffsetsResponse(
        tuple(
            replace(one, error=old_error) if one.error is new_error else one
            for one in response.partitions
        )
    )


LIST_OFFSETS = Api(
    2,
    reads(
        _list_offsets,
        "replicaId topics(name partitions(partitionIndex timestamp currentLeaderEpoch "
        "maxNumOffsets)) isolationLevel",
        topics=each_partition(ListOffsetsPartition),
    ),
    writes(
        "topics=partitions[name partitions(partitionIndex=topic_partition.partition "
        "errorCode=error oldStyleOffsets timestamp offset leaderEpoch)]",
        convert=_listed,
        topics=by_topic,
    ),
)
"""Look up the offset at a time, or the first or last offset.

Version 0 returns a list of offsets instead of one. 2 adds the isolation level, 4 leader epochs, 7
the offset of the greatest timestamp, -3 (KIP-734). 8 and 9 only add special timestamps of tiered
storage.
"""

DELETE_RECORDS = Api(
    21,
    reads(
        DeleteRecordsRequest,
        "timeoutMs topics(name partitions(partitionIndex offset))",
        topics=lambda topics: tuple(
            last_of_each(each_partition(lambda *entry: entry)(topics), itemgetter(0))
        ),
    ),
    writes(
        "topics=partitions[name partitions[partitionIndex=partition errorCode lowWatermark]]",
        topics=by_topic,
    ),
)
"""Delete the records before an offset."""


def _offset_for_leader_epoch(
    call: ApiCall, replica_id: int, partitions: tuple[OffsetForLeaderEpochPartition, ...]
) -> OffsetForLeaderEpochRequest:
    consumer_or_follower = replica_id if call.version >= 3 else CONSUMER_REPLICA_ID
    return OffsetForLeaderEpochRequest(consumer_or_follower, partitions)


OFFSET_FOR_LEADER_EPOCH = Api(
    23,
    reads(
        _offset_for_leader_epoch,
        "call replicaId topics(topic partitions(partition leaderEpoch currentLeaderEpoch))",
        topics=each_partition(OffsetForLeaderEpochPartition),
    ),
    writes(
        "topics=partitions[topic partitions(errorCode=error "
        "partition=topic_partition.partition leaderEpoch endOffset)]",
        topics=by_topic,
    ),
)
"""Look up the end offset of a leader epoch (KIP-101).

Version 1 adds the epoch to which the end offset belongs (KIP-279), 2 the current leader epoch
(KIP-320), 3 the replica id, which distinguishes consumers from followers.
"""
