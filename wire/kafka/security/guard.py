"""The one point where an authorizer decides on requests: between the connections and the brokers.

What a client may not do never reaches a broker's handlers. A request for several things goes on
with those that are allowed, and the refusals are put into its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol.data import RequestContext
from ....protocol.errors import ErrorCode
from ....protocol.values import uuid_bytes
from ....protocol.versions import Behaviour
from ....statemachines.security.authorizer import Authorizer
from ..backend import Backend
from .permissions import Decision, Permissions, refused
from .rules import FREE, RULES


class GuardedBackend:
    """A ``Backend`` that hands on what the authorizer of the broker allows."""

    __slots__ = ("_authorizer_of", "_backend", "_behaviour", "_knows_topic")

    def __init__(
        self,
        backend: Backend,
        behaviour: Behaviour,
        authorizer_of: Callable[[int], Authorizer | None],
        knows_topic: Callable[[int, str], bool],
    ) -> None:
        self._backend = backend
        self._behaviour = behaviour
        self._authorizer_of = authorizer_of
        self._knows_topic = knows_topic

    @property
    def kafka_version(self) -> str:
        return self._backend.kafka_version

    def topic_id(self, broker_id: int, topic: str) -> bytes | None:
        return self._backend.topic_id(broker_id, topic)

    def topic_name(self, broker_id: int, topic_id: bytes) -> str | None:
        return self._backend.topic_name(broker_id, topic_id)

    def submit(
        self,
        broker_id: int,
        connection_name: str,
        request: Any,
        context: RequestContext,
        respond: Callable[[Any], None],
    ) -> None:
        decision = self._decide(broker_id, request, context)
        if decision.request is None:
            respond(decision.answer)
            return
        finish = decision.finish
        if finish is not None:
            respond = _finishing(respond, finish)
        self._backend.submit(broker_id, connection_name, decision.request, context, respond)

    def _decide(self, broker_id: int, request: Any, context: RequestContext) -> Decision:
        if type(request) in FREE:
            return Decision(request)
        authorizer = self._authorizer_of(broker_id)
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
