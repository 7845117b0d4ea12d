"""Finds which events belong to which operation of a client, from its beginning to its end."""

from __future__ import annotations

from collections.abc import Sequence

_OPERATION_EVENTS_MAX = 100_000
"""Number of events after which an operation counts as ended, as a client that died ends none."""
_CLEANUP_INTERVAL_EVENTS = 50_000
"""Interval in events at which ended operations are forgotten."""


class Operations:
    """The events of open operations; an operation is named by the number of its first event.

    An event belongs to the operation of the event that it follows, as long as that is open.
    """

    __slots__ = ("_by_event", "_open", "assigned")

    def __init__(self) -> None:
        self._by_event: dict[int | None, int] = {}
        self._open: dict[int | None, None] = {}
        self.assigned: list[int | None] = []
        """Operation of each event since the list was last cleared."""

    def assign(
        self,
        first: int,
        followed: Sequence[int | None],
        causes: Sequence[int | None],
        begun: Sequence[int],
        ended: Sequence[int],
    ) -> None:
        """Find the operations of the events from number ``first`` on, and add them to ``assigned``.

        An event belongs to the operation of the event in ``followed``; if that is None or its
        operation is not open, to that of its cause. ``begun`` are the events that begin an
        operation, ``ended`` those at which a client has its answer.
        """
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
        """Drop ended operations if it is time; ``seq`` is the first event of the next chunk."""
        if seq % _CLEANUP_INTERVAL_EVENTS == 0:
            for operation in [
                one for one in self._open if (one or 0) < seq - _OPERATION_EVENTS_MAX
            ]:
                del self._open[operation]
            opened, known = self._open, self._by_event
            self._by_event = {event: one for event, one in known.items() if one in opened}
