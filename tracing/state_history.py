"""State at an event, rebuilt from the recorded changes. A path is ``broker-1/orders-0/leader``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any, NamedTuple

from .events import Event
from .trace import Trace


class StateChange(NamedTuple):
    """One change of one path."""

    event: Event
    path: str
    old: Any
    new: Any


def path_matches(path: str, pattern: str) -> bool:
    """Whether a path is the one asked for, lies below it, or matches its wildcards."""
    if any(mark in pattern for mark in "*?["):
        return fnmatch.fnmatchcase(path, pattern)
    return path == pattern or path.startswith(pattern.rstrip("/") + "/")


def changes(
    trace: Trace, pattern: str | None = None, stop: int | None = None
) -> Iterator[StateChange]:
    """Every change of the matching paths, in order."""
    for event in trace.events(0, stop):
        for path, old, new in event.delta:
            if pattern is None or path_matches(path, pattern):
                yield StateChange(event, path, old, new)


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
