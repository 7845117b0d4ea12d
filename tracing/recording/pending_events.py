"""The events that a recorder has taken and no reader has looked at yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ...actors.surroundings import RowBuffer
from ..format import CHUNK_EVENTS

if TYPE_CHECKING:
    from ...actors.surroundings import Row, Sent
    from .recorded_state import Told

_SENT_SIZE = 9


class PendingEvents(RowBuffer):
    """Events by number from ``first`` on, with what was said of them meanwhile.

    A caller may not keep its lists: others take their place.
    """

    def __init__(self, cut: Callable[[], object]) -> None:
        super().__init__(cut, CHUNK_EVENTS - 1)
        self._forgotten_us: int = 0
        self._begin()

    def _begin(self) -> None:
        self.rows: list[Row | Sent] = []
        self.rows_whole: int = 0
        """So many of them, from the first on, are each a ``Row``."""
        self.told: Told = []
        """Changes of state in the order in which they were told."""
        self.told_settled: int = 0
        """So many of them are in the state already."""
        self.unseen: list[int] = []
        """Events that are no part of the outline."""
        self.begun: list[int] = []
        """Events that begin an operation of a client."""
        self.ended: list[int] = []
        """Events at which a client has its answer: what comes after does not belong to it."""
        self.declared: list[tuple[int, str]] = []
        """Types of values that are no messages, and the event before which each was met."""

    def __len__(self) -> int:
        """Number of the event that comes next."""
        return self.first + len(self.rows)

    def mark_operation(self, kind: str, seq: int, of: int | None) -> int | None:
        """Note that an event is of a client's operation; gives the event that began this one."""
        self.unseen.append(seq)
        if kind == "client_invoke":
            self.begun.append(seq)
            return seq
        if kind != "client_retry":
            self.ended.append(seq)
        return of

    def last_time_us(self) -> int:
        """Of the last event, which may be forgotten already."""
        if not self.rows:
            return self._forgotten_us
        return _whole_rows(self.rows[-1:], len(self) - 1)[0][0]

    def whole_rows(self, first: int, stop: int) -> list[Row]:
        """The events from one on, before another, each as a ``Row``."""
        begin, end = first - self.first, stop - self.first
        rows = self.rows
        if self.rows_whole < end:
            known = self.rows_whole
            rows[known:end] = _whole_rows(rows[known:end], self.first + known)
            self.rows_whole = end
        return rows[begin:end]  # type: ignore[return-value]

    def forget(self, stop: int) -> None:
        """Drop the events before a number; their changes of state are settled."""
        self._forgotten_us = self.last_time_us()
        count = stop - self.first
        self.first = stop
        if count == len(self.rows):
            self._begin()
            return
        del self.rows[:count]
        self.rows_whole = max(self.rows_whole - count, 0)
        del self.told[: self.told_settled]
        self.told_settled = 0
        for numbers in (self.unseen, self.begun, self.ended):
            numbers[:] = [seq for seq in numbers if seq >= stop]
        self.declared[:] = [one for one in self.declared if one[0] >= stop]


def _whole_rows(rows: Iterable[Any], first: int) -> list[Row]:
    """Events by number from one on, each as a ``Row``."""
    whole: list[Row] = []
    add = whole.append
    for seq, row in enumerate(rows, first):
        if len(row) != _SENT_SIZE:
            add(row)
            continue
        time_us, sender, target, number, message, cause, of, sent_as, arrival_us = row
        name = message.__class__.__name__
        if seq == sent_as:
            add((time_us, "send", sender.name, target.name, name, number, message, cause, None, of))
        else:
            add(
                (arrival_us, "deliver", target.name, sender.name, name, number, message, sent_as,
                 None, None)
            )  # fmt: skip
    return whole
