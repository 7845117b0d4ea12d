"""Operations of clients: which events belong to one, from its begin to its end."""

from __future__ import annotations

from collections.abc import Sequence

_SPAN_MAX = 100_000
"""An operation whose client died has no end; what it led to is not of it for ever."""
_REMEMBERED = 50_000
"""After so many events what has ended is forgotten."""


class Operations:
    """Events of open operations, each named by the number of the event that began it.

    An event belongs to the operation of what it follows from, as long as that is open.
    """

    __slots__ = ("_by_event", "_open", "assigned")

    def __init__(self) -> None:
        self._by_event: dict[int | None, int] = {}
        self._open: dict[int | None, None] = {}
        self.assigned: list[int | None] = []
        """The operations of events since somebody emptied it."""

    def assign(
        self,
        first: int,
        followed: Sequence[int | None],
        causes: Sequence[int | None],
        begun: Sequence[int],
        ended: Sequence[int],
    ) -> None:
        """Find the operations of events from a number on, by what each follows: that of its cause
        where the other is None or its operation not open. Some of them begin an operation, and at
        some the client has its answer."""
        self._by_event.update(zip(begun, begun, strict=True))
        self._open.update(dict.fromkeys(begun))
        start = 0
        assigned, opened = self.assigned, self._open
        for end in ended:
            stop = end + 1 - first
            self._assign(first + start, followed[start:stop], causes[start:stop])
            opened.pop(assigned[-1], None)
            start = stop
        self._assign(first + start, followed[start:], causes[start:])

    def _assign(
        self, seq: int, followed: Sequence[int | None], causes: Sequence[int | None]
    ) -> None:
        by_event, opened = self._by_event, self._open
        operation_of, add = by_event.get, self.assigned.append
        for one, cause in zip(followed, causes, strict=True):
            operation = operation_of(cause if one is None else one)
            if one is not None and operation not in opened:
                operation = operation_of(cause)
            if operation is not None and operation in opened:
                by_event[seq] = operation
                add(operation)
            else:
                add(None)
            seq += 1

    def forget(self, seq: int) -> None:
        """Drop what has ended; ``seq`` is the first event of the next chunk."""
        if seq % _REMEMBERED == 0:
            for operation in [one for one in self._open if (one or 0) < seq - _SPAN_MAX]:
                del self._open[operation]
            opened, known = self._open, self._by_event
            self._by_event = {event: one for event, one in known.items() if one in opened}
