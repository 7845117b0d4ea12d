"""Rebuilds states from the recorded changes. A path looks like ``broker-1/orders-0/leader``."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..chunks import ChunkInfo, in_bitmap
from ..events import Event
from ..trace import StoredTrace, no_cyclic_collection


class StateChange(NamedTuple):
    """A change of one path."""

    event: Event
    """The event during which the path changed."""
    path: str
    """The path that changed."""
    old: Any
    """The value before; None if there was none."""
    new: Any
    """The value after; None if there is none."""


def path_matches(path: str, pattern: str) -> bool:
    """Return whether a path equals a pattern, lies below it, or matches its wildcards."""
    if any(mark in pattern for mark in "*?["):
        return fnmatch.fnmatchcase(path, pattern)
    return path == pattern or path.startswith(pattern.rstrip("/") + "/")


def changes(
    trace: StoredTrace, pattern: str | None = None, stop: int | None = None
) -> Iterator[StateChange]:
    """Yield every change of the matching paths, in order; chunks without any are not read."""
    numbers = None if pattern is None else _numbers(trace, pattern)
    for index, info in enumerate(trace.chunks):
        if stop is not None and info.first_seq >= stop:
            return
        if not _touches(info, numbers):
            continue
        event = None
        view = trace.new_view(index)
        for seq, number, old, new in trace.changes_in(index) if view is None else view.changes():
            if stop is not None and seq >= stop:
                return
            if numbers is None or numbers >> number & 1:
                if event is None or event.seq != seq:
                    event = trace.event(seq) if view is None else trace.event_of(view, seq)
                yield StateChange(event, trace.strings[number], old, new)


def _numbers(trace: StoredTrace, pattern: str) -> int:
    """Return the numbers of the paths that match, as a bit set."""
    bits = 0
    for number, text in enumerate(trace.strings):
        if "/" in text and path_matches(text, pattern):
            bits |= 1 << number
    return bits


def _touches(info: ChunkInfo, numbers: int | None) -> bool:
    if not info.paths:
        return False
    return numbers is None or bool(int.from_bytes(info.paths, "little") & numbers)


def last_change(trace: StoredTrace, path: str, seq: int) -> StateChange | None:
    """Return the last change of a path at or before an event; None if there is none."""
    number = trace.numbers().get(path)
    if number is None:
        return None
    for index in range(trace.chunk_of(seq), -1, -1):
        if not in_bitmap(trace.chunks[index].paths, number):
            continue
        for at, changed, old, new in reversed(trace.changes_in(index)):
            if changed == number and at <= seq:
                return StateChange(trace.event(at), path, old, new)
    return None


class State(Mapping[str, Any]):
    """The values of paths such as ``broker-1/orders-0/leader`` after an event.

    A mapping, sorted by path. Paths without a value are absent.
    """

    __slots__ = ("_trace", "_values", "changed", "seq")

    def __init__(
        self,
        trace: StoredTrace,
        seq: int,
        values: dict[str, tuple[Any, int]],
        changed: Iterable[str],
    ) -> None:
        self._trace = trace
        self._values = values
        self.seq: int = seq
        """Number of the event after which the state is taken."""
        self.changed: frozenset[str] = frozenset(changed)
        """Paths that this event changed, including those that lost their value."""

    def __getitem__(self, path: str) -> Any:
        return self._values[path][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def changed_at(self, path: str) -> int:
        """Return the number of the event that set a path's value; raise ``KeyError`` if it has
        none."""
        return self._values[path][1]

    def last_change(self, path: str) -> StateChange:
        """Return the change that set a path's value; raise ``KeyError`` if it has none."""
        event = self._trace.event(self._values[path][1])
        for name, old, new in reversed(event.delta):
            if name == path:
                return StateChange(event, path, old, new)
        raise KeyError(path)

    def __repr__(self) -> str:
        return f"<State after #{self.seq}: {len(self)} paths>"


def state_at(
    trace: StoredTrace, seq: int, actor: str | None = None, pattern: str | None = None
) -> State:
    """Return the state after an event, from the last snapshot before it and the changes since."""
    with no_cyclic_collection():
        return _state_at(trace, trace.event(seq), actor, pattern)


def _state_at(trace: StoredTrace, event: Event, actor: str | None, pattern: str | None) -> State:
    seq = event.seq
    strings = trace.strings
    before, entries = trace.snapshot_before(seq)
    values = {number: (value, changed) for number, value, changed in entries}
    for index in range(max(trace.chunk_of(before + 1), 0), trace.chunk_of(seq) + 1):
        if not trace.chunks[index].paths:
            continue
        for at, number, _, new in trace.changes_in(index):
            if not before < at <= seq:
                continue
            if new is None:
                values.pop(number, None)
            else:
                values[number] = (new, at)

    def is_wanted(path: str) -> bool:
        return (actor is None or path.partition("/")[0] == actor) and (
            pattern is None or path_matches(path, pattern)
        )

    named = {strings[number]: value for number, value in values.items()}
    known = {path: named[path] for path in sorted(named) if is_wanted(path)}
    return State(trace, seq, known, filter(is_wanted, (path for path, _, _ in event.delta)))
