"""The events of one chunk as columns, ready to be packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from ...actors.interfaces import Sent

if TYPE_CHECKING:
    from ...actors.interfaces import Row


class EventColumns:
    """Columns of the events from number ``first`` on."""

    __slots__ = ("causes", "first", "followed", "heads", "messages", "whys")

    def __init__(self, first: int) -> None:
        self.first: int = first
        self.heads: list[Any] = []
        """For each event: time in us, kind, actor, peer, type and number of the message."""
        self.messages: list[object] = []
        self.causes: list[int | None] = []
        self.followed: list[int | None] = []
        """For each event, the event whose operation it belongs to, if that is not its cause's."""
        self.whys: dict[int, str] = {}
        """Reasons by place among the events; most have none."""

    def __len__(self) -> int:
        return len(self.heads)

    def take(self, rows: Sequence[Row | Sent]) -> None:
        """Append the next events."""
        heads, messages, causes, followed = self.heads, self.messages, self.causes, self.followed
        seq = self.first + len(heads)
        for row in rows:
            message = row.message
            messages.append(message)
            if isinstance(row, Sent):
                name = type(message).__name__
                sender, target = row.sender.name, row.target.name
                if seq == row.seq:
                    heads.append((row.time_us, "send", sender, target, name, row.message_id))
                    causes.append(row.cause)
                    followed.append(row.of)
                else:
                    heads.append((row.arrival_us, "deliver", target, sender, name, row.message_id))
                    causes.append(row.seq)
                    followed.append(None)
            else:
                heads.append((row.time_us, row.kind, row.actor, row.peer, row.name, row.message_id))
                causes.append(row.cause)
                followed.append(row.of)
                if row.why is not None:
                    self.whys[seq - self.first] = row.why
            seq += 1

    def part(self, start: int, stop: int) -> Self:
        """Return the columns of the events from place ``start`` to before ``stop``."""
        part = type(self)(self.first + start)
        part.heads = self.heads[start:stop]
        part.messages = self.messages[start:stop]
        part.causes = self.causes[start:stop]
        part.followed = self.followed[start:stop]
        part.whys = {
            place - start: why for place, why in self.whys.items() if start <= place < stop
        }
        return part
