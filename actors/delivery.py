"""What passes between nodes, and the links over which it passes."""

from __future__ import annotations

from typing import Any, NamedTuple


class Delivery(NamedTuple):
    """A message on its way."""

    sender: Any
    target: Any
    message: Any
    correlation: int = 0
    """0: no answer is expected."""
    is_reply: bool = False
    context: Any = None
    message_id: int = 0


class Link:
    """One direction between two machines; what is sent over it keeps its order."""

    __slots__ = ("free_at_us",)

    def __init__(self, free_at_us: int) -> None:
        self.free_at_us = free_at_us  # when the last message sent over it arrives
