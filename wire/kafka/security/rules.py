"""The permissions that each request needs, as Kafka's ``KafkaApis`` asks its authorizer.

Requests in ``UNRESTRICTED`` need no permission. A request in neither table is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....coordinators.coordinator_errors import with_error_texts
from ....protocol import admin, control, data, groups, transactions
from ....protocol.errors import ErrorCode
from ....protocol.records.format import HEADER_SIZE
from ....protocol.security import acls, authentication, delegation_tokens, quotas
from ....protocol.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from .permissions import (
    CLUSTER_REFUSED,
    GROUP_REFUSED,
    TOPIC_REFUSED,
    TRANSACTION_REFUSED,
    Decision,
    Permissions,
    Rule,
    allowed_topics,
    filter_items,
    filter_partitions,
    refused,
)

_MAGIC_AT, _ATTRIBUTES_AT, _PRODUCER_ID_AT = 16, 21, 43
_IS_TRANSACTIONAL = 0x10

# -- rules that many requests share --------------------------------------------------------------


def cluster(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        if permissions.may_cluster(operation):
            return Decision(request)
        return refused(request, CLUSTER_REFUSED)

    return rule


def group(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        if permissions.may_group(operation, request.group_id):
            return Decision(request)
        return refused(request, GROUP_REFUSED)

    return rule


def transaction(permissions: Permissions, request: Any) -> Decision:
    if permissions.may_transact(AclOperation.WRITE, request.transactional_id):
        return Decision(request)
    return refused(request, TRANSACTION_REFUSED)


def partitions(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        return filter_partitions(permissions, request, operation, topic_of)

    return rule


def topic_of(item: Any) -> str:
    return str(getattr(item, "topic_partition", item)[0])


# -- records and metadata ------------------------------------------------------------------------


def produce(permissions: Permissions, request: data.ProduceRequest) -> Decision:
    headers = [
        bytes(partition.records[:HEADER_SIZE])
        for partition in request.partitions
        if partition.records is not None and len(partition.records) >= HEADER_SIZE
    ]
    headers = [header for header in headers if header[_MAGIC_AT] == 2]
    is_transactional = any(header[_ATTRIBUTES_AT + 1] & _IS_TRANSACTIONAL for header in headers)
    is_idempotent = any(header[_PRODUCER_ID_AT] < 0x80 for header in headers)
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
    return filter_partitions(permissions, request, AclOperation.WRITE, topic_of)


def fetch(permissions: Permissions, request: data.FetchRequest) -> Decision:
    """Give a consumer no fetch session, so that its permissions are checked at each fetch."""
    if request.replica_id >= 0:
        if permissions.may_cluster(AclOperation.CLUSTER_ACTION):
            return Decision(request)
        return refused(request, TOPIC_REFUSED)
    without_session = replace(request, session_id=0, session_epoch=-1, forgotten=())
    return filter_partitions(permissions, request, AclOperation.READ, topic_of, without_session)


def leader_epochs(permissions: Permissions, request: Any) -> Decision:
    if permissions.may_cluster(AclOperation.CLUSTER_ACTION):
        return Decision(request)
    return filter_partitions(permissions, request, AclOperation.DESCRIBE, topic_of)


def metadata(permissions: Permissions, request: data.MetadataRequest) -> Decision:
    """Hide topics that the client may not describe; refuse them if they are requested by name."""
    may_create_by_acl = permissions.behaviour.topics_created_by_acl
    names = request.topics
    refused_names: tuple[str, ...] = ()
    forwarded = request
    if names:
        allowed = allowed_topics(permissions, AclOperation.DESCRIBE, names)
        if request.allow_auto_topic_creation and not permissions.may_cluster(AclOperation.CREATE):
            allowed = frozenset(
                name
                for name in allowed
                if permissions.is_known_topic(name)
                or (may_create_by_acl and permissions.may_topic(AclOperation.CREATE, name))
            )
        refused_names = tuple(name for name in dict.fromkeys(names) if name not in allowed)
        forwarded = replace(request, topics=tuple(name for name in names if name in allowed))

    def finish(response: data.MetadataResponse) -> data.MetadataResponse:
        return _visible_metadata(permissions, request, response, refused_names)

    return Decision(forwarded, finish=finish)


def _visible_metadata(
    permissions: Permissions,
    request: data.MetadataRequest,
    response: data.MetadataResponse,
    refused_names: tuple[str, ...],
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
    topics += [
        data.MetadataTopic(TOPIC_REFUSED, name, False, (), "", None) for name in refused_names
    ]
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

    return filter_items(request, "offsets", "partitions", is_allowed, TOPIC_REFUSED)


def find_coordinator(permissions: Permissions, request: data.FindCoordinatorRequest) -> Decision:
    may = permissions.may_transact if request.key_type == 1 else permissions.may_group
    error = TRANSACTION_REFUSED if request.key_type == 1 else GROUP_REFUSED
    decision = filter_items(
        request, "keys", "coordinators", lambda key: may(AclOperation.DESCRIBE, key), error
    )
    if decision.answer is None:
        return decision
    behaviour = permissions.behaviour
    return Decision(answer=with_error_texts(decision.answer, permissions.api_version, behaviour))


# -- groups and transactions ---------------------------------------------------------------------


def offset_commit(permissions: Permissions, request: Any) -> Decision:
    if not permissions.may_group(AclOperation.READ, request.group_id):
        return refused(request, GROUP_REFUSED)
    return filter_partitions(permissions, request, AclOperation.READ, topic_of)


def offset_fetch(permissions: Permissions, request: groups.OffsetFetchRequest) -> Decision:
    if not permissions.may_group(AclOperation.DESCRIBE, request.group_id):
        refusal = groups.OffsetFetchResponse(GROUP_REFUSED, ())
        reports_errors = permissions.behaviour.offset_fetch_1_tells_errors
        return Decision(answer=refusal.for_version(permissions.api_version, reports_errors))

    def is_allowed(topic: str) -> bool:
        return permissions.may_topic(AclOperation.DESCRIBE, topic)

    if request.partitions is None:
        return Decision(
            request,
            finish=lambda response: replace(
                response,
                partitions=tuple(p for p in response.partitions if is_allowed(topic_of(p))),
            ),
        )
    refused_items = tuple(p for p in request.partitions if not is_allowed(p.topic))
    if not refused_items:
        return Decision(request)
    refusals = tuple(groups.CommittedOffset(p, TOPIC_REFUSED) for p in refused_items)
    allowed = tuple(p for p in request.partitions if p not in refused_items)
    if not allowed:
        return Decision(answer=groups.OffsetFetchResponse(ErrorCode.NONE, refusals))
    return Decision(
        replace(request, partitions=allowed),
        finish=lambda response: replace(response, partitions=(*response.partitions, *refusals)),
    )


def offset_delete(permissions: Permissions, request: groups.OffsetDeleteRequest) -> Decision:
    if not permissions.may_group(AclOperation.DELETE, request.group_id):
        return refused(request, GROUP_REFUSED)
    allowed = allowed_topics(permissions, AclOperation.READ, (p.topic for p in request.partitions))
    refusals = tuple((p, TOPIC_REFUSED) for p in request.partitions if p.topic not in allowed)
    forwarded = tuple(p for p in request.partitions if p.topic in allowed)
    return Decision(
        replace(request, partitions=forwarded),
        finish=lambda response: replace(response, partitions=(*response.partitions, *refusals)),
    )


def describe_groups(
    permissions: Permissions,
    request: groups.DescribeGroupsRequest | groups.ConsumerGroupDescribeRequest,
) -> Decision:
    decision = filter_items(
        request,
        "group_ids",
        "groups",
        lambda group_id: permissions.may_group(AclOperation.DESCRIBE, group_id),
        GROUP_REFUSED,
    )
    if decision.request is None or not request.include_authorized_operations:
        return decision
    add_refusals = decision.finish

    def finish(response: Any) -> Any:
        shown = tuple(
            replace(
                group,
                authorized_operations=permissions.operations(ResourceType.GROUP, group.group_id),
            )
            if group.error is ErrorCode.NONE
            else group
            for group in response.groups
        )
        response = replace(response, groups=shown)
        return response if add_refusals is None else add_refusals(response)

    return Decision(decision.request, finish=finish)


def _listing(request: Any, field: str, is_shown: Callable[[Any], bool]) -> Decision:
    """Pass a request on, and remove from its answer the items that the client may not see."""

    def finish(response: Any) -> Any:
        return replace(response, **{field: tuple(filter(is_shown, getattr(response, field)))})

    return Decision(request, finish=finish)


def list_groups(permissions: Permissions, request: groups.ListGroupsRequest) -> Decision:
    if permissions.may_cluster(AclOperation.DESCRIBE):
        return Decision(request)
    if not permissions.behaviour.groups_listed_by_acl:
        return refused(request, CLUSTER_REFUSED)
    return _listing(
        request,
        "groups",
        lambda group: permissions.may_group(AclOperation.DESCRIBE, group.group_id),
    )


def delete_groups(permissions: Permissions, request: groups.DeleteGroupsRequest) -> Decision:
    def is_allowed(group_id: str) -> bool:
        return permissions.may_group(AclOperation.DELETE, group_id)

    return filter_items(request, "group_ids", "groups", is_allowed, GROUP_REFUSED)


def add_partitions(
    permissions: Permissions, request: transactions.AddPartitionsToTxnRequest
) -> Decision:
    """Refuse a transaction with a refused topic; its other topics are OPERATION_NOT_ATTEMPTED."""
    refusals: list[transactions.AddPartitionsToTxnResult] = []
    allowed: list[transactions.TransactionPartitions] = []
    for one in request.transactions:
        topics = allowed_topics(permissions, AclOperation.WRITE, (p.topic for p in one.partitions))
        errors: tuple[tuple[Any, ErrorCode], ...] = ()
        if not permissions.may_transact(AclOperation.WRITE, one.transactional_id):
            errors = tuple((p, TRANSACTION_REFUSED) for p in one.partitions)
        elif any(p.topic not in topics for p in one.partitions):
            other = ErrorCode.OPERATION_NOT_ATTEMPTED
            errors = tuple(
                (p, other if p.topic in topics else TOPIC_REFUSED) for p in one.partitions
            )
        if errors:
            refusals.append(transactions.AddPartitionsToTxnResult(one.transactional_id, errors))
        else:
            allowed.append(one)
    if not refusals:
        return Decision(request)
    if not allowed:
        return Decision(answer=transactions.AddPartitionsToTxnResponse(tuple(refusals)))
    return Decision(
        replace(request, transactions=tuple(allowed)),
        finish=lambda response: replace(response, results=(*response.results, *refusals)),
    )


def add_offsets(permissions: Permissions, request: Any) -> Decision:
    if not permissions.may_transact(AclOperation.WRITE, request.transactional_id):
        return refused(request, TRANSACTION_REFUSED)
    return group(AclOperation.READ)(permissions, request)


def txn_offset_commit(permissions: Permissions, request: Any) -> Decision:
    if not permissions.may_transact(AclOperation.WRITE, request.transactional_id):
        return refused(request, TRANSACTION_REFUSED)
    return offset_commit(permissions, request)


def describe_transactions(permissions: Permissions, request: Any) -> Decision:
    return filter_items(
        request,
        "transactional_ids",
        "transactions",
        lambda name: permissions.may_transact(AclOperation.DESCRIBE, name),
        TRANSACTION_REFUSED,
    )


def list_transactions(permissions: Permissions, request: Any) -> Decision:
    return _listing(
        request,
        "transactions",
        lambda one: permissions.may_transact(AclOperation.DESCRIBE, one.transactional_id),
    )


# -- administration ------------------------------------------------------------------------------


def create_topics(permissions: Permissions, request: admin.CreateTopicsRequest) -> Decision:
    if permissions.may_cluster(AclOperation.CREATE):
        return Decision(request)
    if not permissions.behaviour.topics_created_by_acl:
        return refused(request, CLUSTER_REFUSED)
    return topics(AclOperation.CREATE)(permissions, request)


def topics(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        def is_allowed(topic: Any) -> bool:
            return permissions.may_topic(operation, getattr(topic, "name", topic))

        return filter_items(request, "topics", "topics", is_allowed, TOPIC_REFUSED)

    return rule


def delete_topics(permissions: Permissions, request: admin.DeleteTopicsRequest) -> Decision:
    """Pass on the topics that the client may delete.

    Topics with both name and id are always passed on: the controller refuses the whole request.
    """
    results: list[admin.TopicResult] = []
    names: list[str] = []
    for name in request.topics:
        if permissions.may_topic(AclOperation.DELETE, name):
            names.append(name)
        else:
            results.append(admin.TopicResult(name, TOPIC_REFUSED))
    ids: list[str] = []
    for topic_id in request.topic_ids:
        known = permissions.topic_name(topic_id)
        if known is None or permissions.may_topic(AclOperation.DELETE, known):
            ids.append(topic_id)
        else:  # the name is shown only to clients that may describe the topic
            is_shown = permissions.may_topic(AclOperation.DESCRIBE, known)
            shown = known if is_shown else ""
            results.append(admin.TopicResult(shown, TOPIC_REFUSED, None, topic_id))
    if not results:
        return Decision(request)
    refusals = tuple(results)
    if not (names or ids or request.nameless or request.names_with_ids):
        return Decision(answer=admin.DeleteTopicsResponse(refusals))
    return Decision(
        replace(request, topics=tuple(names), topic_ids=tuple(ids)),
        finish=lambda response: replace(response, topics=(*response.topics, *refusals)),
    )


def configs(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        def is_topic(item: Any) -> bool:
            return bool(item[0].type == admin.TOPIC_RESOURCE)

        def is_allowed(item: Any) -> bool:
            if is_topic(item):
                return permissions.may_topic(operation, item[0].name)
            return permissions.may_cluster(operation)

        decision = filter_items(request, "resources", "results", is_allowed, CLUSTER_REFUSED)
        if decision.request is None:
            return Decision(answer=_topics_refused(decision.answer))
        add_refusals = decision.finish
        if add_refusals is None:
            return decision
        return Decision(
            decision.request, finish=lambda response: _topics_refused(add_refusals(response))
        )

    return rule


def _topics_refused(response: Any) -> Any:
    """Return the response with TOPIC_AUTHORIZATION_FAILED for refused topics."""

    def corrected(result: Any) -> Any:
        if isinstance(result, tuple):
            resource, error, text = result
            is_topic = resource.type == admin.TOPIC_RESOURCE
            return (
                resource,
                TOPIC_REFUSED if is_topic and error is CLUSTER_REFUSED else error,
                text,
            )
        is_topic = result.resource.type == admin.TOPIC_RESOURCE
        if is_topic and result.error is CLUSTER_REFUSED:
            return replace(result, error=TOPIC_REFUSED)
        return result

    return replace(response, results=tuple(map(corrected, response.results)))


# -- the tables ----------------------------------------------------------------------------------

RULES: dict[type, Rule] = {
    data.ProduceRequest: produce,
    data.FetchRequest: fetch,
    data.ListOffsetsRequest: partitions(AclOperation.DESCRIBE),
    data.MetadataRequest: metadata,
    data.OffsetForLeaderEpochRequest: leader_epochs,
    data.InitProducerIdRequest: init_producer_id,
    data.DeleteRecordsRequest: delete_records,
    data.FindCoordinatorRequest: find_coordinator,
    groups.JoinGroupRequest: group(AclOperation.READ),
    groups.SyncGroupRequest: group(AclOperation.READ),
    groups.HeartbeatRequest: group(AclOperation.READ),
    groups.LeaveGroupRequest: group(AclOperation.READ),
    groups.OffsetCommitRequest: offset_commit,
    groups.OffsetFetchRequest: offset_fetch,
    groups.OffsetDeleteRequest: offset_delete,
    groups.DescribeGroupsRequest: describe_groups,
    groups.ListGroupsRequest: list_groups,
    groups.ConsumerGroupHeartbeatRequest: group(AclOperation.READ),
    groups.ConsumerGroupDescribeRequest: describe_groups,
    groups.DeleteGroupsRequest: delete_groups,
    transactions.AddPartitionsToTxnRequest: add_partitions,
    transactions.AddOffsetsToTxnRequest: add_offsets,
    transactions.EndTxnRequest: transaction,
    transactions.WriteTxnMarkersRequest: cluster(AclOperation.CLUSTER_ACTION),
    transactions.TxnOffsetCommitRequest: txn_offset_commit,
    transactions.DescribeProducersRequest: partitions(AclOperation.READ),
    transactions.DescribeTransactionsRequest: describe_transactions,
    transactions.ListTransactionsRequest: list_transactions,
    admin.CreateTopicsRequest: create_topics,
    admin.DeleteTopicsRequest: delete_topics,
    admin.CreatePartitionsRequest: topics(AclOperation.ALTER),
    admin.ElectLeadersRequest: cluster(AclOperation.ALTER),
    admin.AlterPartitionReassignmentsRequest: cluster(AclOperation.ALTER),
    admin.ListPartitionReassignmentsRequest: cluster(AclOperation.DESCRIBE),
    admin.DescribeConfigsRequest: configs(AclOperation.DESCRIBE_CONFIGS),
    admin.AlterConfigsRequest: configs(AclOperation.ALTER_CONFIGS),
    admin.DescribeLogDirsRequest: cluster(AclOperation.DESCRIBE),
    admin.AlterReplicaLogDirsRequest: cluster(AclOperation.ALTER),
    admin.UpdateFeaturesRequest: cluster(AclOperation.ALTER),
    control.AlterIsrRequest: cluster(AclOperation.CLUSTER_ACTION),
    control.AllocateProducerIdsRequest: cluster(AclOperation.CLUSTER_ACTION),
    authentication.DescribeUserScramCredentialsRequest: cluster(AclOperation.DESCRIBE),
    authentication.AlterUserScramCredentialsRequest: cluster(AclOperation.ALTER),
    quotas.DescribeClientQuotasRequest: cluster(AclOperation.DESCRIBE_CONFIGS),
    quotas.AlterClientQuotasRequest: cluster(AclOperation.ALTER_CONFIGS),
    acls.DescribeAclsRequest: cluster(AclOperation.DESCRIBE),
    acls.CreateAclsRequest: cluster(AclOperation.ALTER),
    acls.DeleteAclsRequest: cluster(AclOperation.ALTER),
}
"""Rules by type of request."""

UNRESTRICTED = frozenset(
    (
        authentication.SaslHandshakeRequest,
        authentication.SaslAuthenticateRequest,
        delegation_tokens.CreateDelegationTokenRequest,
        delegation_tokens.RenewDelegationTokenRequest,
        delegation_tokens.ExpireDelegationTokenRequest,
        delegation_tokens.DescribeDelegationTokenRequest,
    )
)
"""Requests that every client may send; the broker itself decides on requests about tokens."""
