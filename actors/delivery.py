"""Messages between nodes, and the links over which they pass."""

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
    event: int | None = None
    """In a recorded run, what it follows from: of an answer about to be sent the delivery of the
    request, then its own sending; for who handles it, its own delivery."""


class Link:
    """One direction between two machines; what is sent over it keeps its order."""

    __slots__ = ("free_at_us",)

    def __init__(self, free_at_us: int) -> None:
        self.free_at_us = free_at_us  # when the last message sent over it arrives
