"""The state of all actors as their changes tell it: the recorder's own picture of the run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

Told = list[Any]
"""What cores tell, six items for each change, as a tuple for each would take twice the memory:
the event at which it happened, whose ``ActorState``, path, old value, new value, None.

With three paths there are three new values instead, some of which may not be new. Without a path it
is news of the actor: it starts and knows nothing (new is True), or it halts and what it knew goes
with it.
"""
Change = tuple[int, str, Any, Any]
"""Event, path, old value, new value; None is no value."""
_ITEMS = 6


def _changes(told: Told, start: int, end: int) -> Iterator[tuple[Any, ...]]:
    items = iter(told[start:end])
    return zip(items, items, items, items, items, items, strict=True)


class _WholePaths(dict[str, str]):
    """The path of a value, by what the core of its actor calls it."""

    __slots__ = ("_prefix",)

    def __init__(self, actor: str) -> None:
        super().__init__()
        self._prefix = f"{actor}/"

    def __missing__(self, path: str) -> str:
        whole = self[path] = self._prefix + path
        return whole


class ActorState(dict[str, tuple[int, Any]]):
    """Of every path of one actor the value, with the event that gave it."""

    __slots__ = ("is_born", "name", "whole_paths")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name: str = name
        self.whole_paths: _WholePaths = _WholePaths(name)
        self.is_born: bool = False
        """It started in this recording and knew nothing: what it had before is no value."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class RecordedState:
    """Values by actor and path. A change is checked against what is known, so that every change
    can be undone; an actor that halts loses its state.

    To tell costs next to nothing; what was told is looked at all together by ``settle``.
    """

    __slots__ = ("_actors", "settled")

    def __init__(self) -> None:
        self._actors: dict[str, ActorState] = {}
        self.settled: list[Change] = []
        """The changes since somebody emptied it, in their order."""

    def of(self, actor: str) -> ActorState:
        """The state of an actor, the same object for ever."""
        state = self._actors.get(actor)
        if state is None:
            state = self._actors[actor] = ActorState(actor)
        return state

    def settle(self, told: Told, start: int, stop: int) -> int:
        """Take what was told from a place on of the events before ``stop``, which is the end of a
        chunk or beyond all; gives the place of the rest. What is known goes before what is said of
        the old value."""
        seqs = range(start, len(told), _ITEMS)
        end = start + _ITEMS * bisect_left(seqs, True, key=lambda place: told[place] >= stop)
        change = self._change
        for seq, state, path, old, new, third in _changes(told, start, end):
            if path.__class__ is tuple:
                for one, number in zip(path, (old, new, third), strict=True):
                    known = state.get(one)
                    if known is None or known[1] != number:  # most are not new
                        change(seq, state, one, None, number)
            elif path is None:
                self._begin_or_halt(seq, state, new)
            else:
                change(seq, state, path, old, new)
        return end

    def _change(self, seq: int, state: ActorState, path: str, old: Any, new: Any) -> None:
        known = state.get(path)
        if known is not None:
            old = known[1]
        elif state.is_born:
            old = None
        if old == new:
            return
        self.settled.append((seq, state.whole_paths[path], old, new))
        if new is not None:
            state[path] = seq, new
        elif known is not None:
            del state[path]

    def _begin_or_halt(self, seq: int, state: ActorState, begins: bool) -> None:
        if begins:
            state.is_born = True
            return
        whole_paths = state.whole_paths
        self.settled.extend((seq, whole_paths[path], old, None) for path, (_, old) in state.items())
        state.clear()

    def values(self) -> Iterator[tuple[str, Any, int]]:
        """Every path with its value and the event that gave it."""
        for state in self._actors.values():
            whole_paths = state.whole_paths
            for path, (seq, value) in state.items():
                yield whole_paths[path], value, seq


NOT_LATELY = object()
_LATELY = 2_000


def told_lately(told: Told, state: ActorState, path: str) -> Any:
    """The value that the path of an actor has by the last changes that were told: most that is
    told was told a moment ago, too. ``NOT_LATELY`` where they do not say."""
    for place in range(len(told), max(len(told) - _LATELY * _ITEMS, 0), -_ITEMS):
        if told[place - 5] is not state:
            continue
        told_path, *values = told[place - 4 : place]
        value = values[1]
        if told_path == path:
            return value
        if isinstance(told_path, tuple):
            if path in told_path:
                return values[told_path.index(path)]
        elif told_path is None and not value:
            return None
    return NOT_LATELY


class LatestValues:
    """The values that paths have by what was told and not settled yet."""

    __slots__ = ("_halted", "_seen", "_values")

    def __init__(self) -> None:
        self._values: dict[ActorState, dict[str, Any]] = {}
        self._halted: set[ActorState] = set()
        self._seen = 0

    def look(self, told: Told) -> None:
        """Take what is new in the changes that were told."""
        values, seen = self._values, self._seen
        self._seen = len(told)
        for _, state, path, first_value, value, third_value in _changes(told, seen, len(told)):
            if path is None:
                if not value:
                    self._halted.add(state)
                    values.pop(state, None)
                continue
            known = values.get(state)
            if known is None:
                known = values[state] = {}
            if isinstance(path, tuple):
                known.update(zip(path, (first_value, value, third_value), strict=True))
            else:
                known[path] = value

    def of(self, state: ActorState, path: str) -> Any:
        """The value of an actor's path; None is no value."""
        known = self._values.get(state)
        if known is not None and path in known:
            return known[path]
        if state in self._halted:
            return None
        settled = state.get(path)
        return None if settled is None else settled[1]
