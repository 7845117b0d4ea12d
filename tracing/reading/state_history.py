"""State at an event, rebuilt from the recorded changes. A path is ``broker-1/orders-0/leader``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..events import Event
from ..trace import StoredTrace


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
    trace: StoredTrace, pattern: str | None = None, stop: int | None = None
) -> Iterator[StateChange]:
    """Every change of the matching paths, in order."""
    for event in trace.events(0, stop):
        for path, old, new in event.delta:
            if pattern is None or path_matches(path, pattern):
                yield StateChange(event, path, old, new)


class State(Mapping[str, Any]):
    """Values by path after one event, sorted by path; paths that have no value are not in it."""

    __slots__ = ("_changes", "changed", "seq")

    def __init__(self, seq: int, changes: dict[str, StateChange], changed: Iterable[str]) -> None:
        self.seq = seq
        """Number of the event after which it is."""
        self._changes = changes
        self.changed = frozenset(changed)
        """Paths that this very event changed, also those that lost their value."""

    def __getitem__(self, path: str) -> Any:
        return self._changes[path].new

    def __iter__(self) -> Iterator[str]:
        return iter(self._changes)

    def __len__(self) -> int:
        return len(self._changes)

    def last_change(self, path: str) -> StateChange:
        """The change that gave a path its value; ``KeyError`` for a path without one."""
        return self._changes[path]

    def __repr__(self) -> str:
        return f"<State after #{self.seq}: {len(self)} paths>"


def state_at(
    trace: StoredTrace, seq: int, actor: str | None = None, pattern: str | None = None
) -> State:
    """The state after an event."""
    trace.event(seq)
    state: dict[str, StateChange] = {}
    changed = []
    for change in changes(trace, pattern, seq + 1):
        if actor is None or change.path.partition("/")[0] == actor:
            state[change.path] = change
            if change.event.seq == seq:
                changed.append(change.path)
    known = {path: state[path] for path in sorted(state) if state[path].new is not None}
    return State(seq, known, changed)
