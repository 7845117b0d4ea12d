"""The permissions of the client behind a request, and the decision on the request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ....protocol.data import RequestContext
from ....protocol.errors import ErrorCode
from ....protocol.security.acls import CLUSTER_NAME, AclOperation, ResourceType
from ....protocol.values import frozen
from ....protocol.versions import Behaviour
from ....statemachines.security.authorizer import Authorizer
from ..error_responses import error_response

CLUSTER_REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TOPIC_REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TRANSACTION_REFUSED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


@frozen
class Permissions:
    """The authorizer's answers for the principal and host of one request."""

    authorizer: Authorizer
    context: RequestContext
    behaviour: Behaviour
    is_known_topic: Callable[[str], bool]
    topic_name: Callable[[str], str | None]
    """Returns the name of a topic id; None if the broker does not know the id."""

    @property
    def principal(self) -> str:
        return self.context.principal

    @property
    def api_version(self) -> int:
        """API version of the request."""
        return self.context.api_version

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        context = self.context
        return self.authorizer.is_allowed(
            context.principal, context.client_host, operation, kind, name
        )

    def may_cluster(self, operation: AclOperation) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def may_topic(self, operation: AclOperation, topic: str) -> bool:
        return self.may(operation, ResourceType.TOPIC, topic)

    def may_group(self, operation: AclOperation, group_id: str) -> bool:
        return self.may(operation, ResourceType.GROUP, group_id)

    def may_transact(self, operation: AclOperation, transactional_id: str) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)

    def may_any_topic(self, operation: AclOperation) -> bool:
        context = self.context
        return self.authorizer.is_allowed_for_any(
            context.principal, context.client_host, operation, ResourceType.TOPIC
        )

    def operations(self, kind: ResourceType, name: str) -> int:
        """Return the bit set of operations that the client may perform on a resource."""
        context = self.context
        return self.authorizer.operations(context.principal, context.client_host, kind, name)


@frozen
class Decision:
    """Passes a request on as it is, narrowed or not at all; its answer may be changed."""

    request: Any = None
    """Request to pass on; None to pass on none."""
    answer: Any = None
    """Answer to the client if no request is passed on."""
    finish: Callable[[Any], Any] | None = None
    """Returns the client's answer for the broker's; None to leave it unchanged."""


Rule = Callable[[Permissions, Any], Decision]


def refused(request: Any, error: ErrorCode) -> Decision:
    """Refuse the whole request with one error."""
    return Decision(answer=error_response(request, error))


def filter_items(
    request: Any,
    request_field: str,
    response_field: str,
    is_allowed: Callable[[Any], bool],
    error: ErrorCode,
    forwarded: Any = None,
) -> Decision:
    """Decide on each item in a field of the request; ``response_field`` holds their results.

    ``forwarded`` is the request to narrow and pass on, if it is not the one that was sent.
    """
    forwarded = request if forwarded is None else forwarded
    items = getattr(request, request_field)
    allowed = tuple(item for item in items if is_allowed(item))
    if len(allowed) == len(items):
        return Decision(forwarded)
    kept = frozenset(map(id, allowed))
    refused_items = tuple(item for item in items if id(item) not in kept)
    refusal = error_response(replace(request, **{request_field: refused_items}), error)
    if not allowed:
        return Decision(answer=refusal)

    def finish(response: Any) -> Any:
        results = (*getattr(response, response_field), *getattr(refusal, response_field))
        return replace(response, **{response_field: results})

    return Decision(replace(forwarded, **{request_field: allowed}), finish=finish)


def filter_partitions(
    permissions: Permissions,
    request: Any,
    operation: AclOperation,
    topic_of: Callable[[Any], str],
    forwarded: Any = None,
) -> Decision:
    """Pass on the partitions of the topics on which the client may perform the operation."""
    verdicts: dict[str, bool] = {}

    def is_allowed(item: Any) -> bool:
        topic = topic_of(item)
        if topic not in verdicts:
            verdicts[topic] = permissions.may_topic(operation, topic)
        return verdicts[topic]

    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return filter_items(request, "partitions", "partitions", is_allowed, error, forwarded)


def allowed_topics(
    permissions: Permissions, operation: AclOperation, topics: Iterable[str]
) -> frozenset[str]:
    """Return the topics on which the client may perform the operation."""
    return frozenset(t for t in dict.fromkeys(topics) if permissions.may_topic(operation, t))
