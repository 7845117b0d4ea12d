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


def delete_topics(permissions: Permissions, request: admin.DeleteTopicsRequest) -> Decision:
    """What names a topic by name and id at once goes on: the controller refuses all of it."""
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
        else:  # its name is told only to those who may describe it
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
