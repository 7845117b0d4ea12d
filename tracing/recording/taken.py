"""What a recorder has taken and nobody has looked at yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from ...actors.surroundings import Row
    from .recorded_state import Told


class Taken:
    """Events by number from ``first`` on, with what was said of them meanwhile.

    Whoever writes keeps the lists, or their ``append``: they are emptied, never replaced.
    """

    __slots__ = ("begun", "declared", "ended", "first", "rows", "told", "told_settled", "unseen")

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.rows: list[Row] = []
        self.told: list[Told] = []
        """Changes of state in the order in which they were told."""
        self.told_settled = 0
        """So many of them are in the state already."""
        self.unseen: list[int] = []
        """Events that are no part of the outline."""
        self.begun: list[int] = []
        """Events that begin an operation of a client."""
        self.ended: list[int] = []
        """Events at which a client has its answer: what comes after does not belong to it."""
        self.declared: list[tuple[int, str]] = []
        """Types of values that are no messages, and the event before which each was met."""

    def hand_over(self) -> Self:
        """All that there is, as another object; this one goes on without it."""
        other = type(self)(self.first)
        other.rows, other.told = self.rows[:], self.told[:]
        other.told_settled = self.told_settled
        other.unseen, other.begun = self.unseen[:], self.begun[:]
        other.ended, other.declared = self.ended[:], self.declared[:]
        self.forget(self.first + len(self.rows))
        return other

    def forget(self, stop: int) -> None:
        """Let go of the events before a number; their changes of state are settled."""
        whole = stop == self.first + len(self.rows)
        if whole:
            for taken in (self.rows, self.told, self.unseen, self.begun, self.ended, self.declared):
                taken.clear()
        else:
            del self.rows[: stop - self.first]
            del self.told[: self.told_settled]
            for numbers in (self.unseen, self.begun, self.ended):
                numbers[:] = [seq for seq in numbers if seq >= stop]
            self.declared[:] = [one for one in self.declared if one[0] >= stop]
        self.told_settled = 0
        self.first = stop
