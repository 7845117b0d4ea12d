"""The one point where an authorizer decides on requests: between the connections and the brokers.

A refused request never reaches a broker's handlers. A request for several resources is passed on
with those that are allowed, and the refusals are added to its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol.data import RequestContext
from ....protocol.errors import ErrorCode
from ....protocol.values import uuid_bytes
from ....protocol.versions import Behaviour
from ....statemachines.security.authorizer import Authorizer
from ..backend import Backend, InterceptingBackend, Respond
from .permissions import Decision, Permissions, refused
from .rules import RULES, UNRESTRICTED


class GuardedBackend(InterceptingBackend):
    """A ``Backend`` that passes on the requests that the broker's authorizer allows."""

    def __init__(
        self,
        backend: Backend,
        behaviour: Behaviour,
        find_authorizer: Callable[[int], Authorizer | None],
        knows_topic: Callable[[int, str], bool],
    ) -> None:
        super().__init__(backend)
        self._behaviour = behaviour
        self._find_authorizer = find_authorizer
        self._knows_topic = knows_topic

    def _intercept(
        self, broker_id: int, request: Any, context: RequestContext, respond: Respond
    ) -> tuple[Any, Respond] | None:
        decision = self._decide(broker_id, request, context)
        if decision.request is None:
            respond(decision.answer)
            return None
        finish = decision.finish
        return decision.request, respond if finish is None else _finishing(respond, finish)

    def _decide(self, broker_id: int, request: Any, context: RequestContext) -> Decision:
        if type(request) in UNRESTRICTED:
            return Decision(request)
        authorizer = self._find_authorizer(broker_id)
        rule = RULES.get(type(request))
        if authorizer is None or rule is None:
            return refused(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        permissions = Permissions(
            authorizer,
            context,
            self._behaviour,
            lambda topic: self._knows_topic(broker_id, topic),
            lambda topic_id: self._backend.topic_name(broker_id, uuid_bytes(topic_id)),
        )
        return rule(permissions, request)


def _finishing(
    respond: Callable[[Any], None], finish: Callable[[Any], Any]
) -> Callable[[Any], None]:
    def respond_finished(response: Any) -> None:
        respond(response if isinstance(response, BaseException) else finish(response))

    return respond_finished
