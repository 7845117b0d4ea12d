"""Operations of clients: which events and messages belong to one, from its begin to its end."""

from __future__ import annotations

_EVENTS_MAX = 10_000
"""An operation whose client died has no end; what it led to is not of it for ever."""


class Operations:
    """Open operations by the ``client_invoke`` that began them."""

    __slots__ = ("_open", "by_event", "by_message")

    def __init__(self) -> None:
        self.by_event: dict[int | None, int] = {}
        """Seq to operation."""
        self.by_message: dict[int, int] = {}
        """Number of a message to operation."""
        self._open: dict[int, tuple[list[int], list[int]]] = {}  # its events, its messages

    def begin(self, seq: int) -> int:
        """Open the operation that this event begins; its name is the event's number."""
        self._open[seq] = ([], [])
        return seq

    def carry(self, seq: int, op: int, message_id: int | None) -> int | None:
        """Let an event, and the message it sends, belong to an operation; None if it has ended."""
        members = self._open.get(op)
        if members is None:
            return None
        events, messages = members
        self.by_event[seq] = op
        events.append(seq)
        if message_id is not None and message_id not in self.by_message:
            self.by_message[message_id] = op
            messages.append(message_id)
        if len(events) > _EVENTS_MAX:
            self.end(op)
        return op

    def end(self, op: int | None) -> None:
        """The client has its answer: what happens from now on does not belong to it."""
        members = self._open.pop(op, None)  # type: ignore[arg-type]
        if members is not None:
            for seq in members[0]:
                self.by_event.pop(seq, None)
            for message_id in members[1]:
                self.by_message.pop(message_id, None)
