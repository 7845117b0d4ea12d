"""The state of all actors as their changes tell it: the recorder's own picture of the run."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

Told = tuple[int, "ActorState", str | None, Any, Any]
"""What a core tells: the event at which it happened, whose state, path, old value, new value.

Without a path it is news of the actor: it starts and knows nothing (new is True), or it halts and
what it knew goes with it.
"""
Change = tuple[int, str, Any, Any]
"""Event, path, old value, new value; None is no value."""


class ActorState(dict[str, Told]):
    """What gave every path of one actor its value."""

    __slots__ = ("is_born", "name")

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.is_born = False
        """It started in this recording and knew nothing: what it had before is no value."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class RecordedState:
    """Values by actor and path. A change is checked against what is known, so that every change
    can be undone; an actor that halts loses its state.

    To tell costs next to nothing; what was told is looked at all together by ``settle``.
    """

    __slots__ = ("_actors", "removed", "settled")

    def __init__(self) -> None:
        self._actors: dict[str, ActorState] = {}
        self.settled: list[Change] = []
        """The changes since somebody emptied it, in their order."""
        self.removed: list[tuple[str, str]] | None = None
        """Actors and paths that lost a value, where somebody wants to know."""

    def of(self, actor: str) -> ActorState:
        """The state of an actor, the same object for ever."""
        state = self._actors.get(actor)
        if state is None:
            state = self._actors[actor] = ActorState(actor)
        return state

    def settle(self, told: Sequence[Told], start: int, stop: int) -> int:
        """Take what was told from a place on of the events before ``stop``, which is the end of a
        chunk or beyond all; gives the place of the rest. What is known goes before what is said of
        the old value."""
        end = bisect_left(told, True, lo=start, key=lambda one: one[0] >= stop)
        add, removed = self.settled.append, self.removed
        for one in told[start:end]:
            seq, state, path, old, new = one
            if path is None:
                self._begin_or_halt(seq, state, new)
                continue
            known = state.get(path)
            if known is not None:
                old = known[4]
            elif state.is_born:
                old = None
            if old == new:
                continue
            add((seq, path, old, new))
            if new is None:
                if known is not None:
                    del state[path]
                    if removed is not None:
                        removed.append((state.name, path))
            else:
                state[path] = one
        return end

    def _begin_or_halt(self, seq: int, state: ActorState, begins: bool) -> None:
        if begins:
            state.is_born = True
            return
        self.settled.extend((seq, path, told[4], None) for path, told in state.items())
        if self.removed is not None:
            self.removed.extend((state.name, path) for path in state)
        state.clear()

    def values(self) -> Iterator[tuple[str, Any, int]]:
        """Every path with its value and the event that gave it."""
        for state in self._actors.values():
            for path, (seq, _, _, _, value) in state.items():
                yield path, value, seq

    # -- settled by a copy of this process -----------------------------------------------------

    def places_since(self, first: int, told: Sequence[Told]) -> list[int]:
        """Where in ``told`` the values stand that were settled from an event on, in the order in
        which the state has them."""
        places = {id(one): place for place, one in enumerate(told)}
        return [
            places[id(one)]
            for state in self._actors.values()
            for one in state.values()
            if one[0] >= first and id(one) in places
        ]

    def settle_as(
        self, told: Sequence[Told], removed: Sequence[tuple[str, str]], places: Sequence[int]
    ) -> None:
        """Take the outcome of a ``settle`` in a copy: what lost its value, and where the values
        stand that it found."""
        for actor, path in removed:
            self._actors[actor].pop(path, None)
        for place in places:
            one = told[place]
            assert one[2] is not None
            one[1][one[2]] = one
        for one in told:
            if one[2] is None and one[4]:
                one[1].is_born = True


class LatestValues:
    """The values that paths have by what was told and not settled yet."""

    __slots__ = ("_halted", "_seen", "_values")

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._halted: set[str] = set()
        self._seen: dict[int, int] = {}

    def look(self, first: int, told: Sequence[Told]) -> None:
        """Take what is new in the changes that were told from an event on; of several lists the
        older one has to come first."""
        seen = self._seen.get(first, 0)
        self._seen[first] = len(told)
        values = self._values
        for _, state, path, _, value in told[seen:]:
            if path is not None:
                values[path] = value
            elif not value:
                self._halted.add(state.name)
                for known in [one for one in values if one.startswith(f"{state.name}/")]:
                    del values[known]

    def of(self, state: ActorState, path: str) -> Any:
        """The value of an actor's path; None is no value."""
        if path in self._values or state.name in self._halted:
            return self._values.get(path)
        settled = state.get(path)
        return None if settled is None else settled[4]
