"""Throttling of clients, between the connections and a broker with quotas.

A client that used more than its quota is sent the time to wait, and no request of its connection
is processed meanwhile. Since 2.0 the answer is sent before the wait, without records (KIP-219);
before, it was sent after the wait, with all records.

Kafka: ``ClientQuotaManager``, ``ControllerMutationQuotaManager``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from ....protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicResult,
)
from ....protocol.data import FetchRequest, FetchResponse, ProduceRequest, RequestContext
from ....protocol.errors import ErrorCode
from ....protocol.security.quotas import CONSUMER_BYTE_RATE, PRODUCER_BYTE_RATE
from ....protocol.values import uuid_bytes
from ....protocol.versions import behaviour
from ....statemachines.security.client_quotas import ClientQuotas
from ..backend import Backend, InterceptingBackend, Respond, Throttled
from ..error_responses import error_response

_Item = TypeVar("_Item")
_STRICT_FROM = {CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}
"""First versions in which clients understand THROTTLING_QUOTA_EXCEEDED (KIP-599)."""


class ThrottlingBackend(InterceptingBackend):
    """A ``Backend`` that measures the usage of clients, and throttles them."""

    def __init__(
        self,
        backend: Backend,
        quotas: ClientQuotas,
        now_ms: Callable[[], int],
        partition_count: Callable[[int, str], int],
    ) -> None:
        """``partition_count`` returns the number of partitions that a topic has on a broker."""
        super().__init__(backend)
        self._behaviour = behaviour(backend.kafka_version)
        self._quotas = quotas
        self._now_ms = now_ms
        self._partition_count = partition_count

    def _intercept(
        self, broker_id: int, request: Any, context: RequestContext, respond: Respond
    ) -> tuple[Any, Respond] | None:
        if isinstance(request, ProduceRequest):
            return request, self._produce(request, context, respond)
        if isinstance(request, FetchRequest) and request.replica_id < 0:
            return self._fetch(request, context, respond)
        if self._quotas.limits_request_time:
            respond = self._timed(context, respond)
        if type(request) in _STRICT_FROM:
            request, respond = self._mutate(broker_id, request, context, respond)
        return None if request is None else (request, respond)

    # -- time ----------------------------------------------------------------------------------

    def _request_wait_ms(self, context: RequestContext) -> int:
        """Return the milliseconds that a client has to wait because of its request time."""
        user = context.principal.partition(":")[2]
        return self._quotas.request_throttle_ms(user, context.client_id, self._now_ms())

    def _timed(self, context: RequestContext, respond: Respond) -> Respond:
        def answer(response: Any) -> None:
            if not isinstance(response, BaseException):
                throttle_ms = self._request_wait_ms(context)
                if type(response) is Throttled:
                    throttle_ms = max(throttle_ms, response.throttle_ms)
                    response = response.response
                response = self._throttled(response, throttle_ms)
            respond(response)

        return answer

    def _combined_wait_ms(self, bytes_ms: int, request_ms: int) -> int:
        """Combine the milliseconds to wait because of bytes and because of request time."""
        if self._behaviour.throttled_after_answers:
            return max(bytes_ms, request_ms)
        return bytes_ms + request_ms

    def _throttled(self, response: Any, throttle_ms: int) -> Any:
        if throttle_ms <= 0:
            return response
        if hasattr(response, "throttle_time_ms"):
            response = replace(response, throttle_time_ms=throttle_ms)
        return Throttled(response, throttle_ms, not self._behaviour.throttled_after_answers)

    # -- bytes ---------------------------------------------------------------------------------

    def _record_use(self, name: str, context: RequestContext, count: int) -> int:
        user = context.principal.partition(":")[2]
        return self._quotas.use_bytes(name, user, context.client_id, count, self._now_ms())

    def _produce(
        self, request: ProduceRequest, context: RequestContext, respond: Respond
    ) -> Respond:
        count = sum(len(p.records) for p in request.partitions if p.records is not None)

        def answer(response: Any) -> None:
            if not isinstance(response, BaseException):
                used_ms = self._record_use(PRODUCER_BYTE_RATE, context, count)
                throttle_ms = self._combined_wait_ms(used_ms, self._request_wait_ms(context))
                response = self._throttled(response, throttle_ms)
            respond(response)

        return answer

    def _fetch(
        self, request: FetchRequest, context: RequestContext, respond: Respond
    ) -> tuple[FetchRequest, Respond]:
        """Return the request to pass on and the function that takes its response.

        A client beyond its quota gets no records, which then do not count; before 2.0 it got them.
        Since 2.5 a fetch is limited to the bytes that the quota allows at once (KAFKA-9677).
        """
        user = context.principal.partition(":")[2]
        name, quotas = CONSUMER_BYTE_RATE, self._quotas
        bytes_max = quotas.bytes_in_window(name, user, context.client_id)
        if bytes_max is None and not quotas.limits_request_time:
            return request, respond

        def answer(response: Any) -> None:
            if isinstance(response, FetchResponse):
                count = sum(
                    len(batch.data) for part in response.partitions for batch in part.records
                )
                used_ms = self._record_use(name, context, count)
                throttle_ms = self._combined_wait_ms(used_ms, self._request_wait_ms(context))
                is_empty = self._behaviour.throttled_after_answers
                if throttle_ms and is_empty and response.error is ErrorCode.NONE:
                    now_ms = self._now_ms()
                    quotas.unrecord_bytes(name, user, context.client_id, count, now_ms)
                    session_id = response.session_id if request.session_epoch > 0 else 0
                    response = replace(response, session_id=session_id, partitions=())
                response = self._throttled(response, throttle_ms)
            respond(response)

        if bytes_max is not None and self._behaviour.fetches_fit_quotas:
            request = replace(request, max_bytes=min(request.max_bytes, bytes_max))
        return request, answer

    # -- changes of topics -----------------------------------------------------------------------

    def _mutate(
        self, broker_id: int, request: Any, context: RequestContext, respond: Respond
    ) -> tuple[Any, Respond]:
        """Return the request to pass on and the function that takes its response; the request is
        None if it has been answered."""
        user = context.principal.partition(":")[2]
        found = self._quotas.mutations(user, context.client_id)
        if found is None or getattr(request, "validate_only", False):
            return request, respond
        bucket, quota = found
        is_strict = context.api_version >= _STRICT_FROM[type(request)]
        now_ms = self._now_ms()
        throttle_ms = 0

        def passes(topic: Any) -> bool:
            nonlocal throttle_ms
            if is_strict and bucket.is_empty(quota, now_ms):
                throttle_ms = max(throttle_ms, bucket.take(0, quota, now_ms))
                return False
            wait_ms = bucket.take(self._cost(broker_id, topic), quota, now_ms)
            if not is_strict:
                throttle_ms = max(throttle_ms, wait_ms)
            return True

        topics, refused_topics = _split_items(request.topics, passes)
        forwarded = replace(request, topics=topics)
        error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        if isinstance(request, DeleteTopicsRequest):
            names = self._names(broker_id, request.topic_ids)
            topic_ids, refused_ids = _split_items(
                request.topic_ids, lambda topic_id: topic_id not in names or passes(names[topic_id])
            )
            forwarded = replace(forwarded, topic_ids=topic_ids)
            by_name = (TopicResult(name, error) for name in refused_topics)
            by_id = (TopicResult(names[each], error, None, each) for each in refused_ids)
            refusal = DeleteTopicsResponse((*by_name, *by_id))
        else:
            refusal = error_response(replace(request, topics=refused_topics), error)
        refusals = refusal.topics
        if not throttle_ms and not refusals:
            return request, respond
        if refusals and not (forwarded.topics or getattr(forwarded, "topic_ids", ())):
            respond(self._throttled(refusal, throttle_ms))
            return None, respond

        def answer(response: Any) -> None:
            if not isinstance(response, BaseException):
                response = replace(response, topics=(*response.topics, *refusals))
                response = self._throttled(response, throttle_ms)
            respond(response)

        return forwarded, answer

    def _names(self, broker_id: int, topic_ids: Iterable[str]) -> dict[str, str]:
        """Return the names of topic ids that the broker knows; unknown ids cost nothing."""
        found = (
            (each, self._backend.topic_name(broker_id, uuid_bytes(each))) for each in topic_ids
        )
        return {topic_id: name for topic_id, name in found if name is not None}

    def _cost(self, broker_id: int, topic: Any) -> int:
        """Return the number of partitions that are created or deleted."""
        if isinstance(topic, str):
            return max(1, self._partition_count(broker_id, topic))
        count = getattr(topic, "partitions", None)
        if count is None:
            return max(1, int(topic.count) - self._partition_count(broker_id, topic.name))
        return max(1, len(topic.assignment or ()) or int(count))


def _split_items(
    items: Iterable[_Item], passes: Callable[[_Item], bool]
) -> tuple[tuple[_Item, ...], tuple[_Item, ...]]:
    """Return the items that pass, and the others; each is tested once, in order."""
    verdicts = [(item, passes(item)) for item in items]
    return (
        tuple(item for item, passed in verdicts if passed),
        tuple(item for item, passed in verdicts if not passed),
    )


class RequestTimer:
    """Measures the time that each client's requests take, for ``request_percentage`` (KIP-124).

    The timer observes every delivery. A client's request takes the CPU time of its thread until
    the thread's next delivery, so waiting costs nothing.
    """

    def __init__(self, broker: str, quotas: ClientQuotas, now_ms: Callable[[], int]) -> None:
        self._broker = broker
        self._quotas = quotas
        self._now_ms = now_ms
        self._handled = threading.local()
        """Context of the client's request that each thread handles, and the CPU time at its
        start."""

    def on_delivery(self, delivery: Any) -> None:
        """Called with each message that is about to be handled."""
        now_ns = time.thread_time_ns()
        before = getattr(self._handled, "request", None)
        if before is not None:
            context, begun_ns = before
            user = context.principal.partition(":")[2]
            elapsed_ns = now_ns - begun_ns
            self._quotas.use_request_time(user, context.client_id, elapsed_ns, self._now_ms())
        context = delivery.context
        is_mine = type(context) is RequestContext and delivery.target.name == self._broker
        self._handled.request = (context, now_ns) if is_mine else None
