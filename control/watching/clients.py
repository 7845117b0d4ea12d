"""Events of clients, as observed by the brokers' listeners: refusals, new topics, connections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...protocol.admin import CreateTopicsRequest
from ...protocol.data import FindCoordinatorRequest, MetadataRequest
from ...protocol.errors import ErrorCode
from ...wire.kafka.api import SplitRequest
from ...wire.kafka.response_errors import first_errors, has_error

if TYPE_CHECKING:
    from ...testing.cluster import Cluster
    from ...wire.kafka.codec import RequestHeader
    from .snapshots import Event

_USUAL = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.MEMBER_ID_REQUIRED,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Errors that clients meet in every working cluster, and that tell them how to proceed."""
_TOPIC_CREATING = frozenset(
    {MetadataRequest, CreateTopicsRequest, FindCoordinatorRequest, SplitRequest}
)
"""Requests that may cause the creation of topics."""
_REPETITION_INTERVAL_S = 10.0
"""Time in seconds for which repetitions of a refusal are only counted, before the next event."""
_CREATION_DELAY_S_MAX = 30.0
"""Time in seconds for which a request for a topic may explain the creation of the topic."""
_KEPT_MAX = 1000


class Clients:
    """A ``ClientObserver`` that publishes events about clients' requests and their errors."""

    def __init__(self, publish: Callable[[Event], None], *, with_details: bool) -> None:
        """``with_details`` adds events for connections and for usual errors."""
        self._publish = publish
        self._with_details = with_details
        self._topic_requests: dict[str, tuple[float, str, str]] = {}
        """First recent request for each topic, as (time, API, client id)."""
        self._refused: dict[tuple[Any, ...], tuple[float, int, Event]] = {}
        """Refusals published recently, as (time, number of repetitions since, event)."""

    # Called by connections, on the event loop's thread.

    def on_connect(self, broker_id: int, connection: str) -> None:
        self._publish_connection("opened", broker_id, connection)

    def on_disconnect(self, broker_id: int, connection: str) -> None:
        self._publish_connection("closed", broker_id, connection)

    def on_request(self, connection: str, header: RequestHeader, request: Any) -> None:
        if type(request) not in _TOPIC_CREATING:
            return
        from ...testing.reset import requested_topics  # imports handles: not needed to start

        for one in _parts(request):
            for topic in requested_topics(one):
                now_s, known = time.monotonic(), self._topic_requests.get(topic)
                if known is not None and now_s - known[0] < _CREATION_DELAY_S_MAX:
                    continue  # the first request causes the creation
                if len(self._topic_requests) >= _KEPT_MAX:
                    self._topic_requests.clear()
                self._topic_requests[topic] = (now_s, _api(one), header.client_id)

    def on_response(
        self, broker_id: int, connection: str, header: RequestHeader, request: Any, response: Any
    ) -> None:
        if not has_error(response):
            return
        errors = first_errors(response)
        codes = [code for code, _ in errors]
        is_usual = _USUAL.issuperset(codes)
        if is_usual and not self._with_details:
            return
        api = _api(next(iter(_parts(request)), request))
        reason = ", ".join(dict.fromkeys(text for _, text in errors))
        key = (broker_id, api, header.client_id, reason)
        known = self._refused.get(key)
        if known is not None:
            self._refused[key] = (known[0], known[1] + 1, known[2])
            return
        event: Event = {
            "type": "refused",
            "broker": broker_id,
            "api": api,
            "client_id": header.client_id,
            "address": connection.partition("-")[2].rpartition("-")[0],
            "errors": [code.name for code in dict.fromkeys(codes)],
            "reason": reason,
            "is_usual": is_usual,
            "count": 1,
            "seconds": 0.0,
        }
        if len(self._refused) < _KEPT_MAX:
            self._refused[key] = (time.monotonic(), 0, event)
        self._publish(event)

    def _publish_connection(self, change: str, broker_id: int, connection: str) -> None:
        if self._with_details:
            self._publish(
                {
                    "type": "connection",
                    "change": change,
                    "broker": broker_id,
                    "connection": connection,
                }
            )

    # Called by the feed, on its own thread.

    def creation_request(self, topic: str) -> Event:
        """Return the request that caused the creation of a topic, as fields of an event."""
        found = self._topic_requests.pop(topic, None)
        if found is None or time.monotonic() - found[0] > _CREATION_DELAY_S_MAX:
            return {}
        _, api, client_id = found
        is_automatic = api != "CreateTopics"
        return {"api": api, "client_id": client_id, "is_automatic": is_automatic}

    def repeated(self) -> Iterator[Event]:
        """Yield refusals that were repeated, each with the number of repetitions."""
        now_s = time.monotonic()
        for key, (published_s, count, event) in list(self._refused.items()):
            if now_s - published_s < _REPETITION_INTERVAL_S:
                continue
            # ``pop`` also returns repetitions counted meanwhile on the event loop's thread.
            _, count, event = self._refused.pop(key, (published_s, count, event))
            if count:
                again = {**event, "count": count, "seconds": now_s - published_s}
                self._refused[key] = (now_s, 0, event)
                yield again


def _parts(request: Any) -> tuple[Any, ...]:
    return request.requests if isinstance(request, SplitRequest) else (request,)


def _api(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")


def observe_clients(cluster: Cluster, observer: Clients | None) -> None:
    """Let an observer observe the clients of all brokers from now on; None ends this."""
    for process in cluster.running.processes.values():
        observe = getattr(process.spec.listener, "observe", None)
        if observe is not None:
            observe(observer)
