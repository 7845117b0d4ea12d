"""State at a step: what handlers recorded as deltas, and what the messages themselves tell.

A recorded delta is the truth about an actor. Where none was recorded, delivered messages still
say much: a LeaderAndIsr request tells a broker who leads, a fetch response how far the high
watermark is. Both use paths such as ``broker-1/orders-0/leader``.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any, NamedTuple

from .events import Event
from .trace import Trace

DELTA, MESSAGE = "delta", "message"


class StateChange(NamedTuple):
    """One change of one path."""

    event: Event
    path: str
    old: Any
    new: Any
    source: str
    """``delta`` (recorded by the handler) or ``message`` (told by a message it received)."""


def told_by(event: Event) -> Iterator[tuple[str, Any]]:
    """Paths and values that a delivered message tells its receiver."""
    if event.kind != "deliver":
        return
    fields = event.fields
    if fields.get("error", "NONE") != "NONE":
        return
    if event.type in ("LeaderAndIsrRequest", "UpdateMetadataRequest"):
        yield from _told_by_controller(event, fields)
    elif event.type == "FetchResponse":
        for entry in fields.get("partitions") or ():
            if entry.get("error") == "NONE" and entry.get("high_watermark", -1) >= 0:
                yield f"{event.actor}/{entry['topic_partition']}/leader_hw", entry["high_watermark"]
    elif event.type == "FetchRequest" and fields.get("replica_id", -1) >= 0:
        for entry in fields.get("partitions") or ():
            name = f"replica-{fields['replica_id']}"
            yield f"{event.actor}/{entry['topic_partition']}/{name}/leo", entry["fetch_offset"]
    elif event.type == "ProduceResponse":
        for entry in fields.get("partitions") or ():
            if entry.get("error") == "NONE" and entry.get("base_offset", -1) >= 0:
                yield f"{event.actor}/{entry['topic_partition']}/acked", entry["base_offset"]


def _told_by_controller(event: Event, fields: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield f"{event.actor}/controller", fields.get("controller_id")
    yield f"{event.actor}/controller_epoch", fields.get("controller_epoch")
    group = "" if event.type == "LeaderAndIsrRequest" else "metadata/"
    for entry in fields.get("partition_states") or ():
        prefix = f"{event.actor}/{group}{entry['topic']}-{entry['partition']}"
        for name in ("leader", "leader_epoch", "isr", "zk_version", "replicas"):
            yield f"{prefix}/{name}", entry.get(name)
    if event.type == "UpdateMetadataRequest":
        brokers = fields.get("live_brokers") or ()
        yield f"{event.actor}/metadata/live_brokers", [broker["id"] for broker in brokers]


def path_matches(path: str, pattern: str) -> bool:
    """Whether a path is the one asked for, lies below it, or matches its wildcards."""
    if any(mark in pattern for mark in "*?["):
        return fnmatch.fnmatchcase(path, pattern)
    return path == pattern or path.startswith(pattern.rstrip("/") + "/")


def changes(
    trace: Trace, pattern: str | None = None, stop: int | None = None
) -> Iterator[StateChange]:
    """Every change of the matching paths, in order; told values only where they are news."""
    known: dict[str, Any] = {}
    recorded: dict[str, None] = {}
    for event in trace.events(0, stop):
        for path, old, new in event.delta:
            recorded[path] = None
            known[path] = new
            if pattern is None or path_matches(path, pattern):
                yield StateChange(event, path, old, new, DELTA)
        for path, value in told_by(event):
            if path in recorded or (pattern is not None and not path_matches(path, pattern)):
                continue
            old = known.get(path)
            if path not in known or old != value:
                known[path] = value
                yield StateChange(event, path, old, value, MESSAGE)


def state_at(
    trace: Trace, seq: int, actor: str | None = None, pattern: str | None = None
) -> dict[str, StateChange]:
    """Path to the last change at or before an event: the state after it, sorted by path."""
    trace.event(seq)
    state: dict[str, StateChange] = {}
    for change in changes(trace, pattern, seq + 1):
        if actor is None or change.path.partition("/")[0] == actor:
            state[change.path] = change
    return {path: state[path] for path in sorted(state)}
