"""The offsets that groups have committed."""

from __future__ import annotations

from typing import Any

from ....protocol.errors import ErrorCode
from ....protocol.groups import (
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from ....protocol.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ....protocol.values import TopicPartition
from ..api import Api, ApiCall, CodecAnswer, SplitRequest, reads, writes
from ..error_responses import error_response
from ..repetitions import last_of_each
from ..topics import PARTITION_ERRORS, Topics, by_topic, each_partition, partitions_of


def _commit(
    partition: TopicPartition, offset: int, epoch: int, metadata: str | None, time_ms: int = -1
) -> OffsetCommitPartition:
    return OffsetCommitPartition(partition, offset, epoch, metadata or "", time_ms)


def _offset_commit(
    call: ApiCall,
    group_id: str,
    generation: int,
    member_id: str,
    instance_id: str | None,
    retention_time_ms: int,
    partitions: tuple[OffsetCommitPartition, ...],
) -> OffsetCommitRequest | CodecAnswer:
    named = tuple(last_of_each(partitions)) if call.version else partitions
    request = OffsetCommitRequest(
        group_id, generation, member_id, instance_id, named, retention_time_ms
    )
    if call.version == 0 and not group_id:  # ZooKeeper's PathUtils throws for its path
        return CodecAnswer(error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    return request


OFFSET_COMMIT = Api(
    8,
    reads(
        _offset_commit,
        "call groupId generationIdOrMemberEpoch memberId groupInstanceId retentionTimeMs "
        "topics(name partitions(partitionIndex committedOffset committedLeaderEpoch "
        "committedMetadata commitTimestamp))",
        topics=each_partition(_commit),
    ),
    writes(f"topics=partitions{PARTITION_ERRORS}", topics=by_topic),
)
"""Where a consumer group has got to.

0: to ZooKeeper, without membership. 1: a time per partition. 2-4: retention time. 6: leader epoch.
7: static members (KIP-345). 9 adds errors of KIP-848 groups only.
"""


def _once(topics: Topics | None) -> tuple[TopicPartition, ...] | None:
    """The partitions asked for, which Kafka collects in a set; None for all."""
    return None if topics is None else tuple(dict.fromkeys(partitions_of(topics)))


def _offset_fetch(
    call: ApiCall,
    group_id: str,
    partitions: tuple[TopicPartition, ...] | None,
    groups: tuple[Any, ...],
    require_stable: bool,
) -> OffsetFetchRequest | SplitRequest | CodecAnswer:
    if call.version >= 8:
        return SplitRequest(
            tuple(
                OffsetFetchRequest(group, asked, require_stable, member_id, member_epoch)
                for group, asked, member_id, member_epoch in groups
            )
        )
    if call.version == 0 and not group_id:  # ZooKeeper's PathUtils throws for its path
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        found = tuple(CommittedOffset(name, error, metadata="") for name in partitions or ())
        return CodecAnswer(OffsetFetchResponse(ErrorCode.NONE, found))
    return OffsetFetchRequest(group_id, partitions, require_stable)


def _fetched(
    response: Any, call: ApiCall
) -> tuple[Any, ErrorCode, list[tuple[str, Any, ErrorCode]]]:
    """Topics and error of the only group, and the same of several."""
    request = call.request
    if call.version >= 8:
        groups = zip(request.requests, response, strict=True)
        found = [(one.group_id, group.partitions, group.error) for one, group in groups]
        return (), ErrorCode.NONE, found
    partitions = response.partitions
    if call.version < 2 and response.error is not ErrorCode.NONE and request is not None:
        # There is no error of the group: every partition asked for carries it.
        partitions = [CommittedOffset(name, response.error) for name in request.partitions or ()]
    return partitions, response.error, []


_OFFSETS = (
    "topics[name partitions(partitionIndex=topic_partition.partition committedOffset=offset "
    "committedLeaderEpoch=leader_epoch metadata errorCode=error)] errorCode"
)
OFFSET_FETCH = Api(
    9,
    reads(
        _offset_fetch,
        "call groupId topics(name partitionIndexes) "
        "groups(groupId topics(name partitionIndexes) memberId memberEpoch) requireStable",
        topics=_once,
    ),
    writes(f"[{_OFFSETS} groups[groupId {_OFFSETS}]]", of=_fetched, topics=by_topic),
)
"""The offsets a consumer group has committed. An unknown group is no error: its offsets are -1.

0: from ZooKeeper. 2: null asks for all partitions, error for the whole answer. 5: leader epoch.
7: wait for pending transactions (KIP-447). 8: several groups at once (KIP-709): each is a request
of its own to the backend. 9: member id and epoch, which groups of the consumer protocol check
(KIP-848).
"""


def _txn_committed(response: TxnOffsetCommitResponse, call: ApiCall) -> TxnOffsetCommitResponse:
    """Clients before version 2 do not survive COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""
    if call.version >= 2:
        return response
    told = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    results = [(partition, told.get(error, error)) for partition, error in response.partitions]
    return TxnOffsetCommitResponse(tuple(results))


TXN_OFFSET_COMMIT = Api(
    28,
    reads(
        TxnOffsetCommitRequest,
        "transactionalId groupId producerId producerEpoch topics(name partitions(partitionIndex "
        "committedOffset committedLeaderEpoch committedMetadata)) generationId memberId "
        "groupInstanceId",
        topics=each_partition(_commit),
    ),
    writes(f"topics=partitions{PARTITION_ERRORS}", of=_txn_committed, topics=by_topic),
)
"""Offsets of a group that are committed together with a transaction.

2: leader epoch. 3: generation and member (KIP-447). 4 only adds an error.
"""


OFFSET_DELETE = Api(
    47,
    reads(
        OffsetDeleteRequest,
        "groupId topics(name partitions(partitionIndex))",
        partitions=lambda entries: [number for (number,) in entries],
        topics=partitions_of,
    ),
    writes(f"errorCode=error topics=partitions{PARTITION_ERRORS}", topics=by_topic),
)
"""Delete offsets of topics that a group no longer reads (KIP-496)."""
