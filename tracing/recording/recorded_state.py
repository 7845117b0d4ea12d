"""The state of all actors as their changes tell it: the recorder's own picture of the run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

Change = tuple[int, str, Any, Any]
"""Event, path, old value, new value; None is no value."""


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


class News:
    """What a core tells of an actor's state."""

    __slots__ = ("seq", "state")

    def __init__(self, seq: int, state: ActorState) -> None:
        self.seq: int = seq
        """The event at which it happened."""
        self.state: ActorState = state


class NewValue(News):
    """A path has another value; None is no value."""

    __slots__ = ("new", "old", "path")

    def __init__(self, seq: int, state: ActorState, path: str, old: Any, new: Any) -> None:
        super().__init__(seq, state)
        self.path: str = path
        self.old: Any = old
        self.new: Any = new


class NewOffsets(News):
    """The offsets of a log, of which some may be what they were."""

    __slots__ = ("end", "mark", "paths", "start")

    def __init__(
        self, seq: int, state: ActorState, paths: Sequence[str], end: int, mark: int, start: int
    ) -> None:
        super().__init__(seq, state)
        self.paths: Sequence[str] = paths
        """Of end, high watermark and start."""
        self.end: int = end
        self.mark: int = mark
        self.start: int = start

    def values(self) -> tuple[int, int, int]:
        return self.end, self.mark, self.start


class Started(News):
    """The actor starts and knows nothing."""

    __slots__ = ()


class Halted(News):
    """The actor halts, and what it knew goes with it."""

    __slots__ = ()


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

    def settle(self, told: Sequence[News], start: int, stop: int) -> int:
        """Take what was told from a place on of the events before ``stop``, which is the end of a
        chunk or beyond all; gives the place of the rest. What is known goes before what is said of
        the old value."""
        end = bisect_left(told, True, start, key=lambda news: news.seq >= stop)
        for news in told[start:end]:
            seq, state = news.seq, news.state
            if isinstance(news, NewOffsets):
                for path, offset in zip(news.paths, news.values(), strict=True):
                    known = state.get(path)
                    if known is None or known[1] != offset:  # most are not new
                        self._change(seq, state, path, None, offset)
            elif isinstance(news, NewValue):
                self._change(seq, state, news.path, news.old, news.new)
            elif isinstance(news, Started):
                state.is_born = True
            else:
                self._halt(seq, state)
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

    def _halt(self, seq: int, state: ActorState) -> None:
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


def told_lately(told: Sequence[News], state: ActorState, path: str) -> Any:
    """The value that the path of an actor has by the last changes that were told: most that is
    told was told a moment ago, too. ``NOT_LATELY`` where they do not say."""
    for place in range(len(told) - 1, max(len(told) - _LATELY, 0) - 1, -1):
        news = told[place]
        if news.state is not state:
            continue
        if isinstance(news, NewOffsets):
            if path in news.paths:
                return news.values()[news.paths.index(path)]
        elif isinstance(news, NewValue):
            if news.path == path:
                return news.new
        elif isinstance(news, Halted):
            return None
    return NOT_LATELY


class LatestValues:
    """The values that paths have by what was told and not settled yet."""

    __slots__ = ("_halted", "_seen", "_values")

    def __init__(self) -> None:
        self._values: dict[ActorState, dict[str, Any]] = {}
        self._halted: set[ActorState] = set()
        self._seen = 0

    def look(self, told: Sequence[News]) -> None:
        """Take what is new in the changes that were told."""
        values, seen = self._values, self._seen
        self._seen = len(told)
        for news in told[seen:]:
            state = news.state
            if isinstance(news, Halted):
                self._halted.add(state)
                values.pop(state, None)
                continue
            known = values.get(state)
            if known is None:
                known = values[state] = {}
            if isinstance(news, NewOffsets):
                known.update(zip(news.paths, news.values(), strict=True))
            elif isinstance(news, NewValue):
                known[news.path] = news.new

    def of(self, state: ActorState, path: str) -> Any:
        """The value of an actor's path; None is no value."""
        known = self._values.get(state)
        if known is not None and path in known:
            return known[path]
        if state in self._halted:
            return None
        settled = state.get(path)
        return None if settled is None else settled[1]
