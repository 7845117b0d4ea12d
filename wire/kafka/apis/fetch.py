"""Fetch: return record batches of partitions, once enough have been stored.

This is a hot path: the bytes objects of the log are sent without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....protocol.data import (
    ISOLATION_LEVELS,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
)
from ....protocol.errors import ErrorCode
from ....protocol.fetch_session_epochs import EPOCH_MAX, FINAL_EPOCH
from ....protocol.values import TopicPartition
from ..api import Api, ApiCall, CodecAnswer, reads, writes
from ..endpoints import addresses
from ..repetitions import last_of_each
from ..topic_names import NULL_NAME, error_for_response, id_for_response, is_stand_in, resolved_name
from ..topics import by_topic, partitions_of

_FIRST_WITH_IDS = 13
_NONE = ErrorCode.NONE


def _fetch(
    call: ApiCall,
    replica_id: int,
    replica_state: tuple[int, int] | None,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    isolation_level: int,
    session_id: int,
    session_epoch: int,
    topics: Sequence[tuple[str, bytes, Any]],
    forgotten_topics: Sequence[tuple[str, bytes, Any]],
    rack_id: str,
) -> FetchRequest | CodecAnswer:
    partitions: list[FetchPartition] = []
    unresolved = False
    for topic, topic_id, entries in topics:
        if call.version >= _FIRST_WITH_IDS:
            topic = resolved_name(call.topic_names, topic_id)
            unresolved = unresolved or is_stand_in(topic)
        for number, offset, log_start, size, leader_epoch, last_epoch in entries:
            if leader_epoch < 0:
                leader_epoch = -1  # RequestUtils.getLeaderEpoch treats a negative epoch as none
            partition = TopicPartition(topic, number)
            partitions.append(
                FetchPartition(partition, offset, log_start, size, leader_epoch, last_epoch)
            )
    if isolation_level not in ISOLATION_LEVELS:
        return CodecAnswer(_unknown_isolation_level(call.version, partitions))
    if session_epoch < FINAL_EPOCH:
        session_epoch = EPOCH_MAX  # incremental, as FetchMetadata.isFull accepts only 0 and -1
    if unresolved:
        session_id, session_epoch = _outside_session(session_id, session_epoch)
    forgotten: tuple[TopicPartition, ...] = ()
    if forgotten_topics:
        forgotten = _forgotten(call, forgotten_topics)
    replica_epoch = -1
    if replica_state is not None:
        replica_id, replica_epoch = replica_state
    return FetchRequest(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        tuple(partitions),
        isolation_level,
        session_id,
        session_epoch,
        forgotten,
        rack_id,
        replica_epoch,
    )


def _forgotten(
    call: ApiCall, topics: Sequence[tuple[str, bytes, tuple[int, ...]]]
) -> tuple[TopicPartition, ...]:
    has_ids = call.version >= _FIRST_WITH_IDS
    return partitions_of(
        (resolved_name(call.topic_names, topic_id) if has_ids else topic, numbers)
        for topic, topic_id, numbers in topics
    )


def _unknown_isolation_level(version: int, partitions: list[FetchPartition]) -> FetchResponse:
    """Return the answer when ``IsolationLevel.forId`` throws: an error of the response and of each
    partition. A response with topic ids has only the error of the response
    (``FetchRequest.getErrorResponse``)."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    named = partitions if version < _FIRST_WITH_IDS else ()
    results = (FetchPartitionResponse(p.topic_partition, error) for p in last_of_each(named))
    return FetchResponse(error, 0, tuple(results))


def _outside_session(session_id: int, session_epoch: int) -> tuple[int, int]:
    """Keep unresolved topic ids out of sessions, which would hold their stand-in names for ever.

    A full fetch becomes a fetch without a session. An incremental fetch is answered
    FETCH_SESSION_ID_NOT_FOUND (session 0 never exists), after which the client sends a full fetch.
    """
    if session_epoch == 0:
        return session_id, -1
    return (session_id, -1) if session_epoch < 0 else (0, session_epoch)


def _fetched(response: FetchResponse, call: ApiCall) -> tuple[Any, ...]:
    """Return throttle time, error, session id, results by topic, endpoints of current leaders."""
    version = call.version
    results: Sequence[FetchPartitionResponse] = response.partitions
    for one in results:
        if one.error is not _NONE:
            results = [_result_for_version(result, version) for result in results]
            break
    topics: list[tuple[str | None, bytes | None, Any]] = []
    for topic, found in by_topic(results):
        topic_id = id_for_response(call.topic_names, topic) if version >= _FIRST_WITH_IDS else None
        topics.append((None if topic == NULL_NAME else topic, topic_id, found))
    endpoints = None
    if response.node_endpoints:
        endpoints = addresses(response.node_endpoints, call.listener)
    return response.throttle_time_ms, response.error, response.session_id, topics, endpoints


def _result_for_version(result: FetchPartitionResponse, version: int) -> FetchPartitionResponse:
    """Return the result as clients of this version know it: KAFKA_STORAGE_ERROR exists since
    version 6 (docs/kafka/fetch.md#errors)."""
    error = result.error
    if error is ErrorCode.KAFKA_STORAGE_ERROR and version <= 5:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    else:
        error = error_for_response(result.topic_partition.topic, error)
    return result if error is result.error else replace(result, error=error)


FETCH = Api(
    1,
    reads(
        _fetch,
        "call replicaId replicaState(replicaId replicaEpoch) maxWaitMs minBytes maxBytes "
        "isolationLevel sessionId sessionEpoch topics(topic topicId partitions(partition "
        "fetchOffset logStartOffset partitionMaxBytes currentLeaderEpoch lastFetchedEpoch)) "
        "forgottenTopicsData(topic topicId partitions) rackId",
    ),
    writes(
        "[throttleTimeMs errorCode sessionId responses[topic topicId partitions("
        "partitionIndex=topic_partition.partition errorCode=error highWatermark lastStableOffset "
        "logStartOffset abortedTransactions(producerId firstOffset) preferredReadReplica records "
        "divergingEpoch(epoch=leader_epoch endOffset) currentLeader[leaderId leaderEpoch])] "
        "nodeEndpoints[nodeId host port rack]]",
        convert=_fetched,
    ),
)
"""Before they are encoded here, records are converted to format v0 below version 2, to v1 below 4.

Version 1 adds the throttle time, 3 a limit for the whole response, 4 isolation level, LSO and
format v2, 5 log start offsets, 7 sessions (KIP-227), 9 leader epoch fencing, 10 zstd, 11 rack and
preferred replica (KIP-392), 12 flexible encoding, last fetched epoch and diverging epoch, 13 topic
ids, 15 replica id and epoch as a tagged field (KIP-903), 16 the current leader (KIP-951).
"""
