"""Events of clients, as the brokers' listeners tell them: refusals, new topics, connections."""

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
    from .looks import Event

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
"""Errors with which Kafka tells clients how to go on: these meet them in every working cluster."""
_ASKING = frozenset({MetadataRequest, CreateTopicsRequest, FindCoordinatorRequest, SplitRequest})
"""Requests that may have topics made."""
_REPEATED_S = 10.0
"""A refusal that was told is counted for so long before it is told again."""
_ASKED_S = 30.0
"""A topic that is new was made for who asked for it within this time."""
_KEPT_MAX = 1000


class Clients:
    """A ``ClientObserver`` that makes events of what clients ask and are told."""

    def __init__(self, publish: Callable[[Event], None], *, with_details: bool) -> None:
        """``with_details`` also tells of connections and of errors that are usual."""
        self._publish = publish
        self._with_details = with_details
        self._asked: dict[str, tuple[float, str, str]] = {}
        """By topic: when which client asked for it, and with which API."""
        self._refused: dict[tuple[Any, ...], tuple[float, int, Event]] = {}
        """Refusals told lately, with the time, and how many times each has come again since."""

    # Called by the connections, on the loop's thread.

    def connected(self, broker_id: int, connection: str) -> None:
        self._tell_connection("opened", broker_id, connection)

    def disconnected(self, broker_id: int, connection: str) -> None:
        self._tell_connection("closed", broker_id, connection)

    def asked(self, connection: str, header: RequestHeader, request: Any) -> None:
        if type(request) not in _ASKING:
            return
        from ...testing.reset import requested_topics  # with the handles that a start does without

        for one in _parts(request):
            for topic in requested_topics(one):
                now_s, known = time.monotonic(), self._asked.get(topic)
                if known is not None and now_s - known[0] < _ASKED_S:
                    continue  # the first of several has it made
                if len(self._asked) >= _KEPT_MAX:
                    self._asked.clear()
                self._asked[topic] = (now_s, _api(one), header.client_id)

    def answered(
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

    def _tell_connection(self, change: str, broker_id: int, connection: str) -> None:
        if self._with_details:
            self._publish(
                {
                    "type": "connection",
                    "change": change,
                    "broker": broker_id,
                    "connection": connection,
                }
            )

    # Called by the feed.

    def who_asked_for(self, topic: str) -> Event:
        """Return what is known of who had a topic made, as fields of an event."""
        found = self._asked.pop(topic, None)
        if found is None or time.monotonic() - found[0] > _ASKED_S:
            return {}
        _, api, client_id = found
        is_automatic = api != "CreateTopics"
        return {"api": api, "client_id": client_id, "is_automatic": is_automatic}

    def repeated(self) -> Iterator[Event]:
        """Give the refusals that came again and again, each with how often."""
        now_s = time.monotonic()
        for key, (told_s, count, event) in list(self._refused.items()):
            if now_s - told_s < _REPEATED_S:
                continue
            # What was counted meanwhile on the loop's thread is in what ``pop`` gives.
            _, count, event = self._refused.pop(key, (told_s, count, event))
            if count:
                again = {**event, "count": count, "seconds": now_s - told_s}
                self._refused[key] = (now_s, 0, event)
                yield again


def _parts(request: Any) -> tuple[Any, ...]:
    return request.requests if isinstance(request, SplitRequest) else (request,)


def _api(request: Any) -> str:
    return type(request).__name__.removesuffix("Request")


def observe_clients(cluster: Cluster, observer: Clients | None) -> None:
    """Tell an observer of the clients of all brokers from now on; None ends it."""
    for process in cluster.running.processes.values():
        observe = getattr(process.spec.listener, "observe", None)
        if observe is not None:
            observe(observer)
