"""Rules for requests of administrators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....protocol import admin
from ....protocol.security.acls import AclOperation
from .permissions import (
    CLUSTER_REFUSED,
    TOPIC_REFUSED,
    Decision,
    Permissions,
    Rule,
    divided,
    refused,
)


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

        return divided(request, "topics", "topics", is_allowed, TOPIC_REFUSED)

    return rule


def configs(operation: AclOperation) -> Rule:
    def rule(permissions: Permissions, request: Any) -> Decision:
        def is_topic(item: Any) -> bool:
            return bool(item[0].type == admin.TOPIC_RESOURCE)

        def is_allowed(item: Any) -> bool:
            if is_topic(item):
                return permissions.may_topic(operation, item[0].name)
            return permissions.may_cluster(operation)

        decision = divided(request, "resources", "results", is_allowed, CLUSTER_REFUSED)
        if decision.request is None:
            return Decision(answer=_topics_refused(decision.answer))
        divide = decision.finish
        if divide is None:
            return decision
        return Decision(decision.request, finish=lambda response: _topics_refused(divide(response)))

    return rule


def _topics_refused(response: Any) -> Any:
    """Topics are refused by an error of their own."""

    def mended(result: Any) -> Any:
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

    return replace(response, results=tuple(map(mended, response.results)))
