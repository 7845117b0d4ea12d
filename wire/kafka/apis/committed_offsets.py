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
    if call.version == 0 and not group_id:  # ZooKeeper's PathUtils throws for the group's path
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
"""Commit the offsets that a consumer group has reached.

Version 0 commits to ZooKeeper, without membership. 1 has a time per partition, 2 to 4 a retention
time. 6 adds leader epochs, 7 static members (KIP-345). 9 only adds errors of KIP-848 groups.
"""


def _once(topics: Topics | None) -> tuple[TopicPartition, ...] | None:
    """Return the requested partitions without repetitions, as Kafka uses a set; None for all."""
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
    if call.version == 0 and not group_id:  # ZooKeeper's PathUtils throws for the group's path
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        found = tuple(CommittedOffset(name, error, metadata="") for name in partitions or ())
        return CodecAnswer(OffsetFetchResponse(ErrorCode.NONE, found))
    return OffsetFetchRequest(group_id, partitions, require_stable)


def _fetched(
    response: Any, call: ApiCall
) -> tuple[Any, ErrorCode, list[tuple[str, Any, ErrorCode]]]:
    """Return partitions and error of the only group, and id, partitions and error of several."""
    request = call.request
    if call.version >= 8:
        groups = zip(request.requests, response, strict=True)
        found = [(one.group_id, group.partitions, group.error) for one, group in groups]
        return (), ErrorCode.NONE, found
    partitions = response.partitions
    if call.version < 2 and response.error is not ErrorCode.NONE and request is not None:
        # These versions have no error of the group: it is put into every requested partition.
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
    writes(f"[{_OFFSETS} groups[groupId {_OFFSETS}]]", convert=_fetched, topics=by_topic),
)
"""Fetch the committed offsets of a group. An unknown group is no error: its offsets are -1.

Version 0 reads from ZooKeeper. 2 adds null for all partitions and an error of the whole response, 5
leader epochs, 7 waiting for pending transactions (KIP-447), 8 several groups at once (KIP-709),
each a request of its own to the backend, 9 member id and epoch, which groups of the consumer
protocol check (KIP-848).
"""


def _txn_committed(response: TxnOffsetCommitResponse, call: ApiCall) -> TxnOffsetCommitResponse:
    """Replace COORDINATOR_LOAD_IN_PROGRESS below version 2: clients fail on it (KAFKA-7296)."""
    if call.version >= 2:
        return response
    replaced = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    results = [(partition, replaced.get(error, error)) for partition, error in response.partitions]
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
    writes(f"topics=partitions{PARTITION_ERRORS}", convert=_txn_committed, topics=by_topic),
)
"""Commit offsets of a group together with a transaction.

Version 2 adds leader epochs, 3 generation and member (KIP-447). 4 only adds an error.
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
"""Delete a group's offsets of topics that it no longer reads (KIP-496)."""
