"""The cause of an answer with an error: the state for which its broker had to refuse.

A request explains that there was an answer; that it was an error is due to something that had
changed at the broker before: the ISR shrank, another replica leads, the transaction was aborted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..events import Event
from ..trace import StoredTrace
from .state_history import StateChange, last_change, path_matches

DECIDED_BY: dict[str, str] = {
    "NOT_ENOUGH_REPLICAS": "{broker}/{partition}/isr",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "{broker}/{partition}/isr",
    "NOT_LEADER_OR_FOLLOWER": "{broker}/{partition}/role",
    "FENCED_LEADER_EPOCH": "{broker}/{partition}/leader_epoch",
    "UNKNOWN_LEADER_EPOCH": "{broker}/{partition}/leader_epoch",
    "OFFSET_OUT_OF_RANGE": "{broker}/{partition}/log_end_offset",
    "PREFERRED_LEADER_NOT_AVAILABLE": "controller-*/{partition}/replica-*/state",
    "ELIGIBLE_LEADERS_NOT_AVAILABLE": "controller-*/{partition}/state",
    "PRODUCER_FENCED": "{broker}/transaction/{id}",
    "INVALID_PRODUCER_EPOCH": "{broker}/transaction/{id}",
    "INVALID_TXN_STATE": "{broker}/transaction/{id}",
    "UNKNOWN_MEMBER_ID": "{broker}/groups/{id}/members",
    "ILLEGAL_GENERATION": "{broker}/groups/{id}/generation",
    "REBALANCE_IN_PROGRESS": "{broker}/groups/{id}/state",
}
"""Error to the path whose last change decided that a request is answered with it."""
_STALE_CONTROLLER = "STALE_CONTROLLER_EPOCH"
_LOOKED_BACK = 20_000
"""Events in which the request of a newer controller is looked for."""


def errors_of(event: Event) -> Iterator[tuple[str, str]]:
    """Errors of an answer, each with the partition it is about, or with an empty text."""
    yield from _errors(event.fields, 0)


def _errors(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > 3:
        return
    if isinstance(value, dict):
        error = value.get("error")
        if isinstance(error, str) and error != "NONE":
            yield error, str(value.get("topic_partition", ""))
        for item in value.values():
            if isinstance(item, (dict, list)):
                yield from _errors(item, depth + 1)
    elif isinstance(value, list):
        if len(value) > 1 and isinstance(value[0], str) and value[1] in DECIDED_BY:
            yield value[1], value[0]
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _errors(item, depth + 1)


def decided_by(trace: StoredTrace, answer: Event, request: Event) -> Event | None:
    """The event for which a request was answered with an error; None if nothing tells."""
    broker = request.actor
    for error, partition in errors_of(answer):
        if error == _STALE_CONTROLLER:
            return _newer_controller(trace, request)
        path = DECIDED_BY.get(error)
        if path is None or ("{partition}" in path and not partition):
            continue
        named = request.fields.get("transactional_id") or request.fields.get("group_id") or ""
        change = _last(trace, path.format(broker=broker, partition=partition, id=named), answer)
        if change is not None and change.event.seq < answer.seq:
            return change.event
    return None


def _last(trace: StoredTrace, pattern: str, answer: Event) -> StateChange | None:
    """The last change of the paths that match."""
    if "*" not in pattern:
        return last_change(trace, pattern, answer.seq)
    paths = [text for text in trace.strings if "/" in text and path_matches(text, pattern)]
    found = [last_change(trace, path, answer.seq) for path in paths]
    changes = [change for change in found if change is not None]
    return max(changes, key=lambda change: change.event.seq, default=None)


def _newer_controller(trace: StoredTrace, request: Event) -> Event | None:
    """The first request at the same broker from a controller with a greater epoch."""
    own = request.epochs[0] if request.epochs else None
    if own is None:
        return None
    start = max(trace.first_seq, request.seq - _LOOKED_BACK)
    wanted = trace.chunk_filter({"actor": request.actor, "kind": "deliver"})
    for event in trace.events(start, request.seq, wanted):
        if event.kind == "deliver" and event.actor == request.actor and event.epochs:
            epoch = event.epochs[0]
            if epoch is not None and epoch > own:
                return event
    return None
