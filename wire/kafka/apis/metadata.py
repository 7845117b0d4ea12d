"""Brokers, controller, topics and the leaders of their partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....protocol.data import MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic
from ....protocol.errors import ErrorCode
from ....protocol.values import ZERO_UUID, uuid_bytes, uuid_text
from ..api import Api, ApiCall, CodecAnswer, reads, writes
from ..endpoints import addresses

NOT_ASKED = -2147483648
"""Value of the authorized operations if the client did not ask for them."""
ALL_CLUSTER_OPERATIONS = 8096
ALL_TOPIC_OPERATIONS = 3576
"""Bit sets of all operations on the resource type, which a broker without an authorizer answers."""
_FIRST_WITH_IDS = 12
_RequestedTopics = Sequence[tuple[str | None, bytes]]


def operations(allowed: int | None, is_requested: bool, all_operations: int) -> int:
    """Return the bit set of authorized operations to answer."""
    if not is_requested:
        return NOT_ASKED
    return all_operations if allowed is None else allowed


def _metadata(
    call: ApiCall,
    requested: _RequestedTopics | None,
    may_create: bool,
    cluster_operations: bool,
    topic_operations: bool,
) -> MetadataRequest | CodecAnswer:
    names: tuple[str, ...] | None = None
    ids: tuple[str, ...] = ()
    if requested is not None and (requested or call.version >= 1):
        error = _refusal(requested, call.version)
        if error is not None:
            return CodecAnswer(_refused(requested, error))
        ids = tuple(uuid_text(topic_id) for _, topic_id in requested if topic_id != ZERO_UUID)
        # KafkaApis.handleTopicMetadataRequest looks up either names or ids.
        names = () if ids else tuple(name or "" for name, _ in requested)
    return MetadataRequest(names, may_create, ids, cluster_operations, topic_operations)


def _refusal(requested: _RequestedTopics, version: int) -> ErrorCode | None:
    """Return the error with which the whole request fails, if it does.

    ``KafkaApis.handleTopicMetadataRequest`` accepts ids from version 12 on, and needs names before;
    a null name among names causes a NullPointerException.
    """
    has_ids = any(topic_id != ZERO_UUID for _, topic_id in requested)
    has_nulls = any(name is None for name, _ in requested)
    if version < _FIRST_WITH_IDS:
        return ErrorCode.INVALID_REQUEST if has_ids or has_nulls else None
    return ErrorCode.UNKNOWN_SERVER_ERROR if has_nulls and not has_ids else None


def _refused(requested: _RequestedTopics, error: ErrorCode) -> MetadataResponse:
    """Return a response of only the topics and the error (``MetadataRequest.getErrorResponse``)."""
    topics = [
        MetadataTopic(error, name or "", False, (), "" if i == ZERO_UUID else uuid_text(i))
        for name, i in requested
    ]
    return MetadataResponse((), "", -1, tuple(topics))


def _described(response: MetadataResponse, call: ApiCall) -> tuple[Any, ...]:
    """Return brokers, cluster id, controller, topics, and operations on the cluster."""
    version, request = call.version, call.request
    of_topics = of_cluster = False
    if isinstance(request, MetadataRequest):
        of_topics = request.include_topic_authorized_operations
        of_cluster = request.include_cluster_authorized_operations
    alive = frozenset(broker.id for broker in response.brokers)
    topics = [
        (
            topic.error,
            topic.name or "" if version < _FIRST_WITH_IDS else topic.name,
            topic.topic_id,
            topic.is_internal,
            topic.partitions if version >= 6 else _old_partitions(topic.partitions, version, alive),
            operations(topic.authorized_operations, of_topics, ALL_TOPIC_OPERATIONS),
        )
        for topic in response.topics
    ]
    allowed = operations(response.authorized_operations, of_cluster, ALL_CLUSTER_OPERATIONS)
    brokers = addresses(response.brokers, call.listener)
    return brokers, response.cluster_id or None, response.controller_id, topics, allowed


def _old_partitions(
    partitions: Sequence[MetadataPartition], version: int, alive: frozenset[int]
) -> list[MetadataPartition]:
    """Return the partitions as old clients know them (docs/kafka/administration.md#metadata).

    LISTENER_NOT_FOUND exists since version 6. In version 0 replicas on dead brokers are left out.
    """
    found = []
    for one in partitions:
        if version == 0:
            one = _without_dead_replicas(one, alive)
        if one.error is ErrorCode.LISTENER_NOT_FOUND:
            one = replace(one, error=ErrorCode.LEADER_NOT_AVAILABLE)
        found.append(one)
    return found


def _without_dead_replicas(
    partition: MetadataPartition, alive: frozenset[int]
) -> MetadataPartition:
    replicas = tuple(replica for replica in partition.replicas if replica in alive)
    isr = tuple(replica for replica in partition.isr if replica in alive)
    if replicas == partition.replicas and isr == partition.isr:
        return partition
    error = partition.error
    if error is ErrorCode.NONE:
        error = ErrorCode.REPLICA_NOT_AVAILABLE
    return replace(partition, error=error, replicas=replicas, isr=isr)


METADATA = Api(
    3,
    reads(
        _metadata,
        "call topics(name topicId) allowAutoTopicCreation includeClusterAuthorizedOperations "
        "includeTopicAuthorizedOperations",
    ),
    writes(
        "[brokers[nodeId host port rack] clusterId controllerId topics[errorCode name topicId "
        "isInternal partitions(errorCode=error partitionIndex=partition leaderId=leader "
        "leaderEpoch replicaNodes=replicas isrNodes=isr offlineReplicas) "
        "topicAuthorizedOperations] clusterAuthorizedOperations]",
        convert=_described,
        topicId=uuid_bytes,
    ),
)
"""An empty list asks for all topics in version 0, null from 1 on.

Version 1 adds racks, controller and internal topics, 2 the cluster id, 4 a flag against automatic
creation, 5 offline replicas, 7 leader epochs, 8 authorized operations, 10 topic ids, 12 topics
requested by id. From 11 on DescribeCluster has the authorized operations of the cluster.
"""

_BROKERS, _CONTROLLERS = 1, 2


@dataclass(frozen=True, slots=True)
class WrongEndpointType:
    """The response to a client that asked a broker for endpoints of another type."""

    endpoint_type: int


def _describe_cluster(with_operations: bool, endpoint_type: int) -> MetadataRequest | CodecAnswer:
    if endpoint_type != _BROKERS:
        return CodecAnswer(WrongEndpointType(endpoint_type))
    return MetadataRequest((), False, include_cluster_authorized_operations=with_operations)


def _cluster(response: MetadataResponse | WrongEndpointType, call: ApiCall) -> tuple[Any, ...]:
    """Return error and message, cluster id, controller, brokers, and operations."""
    if isinstance(response, WrongEndpointType):
        return *_refused_type(response.endpoint_type), "", -1, (), NOT_ASKED
    is_requested = call.request is not None and call.request.include_cluster_authorized_operations
    allowed = operations(response.authorized_operations, is_requested, ALL_CLUSTER_OPERATIONS)
    brokers = addresses(response.brokers, call.listener)
    return ErrorCode.NONE, None, response.cluster_id, response.controller_id, brokers, allowed


def _refused_type(endpoint_type: int) -> tuple[ErrorCode, str]:
    if endpoint_type == _CONTROLLERS:
        return ErrorCode.MISMATCHED_ENDPOINT_TYPE, (
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER"
        )
    text = f"Unsupported endpoint type {endpoint_type}"
    return ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, text


DESCRIBE_CLUSTER = Api(
    60,
    reads(_describe_cluster, "includeClusterAuthorizedOperations endpointType"),
    writes(
        "[errorCode errorMessage clusterId controllerId brokers[brokerId host port rack] "
        "clusterAuthorizedOperations]",
        convert=_cluster,
    ),
)
"""List cluster id, controller and brokers (KIP-700). Version 1 adds the type of endpoint (KIP-919).

The backend gets a Metadata request for no topic instead.
"""
