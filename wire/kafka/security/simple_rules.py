"""Rules that many requests have in common."""

from __future__ import annotations

from typing import Any

from ....protocol.security.acls import AclOperation
from .permissions import (
    CLUSTER_REFUSED,
    GROUP_REFUSED,
    TRANSACTION_REFUSED,
    Decision,
    Permissions,
    Rule,
    partitions_divided,
    refused,
)


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
        return partitions_divided(permissions, request, operation, topic_of)

    return rule


def topic_of(item: Any) -> str:
    return str(getattr(item, "topic_partition", item)[0])
