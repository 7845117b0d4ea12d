"""The state of all actors as their changes tell it: the recorder's own picture of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Told = tuple[int, "ActorState", str, Any, Any]
"""What a core tells: the event at which it happened, whose state, path, old value, new value."""
Change = tuple[int, str, Any, Any]
"""Event, path, old value, new value; None is no value."""


class ActorState(dict[str, Told]):
    """What gave every path of one actor its value."""

    __slots__ = ("is_born",)

    def __init__(self) -> None:
        super().__init__()
        self.is_born = False
        """It started in this recording and knew nothing: what it had before is no value."""


class RecordedState:
    """Values by actor and path. A change is checked against what is known, so that every change
    can be undone; an actor that halts loses its state.

    To tell costs next to nothing; what was told is looked at all together by ``settle``.
    """

    __slots__ = ("_actors", "settled", "told")

    def __init__(self) -> None:
        self._actors: dict[str, ActorState] = {}
        self.told: list[Told] = []
        """What ``settle`` has not seen yet."""
        self.settled: list[Change] = []
        """The changes since somebody emptied it, in their order."""

    def of(self, actor: str) -> ActorState:
        """The state of an actor, the same object for ever."""
        state = self._actors.get(actor)
        if state is None:
            state = self._actors[actor] = ActorState()
        return state

    def begin(self, actor: str) -> None:
        """An actor starts and knows nothing."""
        self.settle()
        self.of(actor).is_born = True

    def settle(self) -> None:
        """Take what was told; what is known goes before what is said of the old value."""
        told = self.told
        if not told:
            return
        add = self.settled.append
        for one in told:
            seq, state, path, old, new = one
            known = state.get(path)
            if known is not None:
                old = known[4]
            elif state.is_born:
                old = None
            if old == new:
                continue
            add((seq, path, old, new))
            if new is None:
                state.pop(path, None)
            else:
                state[path] = one
        told.clear()

    def would_change(self, actor: str, path: str, old: Any, new: Any) -> bool:
        """Whether this is news."""
        self.settle()
        state = self.of(actor)
        known = state.get(path)
        if known is not None:
            return bool(known[4] != new)
        return bool(new is not None if state.is_born else old != new)

    def halt(self, seq: int, actor: str) -> None:
        """What an actor knew goes with it, at this event."""
        self.settle()
        state = self._actors.get(actor)
        if state:
            self.settled.extend((seq, path, told[4], None) for path, told in state.items())
            state.clear()

    def values(self) -> Iterator[tuple[str, Any, int]]:
        """Every path with its value and the event that gave it."""
        for state in self._actors.values():
            for path, (seq, _, _, _, value) in state.items():
                yield path, value, seq
