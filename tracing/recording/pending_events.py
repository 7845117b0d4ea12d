"""The events that a recorder has taken in, but not yet put into chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...actors.interfaces import RowBuffer, Sent
from ..format import CHUNK_EVENTS
from .event_columns import EventColumns

if TYPE_CHECKING:
    from ...actors.interfaces import Row
    from .recorded_state import ReportedChange


class PendingEvents(RowBuffer):
    """Events by number from ``first`` on, with the changes of state and notes about them.

    Callers must not keep references to its lists, which are replaced.
    """

    def __init__(self, cut: Callable[[], object]) -> None:
        super().__init__(cut, CHUNK_EVENTS - 1)
        self._forgotten_us: int = 0
        self._begin()

    def _begin(self) -> None:
        self.rows: list[Row | Sent] = []
        self._columns: EventColumns = EventColumns(self.first)
        """Columns of the events after the last chunk, as far as they were asked for."""
        self.reports: list[ReportedChange] = []
        """Changes of state in the order in which they were reported."""
        self.settled_reports: int = 0
        """Number of the reported changes that are already applied to the state."""
        self.unseen: list[int] = []
        """Numbers of the events outside the outline."""
        self.begun: list[int] = []
        """Numbers of the events that begin an operation of a client."""
        self.ended: list[int] = []
        """Numbers of the events at which a client has its answer, which end an operation."""
        self.declared: list[tuple[int, str]] = []
        """(number of the next event, name) for each type of value, other than a message, that was
        met for the first time."""

    def __len__(self) -> int:
        """Return the number of the next event."""
        return self.first + len(self.rows)

    def mark_operation(self, kind: str, seq: int, of: int | None) -> int | None:
        """Note an event of a client's operation; return the event that began the operation."""
        self.unseen.append(seq)
        if kind == "client_invoke":
            self.begun.append(seq)
            return seq
        if kind != "client_retry":
            self.ended.append(seq)
        return of

    def last_time_us(self) -> int:
        """Return the time of the last event, even if the event is already forgotten."""
        if not self.rows:
            return self._forgotten_us
        row = self.rows[-1]
        if isinstance(row, Sent) and row.seq != len(self) - 1:
            return row.arrival_us
        return row.time_us

    def columns(self, first: int, stop: int) -> EventColumns:
        """Return the columns of the events from ``first`` to before ``stop``. A later call with the
        same ``first`` extends them."""
        columns = self._columns
        if columns.first != first:
            columns = self._columns = EventColumns(first)
        known = first + len(columns)
        if known < stop:
            columns.take(self.rows[known - self.first : stop - self.first])
        return columns

    def forget(self, stop: int) -> None:
        """Drop the events before a number, whose changes of state must be settled."""
        self._forgotten_us = self.last_time_us()
        count = stop - self.first
        self.first = stop
        if count == len(self.rows):
            self._begin()
            return
        del self.rows[:count]
        self._columns = EventColumns(stop)
        del self.reports[: self.settled_reports]
        self.settled_reports = 0
        for numbers in (self.unseen, self.begun, self.ended):
            numbers[:] = [seq for seq in numbers if seq >= stop]
        self.declared[:] = [one for one in self.declared if one[0] >= stop]
