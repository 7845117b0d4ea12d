"""Finds the cause of an error answer: the state because of which the broker refused the request.

The request explains why there is an answer. That it is an error is due to an earlier change at the
broker: the ISR shrank, another replica leads, the transaction was aborted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..events import Event
from ..trace import StoredTrace
from .state_history import StateChange, last_change, path_matches

ERROR_CAUSE_PATHS: dict[str, str] = {
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
"""Error to the path whose last change is the reason for that error."""
_STALE_CONTROLLER = "STALE_CONTROLLER_EPOCH"
_EVENTS_SEARCHED_MAX = 20_000
"""Number of preceding events that are searched for a newer controller's request."""


def errors_of(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the errors in an answer, each with the partition it concerns or an empty text."""
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
        if len(value) > 1 and isinstance(value[0], str) and value[1] in ERROR_CAUSE_PATHS:
            yield value[1], value[0]
        for item in value:
            if isinstance(item, (dict, list)):
                yield from _errors(item, depth + 1)


def cause_of_refusal(trace: StoredTrace, answer: Event, request: Event) -> Event | None:
    """Return the event because of which a request was answered with an error; None if unknown."""
    broker = request.actor
    for error, partition in errors_of(answer):
        if error == _STALE_CONTROLLER:
            return _newer_controller(trace, request)
        path = ERROR_CAUSE_PATHS.get(error)
        if path is None or ("{partition}" in path and not partition):
            continue
        named = request.fields.get("transactional_id") or request.fields.get("group_id") or ""
        change = _last_matching_change(
            trace, path.format(broker=broker, partition=partition, id=named), answer
        )
        if change is not None and change.event.seq < answer.seq:
            return change.event
    return None


def _last_matching_change(trace: StoredTrace, pattern: str, answer: Event) -> StateChange | None:
    """Return the last change before an answer of any path that matches a pattern."""
    if "*" not in pattern:
        return last_change(trace, pattern, answer.seq)
    paths = [text for text in trace.strings if "/" in text and path_matches(text, pattern)]
    found = [last_change(trace, path, answer.seq) for path in paths]
    changes = [change for change in found if change is not None]
    return max(changes, key=lambda change: change.event.seq, default=None)


def _newer_controller(trace: StoredTrace, request: Event) -> Event | None:
    """Return the first message with a greater controller epoch that reached the same broker."""
    own = request.epochs[0] if request.epochs else None
    if own is None:
        return None
    start = max(trace.first_seq, request.seq - _EVENTS_SEARCHED_MAX)
    wanted = trace.chunk_filter({"actor": request.actor, "kind": "deliver"})
    for event in trace.events(start, request.seq, wanted):
        if event.kind == "deliver" and event.actor == request.actor and event.epochs:
            epoch = event.epochs[0]
            if epoch is not None and epoch > own:
                return event
    return None
