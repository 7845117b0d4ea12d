"""Operations of clients: which events belong to one, from its begin to its end."""

from __future__ import annotations

from collections.abc import Sequence

_SPAN_MAX = 100_000
"""An operation whose client died has no end; what it led to is not of it for ever."""
_REMEMBERED_MAX = 100_000
"""Events whose operations are known, before those that have ended are forgotten."""


class Operations:
    """Events of open operations, each named by the number of the event that began it.

    An event belongs to the operation of what it follows from, as long as that is open.
    """

    __slots__ = ("_by_event", "_ends", "_open", "assigned")

    def __init__(self) -> None:
        self._by_event: dict[int | None, int] = {}
        self._open: dict[int | None, None] = {}
        self._ends: list[int] = []  # events at which a client has its answer
        self.assigned: list[int | None] = []
        """The operations of events since somebody emptied it."""

    def begin(self, seq: int) -> None:
        """This event begins one."""
        self._by_event[seq] = seq
        self._open[seq] = None

    def ends_at(self, seq: int) -> None:
        """The client has its answer: what happens from now on does not belong to it."""
        self._ends.append(seq)

    def assign(self, first: int, followed: Sequence[tuple[int | None, int | None]]) -> None:
        """Find the operations of events from a number on, by the two events that each follows:
        that of the second one where the first has none."""
        start = 0
        assigned, opened = self.assigned, self._open
        for end in self._ends:
            stop = end + 1 - first
            self._assign(first + start, followed[start:stop])
            opened.pop(assigned[-1], None)
            start = stop
        self._ends.clear()
        self._assign(first + start, followed[start:])

    def _assign(self, seq: int, followed: Sequence[tuple[int | None, int | None]]) -> None:
        by_event, opened = self._by_event, self._open
        operation_of, add = by_event.get, self.assigned.append
        for first, second in followed:
            operation = operation_of(second if first is None else first)
            if operation not in opened and first is not None:
                operation = operation_of(second)
            if operation in opened:
                by_event[seq] = operation  # type: ignore[assignment]
                add(operation)
            else:
                add(None)
            seq += 1

    def forget(self, seq: int) -> None:
        """Let go of what has ended, once there is much of it."""
        if len(self._by_event) > _REMEMBERED_MAX:
            for operation in [one for one in self._open if (one or 0) < seq - _SPAN_MAX]:
                del self._open[operation]
            opened = self._open
            kept = {event: one for event, one in self._by_event.items() if one in opened}
            self._by_event.clear()
            self._by_event.update(kept)
