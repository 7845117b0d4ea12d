"""Rules for requests about records and metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....coordinators.coordinator_errors import with_error_texts
from ....protocol import data
from ....protocol.errors import ErrorCode
from ....protocol.records.format import HEADER_SIZE
from ....protocol.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from .permissions import (
    CLUSTER_REFUSED,
    GROUP_REFUSED,
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    Decision,
    Permissions,
    allowed_topics,
    divided,
    partitions_divided,
    refused,
)
from .simple_rules import topic_of, transaction

_ATTRIBUTES_AT, _PRODUCER_ID_AT = 21, 43
_IS_TRANSACTIONAL = 0x10


def produce(permissions: Permissions, request: data.ProduceRequest) -> Decision:
    batches = [
        bytes(partition.records[:HEADER_SIZE])
        for partition in request.partitions
        if partition.records is not None and len(partition.records) >= HEADER_SIZE
    ]
    modern = [batch for batch in batches if batch[16] == 2]
    is_transactional = any(batch[_ATTRIBUTES_AT + 1] & _IS_TRANSACTIONAL for batch in modern)
    is_idempotent = any(batch[_PRODUCER_ID_AT] < 0x80 for batch in modern)
    name = request.transactional_id
    if is_transactional:
        if name is None or not permissions.may_transact(AclOperation.WRITE, name):
            return refused(request, TRANSACTION_REFUSED)
    elif (
        is_idempotent
        and not permissions.behaviour.writing_implies_idempotence
        and not permissions.may_cluster(AclOperation.IDEMPOTENT_WRITE)
    ):
        return refused(request, CLUSTER_REFUSED)
    return partitions_divided(permissions, request, AclOperation.WRITE, topic_of)


def fetch(permissions: Permissions, request: data.FetchRequest) -> Decision:
    """A consumer gets no fetch session, so that its rights are checked at each fetch."""
    if request.replica_id >= 0:
        if permissions.may_cluster(AclOperation.CLUSTER_ACTION):
            return Decision(request)
        return refused(request, TOPIC_REFUSED)
    alone = replace(request, session_id=0, session_epoch=-1, forgotten=())
    return partitions_divided(permissions, request, AclOperation.READ, topic_of, alone)


def leader_epochs(permissions: Permissions, request: Any) -> Decision:
    if permissions.may_cluster(AclOperation.CLUSTER_ACTION):
        return Decision(request)
    return partitions_divided(permissions, request, AclOperation.DESCRIBE, topic_of)


def metadata(permissions: Permissions, request: data.MetadataRequest) -> Decision:
    """Topics that may not be described are not there, or are refused if they are asked for."""
    behaviour_create = permissions.behaviour.topics_created_by_acl
    names = request.topics
    left: tuple[str, ...] = ()
    goes_on = request
    if names:
        allowed = allowed_topics(permissions, AclOperation.DESCRIBE, names)
        if request.allow_auto_topic_creation and not permissions.may_cluster(AclOperation.CREATE):
            allowed = frozenset(
                name
                for name in allowed
                if permissions.is_known_topic(name)
                or (behaviour_create and permissions.may_topic(AclOperation.CREATE, name))
            )
        left = tuple(name for name in dict.fromkeys(names) if name not in allowed)
        goes_on = replace(request, topics=tuple(name for name in names if name in allowed))

    def finish(response: data.MetadataResponse) -> data.MetadataResponse:
        return _shown_metadata(permissions, request, response, left)

    return Decision(goes_on, finish=finish)


def _shown_metadata(
    permissions: Permissions,
    request: data.MetadataRequest,
    response: data.MetadataResponse,
    left: tuple[str, ...],
) -> data.MetadataResponse:
    topics: list[data.MetadataTopic] = []
    for topic in response.topics:
        if topic.name is None or permissions.may_topic(AclOperation.DESCRIBE, topic.name):
            topics.append(topic)
        elif request.topic_ids:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID
            topics.append(data.MetadataTopic(unknown, None, False, (), topic.topic_id))
    if request.include_topic_authorized_operations:
        topics = [_with_operations(permissions, topic) for topic in topics]
    topics += [data.MetadataTopic(TOPIC_REFUSED, name, False, (), "", None) for name in left]
    operations = None
    if request.include_cluster_authorized_operations:
        operations = 0
        if permissions.may_cluster(AclOperation.DESCRIBE):
            operations = permissions.operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return replace(response, topics=tuple(topics), authorized_operations=operations)


def _with_operations(permissions: Permissions, topic: data.MetadataTopic) -> data.MetadataTopic:
    if topic.name is None or topic.error is not ErrorCode.NONE:
        return topic
    bits = permissions.operations(ResourceType.TOPIC, topic.name)
    return replace(topic, authorized_operations=bits)


def init_producer_id(permissions: Permissions, request: data.InitProducerIdRequest) -> Decision:
    if request.transactional_id is not None:
        return transaction(permissions, request)
    if permissions.may_cluster(AclOperation.IDEMPOTENT_WRITE) or (
        permissions.behaviour.writing_implies_idempotence
        and permissions.may_any_topic(AclOperation.WRITE)
    ):
        return Decision(request)
    return refused(request, CLUSTER_REFUSED)


def delete_records(permissions: Permissions, request: data.DeleteRecordsRequest) -> Decision:
    def is_allowed(item: Any) -> bool:
        return permissions.may_topic(AclOperation.DELETE, item[0].topic)

    return divided(request, "offsets", "partitions", is_allowed, TOPIC_REFUSED)


def find_coordinator(permissions: Permissions, request: data.FindCoordinatorRequest) -> Decision:
    may = permissions.may_transact if request.key_type == 1 else permissions.may_group
    error = TRANSACTION_REFUSED if request.key_type == 1 else GROUP_REFUSED
    decision = divided(
        request, "keys", "coordinators", lambda key: may(AclOperation.DESCRIBE, key), error
    )
    if decision.answer is None:
        return decision
    behaviour = permissions.behaviour
    return Decision(answer=with_error_texts(decision.answer, permissions.api_version, behaviour))
