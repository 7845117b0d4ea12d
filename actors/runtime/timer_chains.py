"""Causes of timers that set themselves again: each firing follows from the start of the chain."""

from __future__ import annotations


class TimerChains:
    """The causes of recorded firings.

    Between the actions of a timer that its own firing sets again, for ever, and the origin of the
    timer there would be one event per round. So each firing follows from the event that began the
    chain. A timer that anything else has set begins a new chain.
    """

    __slots__ = ("_latest",)

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[int, int | None]] = {}
        """Latest firing by actor and name of the timer: its event, and that which began its
        chain."""

    def chain_start(self, actor: str, name: str, cause: int | None) -> int | None:
        """Return the event that began the chain of a timer that event ``cause`` has set."""
        latest = self._latest.get((actor, name))
        if latest is not None and latest[0] == cause and latest[1] is not None:
            return latest[1]
        return cause

    def record_firing(self, actor: str, name: str, event: int, chain_start: int | None) -> None:
        """Note the event of a timer's firing, and the event that began its chain."""
        self._latest[actor, name] = event, chain_start
