"""Rules for requests about groups and transactions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....protocol import groups, transactions
from ....protocol.errors import ErrorCode
from ....protocol.security.acls import AclOperation, ResourceType
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
from .simple_rules import group, topic_of


def offset_commit(permissions: Permissions, request: Any) -> Decision:
    if not permissions.may_group(AclOperation.READ, request.group_id):
        return refused(request, GROUP_REFUSED)
    return partitions_divided(permissions, request, AclOperation.READ, topic_of)


def offset_fetch(permissions: Permissions, request: groups.OffsetFetchRequest) -> Decision:
    if not permissions.may_group(AclOperation.DESCRIBE, request.group_id):
        refusal = groups.OffsetFetchResponse(GROUP_REFUSED, ())
        tells = permissions.behaviour.offset_fetch_1_tells_errors
        return Decision(answer=refusal.as_told(permissions.api_version, tells))

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
    left = tuple(p for p in request.partitions if not is_allowed(p.topic))
    if not left:
        return Decision(request)
    refusals = tuple(groups.CommittedOffset(p, TOPIC_REFUSED) for p in left)
    allowed = tuple(p for p in request.partitions if p not in left)
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
    left = tuple((p, TOPIC_REFUSED) for p in request.partitions if p.topic not in allowed)
    kept = tuple(p for p in request.partitions if p.topic in allowed)
    return Decision(
        replace(request, partitions=kept),
        finish=lambda response: replace(response, partitions=(*response.partitions, *left)),
    )


def describe_groups(
    permissions: Permissions,
    request: groups.DescribeGroupsRequest | groups.ConsumerGroupDescribeRequest,
) -> Decision:
    decision = divided(
        request,
        "group_ids",
        "groups",
        lambda group_id: permissions.may_group(AclOperation.DESCRIBE, group_id),
        GROUP_REFUSED,
    )
    if decision.request is None or not request.include_authorized_operations:
        return decision
    divide = decision.finish

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
        return response if divide is None else divide(response)

    return Decision(decision.request, finish=finish)


def _listing(request: Any, field: str, is_shown: Callable[[Any], bool]) -> Decision:
    """Let a request pass, and leave out of its answer what the client may not see."""

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

    return divided(request, "group_ids", "groups", is_allowed, GROUP_REFUSED)


def add_partitions(
    permissions: Permissions, request: transactions.AddPartitionsToTxnRequest
) -> Decision:
    """One topic that is refused keeps the others of its transaction from being tried."""
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
    return divided(
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
