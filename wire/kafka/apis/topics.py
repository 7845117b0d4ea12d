"""Administration of topics and their replicas."""

from __future__ import annotations

from dataclasses import replace

from ....protocol.admin import (
    PREFERRED,
    UNCLEAN,
    AlterPartitionReassignmentsRequest,
    ConfigEntry,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    NewPartitions,
    NewTopic,
    TopicResult,
)
from ....protocol.errors import ErrorCode
from ....protocol.values import ZERO_UUID, TopicPartition, uuid_bytes, uuid_text
from ..api import Api, ApiCall, CodecAnswer, each, reads, writes
from ..topics import by_topic, each_partition, partitions_or_all

_SOURCE_TOPIC = 1


def _with_entries(topics: tuple[TopicResult, ...]) -> list[TopicResult]:
    """Return the topics with arrays of configurations, as Java's admin client fails on null."""
    return [
        replace(
            topic,
            config_entries=topic.config_entries
            or tuple(ConfigEntry(name, value, _SOURCE_TOPIC) for name, value in topic.config),
        )
        for topic in topics
    ]


CREATE_TOPICS = Api(
    19,
    reads(
        CreateTopicsRequest,
        "topics(name numPartitions replicationFactor assignments(partitionIndex brokerIds) "
        "configs(name value)) timeoutMs validateOnly",
        topics=each(NewTopic),
    ),
    writes(
        "throttleTimeMs topics(name topicId errorCode=error errorMessage numPartitions=partitions "
        "replicationFactor configs=config_entries(name value readOnly configSource=source "
        "isSensitive))",
        topics=_with_entries,
        topicId=uuid_bytes,
    ),
)
"""Create topics with numbers of partitions and replicas, or with a replica assignment.

Version 1 adds validation only and the error message, 4 the value -1 for the broker's defaults
(KIP-464), 5 partitions, replication factor and configs in the response (KIP-525), 7 the topic id.
"""


def _delete_topics(
    call: ApiCall,
    names: tuple[str, ...],
    topics: tuple[tuple[str | None, bytes], ...],
    timeout_ms: int,
) -> DeleteTopicsRequest:
    if call.version < 6:
        return DeleteTopicsRequest(names, timeout_ms)
    named = [name for name, topic_id in topics if topic_id == ZERO_UUID]
    with_id = [(name, uuid_text(topic_id)) for name, topic_id in topics if topic_id != ZERO_UUID]
    return DeleteTopicsRequest(
        tuple(name for name in named if name is not None),
        timeout_ms,
        tuple(topic_id for name, topic_id in with_id if name is None),
        named.count(None),
        tuple((name, topic_id) for name, topic_id in with_id if name is not None),
    )


def _deleted(
    response: DeleteTopicsResponse, call: ApiCall
) -> tuple[int, list[tuple[str | None, str, ErrorCode, str | None]]]:
    """Return throttle time and results. From version 6 on, the name of a topic requested by id is
    null if it is empty."""
    version, request = call.version, call.request
    empty_name = isinstance(request, DeleteTopicsRequest) and "" in request.topics
    results: list[tuple[str | None, str, ErrorCode, str | None]] = []
    for topic in response.topics:
        has_name = version < 6 or topic.name or (empty_name and not topic.topic_id)
        error = topic.error
        if error is ErrorCode.TOPIC_DELETION_DISABLED and version < 3:
            error = ErrorCode.INVALID_REQUEST
        name = topic.name if has_name else None
        results.append((name, topic.topic_id, error, topic.error_message))
    return response.throttle_time_ms, results


DELETE_TOPICS = Api(
    20,
    reads(_delete_topics, "call topicNames topics(name topicId) timeoutMs"),
    writes(
        "[throttleTimeMs responses[name topicId errorCode errorMessage]]",
        convert=_deleted,
        topicId=uuid_bytes,
    ),
)
"""Delete topics by name, or by id.

Version 3 adds TOPIC_DELETION_DISABLED in place of INVALID_REQUEST, 5 the error message (KIP-599), 6
topic ids (KIP-516).
"""

CREATE_PARTITIONS = Api(
    37,
    reads(
        CreatePartitionsRequest,
        "topics(name count assignments(brokerIds)) timeoutMs validateOnly",
        topics=each(NewPartitions),
        assignments=lambda found: None if found is None else tuple(ids for (ids,) in found),
    ),
    writes("throttleTimeMs results=topics(name errorCode=error errorMessage)"),
)
"""Add partitions to topics (KIP-195). Version 3 only adds an error of quotas."""


def _elect_leaders(
    call: ApiCall,
    election_type: int,
    partitions: tuple[TopicPartition, ...] | None,
    timeout_ms: int,
) -> ElectLeadersRequest | CodecAnswer:
    if call.version == 0:
        election_type = PREFERRED
    if election_type not in (PREFERRED, UNCLEAN):  # ElectionType.valueOf throws
        error = ErrorCode.UNKNOWN_SERVER_ERROR
        results = tuple((partition, error, None) for partition in partitions or ())
        return CodecAnswer(ElectLeadersResponse(error, results))
    return ElectLeadersRequest(election_type, partitions, timeout_ms)


def _elected(response: ElectLeadersResponse, call: ApiCall) -> ElectLeadersResponse:
    """Return the response; in version 0 every requested partition has the error of the whole."""
    if call.version >= 1 or response.error is ErrorCode.NONE or call.request is None:
        return response
    requested = call.request.partitions or ()
    results = tuple((partition, response.error, None) for partition in requested)
    return ElectLeadersResponse(response.error, results)


ELECT_LEADERS = Api(
    43,
    reads(
        _elect_leaders,
        "call electionType topicPartitions(topic partitions) timeoutMs",
        topicPartitions=partitions_or_all,
    ),
    writes(
        "errorCode=error replicaElectionResults=partitions"
        "[topic partitionResult[partitionId=partition errorCode errorMessage]]",
        convert=_elected,
        replicaElectionResults=by_topic,
    ),
)
"""Elect the preferred or an unclean leader (KIP-183, KIP-460).

Version 0 only elects preferred leaders. 1 adds the kind of election and an error of the whole
response.
"""


ALTER_PARTITION_REASSIGNMENTS = Api(
    45,
    reads(
        AlterPartitionReassignmentsRequest,
        "topics(name partitions(partitionIndex replicas)) timeoutMs",
        topics=each_partition(lambda *reassignment: reassignment),
    ),
    writes(
        "errorCode=error errorMessage "
        "responses=partitions[name partitions[partitionIndex=partition errorCode errorMessage]]",
        responses=by_topic,
    ),
)
"""Reassign replicas, or cancel a reassignment with null for the replicas (KIP-455)."""

LIST_PARTITION_REASSIGNMENTS = Api(
    46,
    reads(
        ListPartitionReassignmentsRequest,
        "topics(name partitionIndexes) timeoutMs",
        topics=partitions_or_all,
    ),
    writes(
        "errorCode=error errorMessage topics=reassignments[name partitions("
        "partitionIndex=topic_partition.partition replicas addingReplicas=adding "
        "removingReplicas=removing)]",
        topics=by_topic,
    ),
)
"""List the ongoing reassignments; null for the topics asks for all (KIP-455)."""
