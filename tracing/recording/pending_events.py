"""The events that a recorder has taken and no reader has looked at yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...actors.surroundings import RowBuffer, Sent
from ..format import CHUNK_EVENTS
from .event_columns import EventColumns

if TYPE_CHECKING:
    from ...actors.surroundings import Row
    from .recorded_state import News


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
        self._columns: EventColumns = EventColumns(self.first)
        """The first of those that are in no chunk."""
        self.told: list[News] = []
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
        row = self.rows[-1]
        if isinstance(row, Sent) and row.seq != len(self) - 1:
            return row.arrival_us
        return row.time_us

    def columns(self, first: int, stop: int) -> EventColumns:
        """The events from one on, before another. More of them may be asked for later: what was
        looked at is not looked at again."""
        columns = self._columns
        if columns.first != first:
            columns = self._columns = EventColumns(first)
        known = first + len(columns)
        if known < stop:
            columns.take(self.rows[known - self.first : stop - self.first])
        return columns

    def forget(self, stop: int) -> None:
        """Drop the events before a number; their changes of state are settled."""
        self._forgotten_us = self.last_time_us()
        count = stop - self.first
        self.first = stop
        if count == len(self.rows):
            self._begin()
            return
        del self.rows[:count]
        self._columns = EventColumns(stop)
        del self.told[: self.told_settled]
        self.told_settled = 0
        for numbers in (self.unseen, self.begun, self.ended):
            numbers[:] = [seq for seq in numbers if seq >= stop]
        self.declared[:] = [one for one in self.declared if one[0] >= stop]
