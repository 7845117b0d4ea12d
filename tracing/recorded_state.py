"""The state of all actors as their changes tell it: the recorder's own picture of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = tuple[int, Any, Any]
"""Number of the path, old value, new value; None is no value."""


class RecordedState:
    """Values by actor and path. A change is checked against what is known, so that every change
    can be undone; an actor that halts loses its state."""

    __slots__ = ("_actors", "_born", "_number", "count")

    def __init__(self, number: Callable[[str], int | None]) -> None:
        self._number: Any = number
        self._actors: dict[str, dict[int, tuple[Any, int]]] = {}  # path -> value, seq of the change
        self._born: dict[str, None] = {}
        self.count = 0
        """Paths that have a value."""

    def begin(self, actor: str) -> None:
        """An actor starts and knows nothing: what it has before is no value."""
        self._born[actor] = None

    def change(self, seq: int, path: str, old: Any, new: Any) -> Change | None:
        """Take a change; None if nothing changed. A known old value replaces the reported one."""
        actor = path.partition("/")[0]
        values = self._actors.get(actor)
        if values is None:
            values = self._actors[actor] = {}
        number = self._number(path)
        known = values.get(number)
        if known is not None:
            old = known[0]
        elif actor in self._born:
            old = None
        if old == new:
            return None
        if new is None:
            if values.pop(number, None) is not None:
                self.count -= 1
        else:
            self.count += known is None
            values[number] = (new, seq)
        return number, old, new

    def halt(self, actor: str) -> list[Change]:
        """Drop the state of an actor that ended."""
        values = self._actors.pop(actor, None)
        if not values:
            return []
        self.count -= len(values)
        return [(number, value, None) for number, (value, _) in values.items()]

    def snapshot(self) -> list[tuple[int, Any, int]]:
        """Every path with its value and the event that gave it."""
        return [
            (number, value, seq)
            for values in self._actors.values()
            for number, (value, seq) in values.items()
        ]
