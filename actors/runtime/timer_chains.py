"""Timers that arm themselves again: all that a chain of them does follows from what began it."""

from __future__ import annotations


class TimerChains:
    """The causes of recorded firings.

    A timer that is armed by its own firing, for ever, would put one hop for each of its rounds
    between what it does and what began it. So each firing follows from what began the chain. One
    that was armed by anything else begins a new chain.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[int, int | None]] = {}
        """By actor and name: the event of the latest firing, and what began its chain."""

    def begun_by(self, actor: str, name: str, cause: int | None) -> int | None:
        """Return what began the chain of a timer that event ``cause`` armed."""
        latest = self._latest.get((actor, name))
        if latest is not None and latest[0] == cause and latest[1] is not None:
            return latest[1]
        return cause

    def fired(self, actor: str, name: str, event: int, begun_by: int | None) -> None:
        """Note that a timer fires as ``event``, and what began its chain."""
        self._latest[actor, name] = event, begun_by
