"""The memory that the unprocessed requests of a listener's connections may use together.

Kafka's ``queued.max.request.bytes`` (KIP-72): a broker whose requests fill the memory stops
reading until some are processed. Kafka reserves a request's memory once its size is known, so that
four bytes can reserve a hundred million. Here buffers grow with the bytes that arrive. Many
half-received requests might then all lack room for the rest, so one connection may always continue
to read: the one that has held bytes longest. If still no memory is released for a second, every
connection that has held bytes for that long is closed.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

UNSET_LIMIT_BYTES = 256 * 1024 * 1024
"""Limit if ``queued.max.request.bytes`` is not set; Kafka then has no limit."""
STALL_S = 1.0
_TRUSTED_FRAME_BYTES_MAX = 1024 * 1024
_TRUSTED_BYTES_MAX = 16 * 1024 * 1024
_FIRST_BUFFER_BYTES = 65536
_LAST_BUFFER_BYTES = 4096


class Holder(Protocol):
    """A connection with unprocessed bytes."""

    def update_reading(self) -> None:
        """Ask ``may_read`` again, and pause or resume reading."""
        ...

    def refuse(self, reason: str) -> None:
        """Close the connection and log the reason."""
        ...


class RequestMemory:
    """Counts the bytes that each connection holds, in the order in which they began to hold any."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int) -> None:
        """A ``limit_bytes`` of 0 or less means ``UNSET_LIMIT_BYTES``."""
        self._loop = loop
        self._limit_bytes = limit_bytes if limit_bytes > 0 else UNSET_LIMIT_BYTES
        self._held: dict[Holder, int] = {}
        self._since_s: dict[Holder, float] = {}
        self._released_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.total: int = 0

    @property
    def is_full(self) -> bool:
        return self.total > self._limit_bytes

    def may_read(self, holder: Holder) -> bool:
        """Return whether a connection may continue to read."""
        return self.total <= self._limit_bytes or next(iter(self._held), holder) is holder

    def buffer_size(self, frame_size: int, received: int) -> int:
        """Return the size of the next buffer for a frame of which ``received`` bytes have arrived.

        A frame of usual size gets its whole buffer at once, and so is never copied, while all
        connections together hold little. Other buffers grow with the bytes that arrive.
        """
        if frame_size <= _TRUSTED_FRAME_BYTES_MAX and self.total + frame_size <= min(
            _TRUSTED_BYTES_MAX, self._limit_bytes
        ):
            return frame_size
        room = _LAST_BUFFER_BYTES if self.is_full else _FIRST_BUFFER_BYTES
        return min(frame_size, max(2 * received, room))

    def note(self, holder: Holder, held: int) -> None:
        """Record the number of bytes that a connection holds now; 0 if it has ended."""
        previous = self._held.get(holder, 0)
        if held == previous:
            return
        was_full = self.is_full
        self.total += held - previous
        if held:
            self._held[holder] = held
            if not previous:
                self._since_s[holder] = self._loop.time()
        else:
            del self._held[holder], self._since_s[holder]
        if held < previous:
            self._released_s = self._loop.time()
        if self.is_full:
            if not was_full:
                self._begin_waiting()
            elif not held:
                next(iter(self._held)).update_reading()
        elif was_full:
            self._update_all_reading()

    def _begin_waiting(self) -> None:
        self._released_s = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(STALL_S, self._check_stall)
        self._update_all_reading()

    def _update_all_reading(self) -> None:
        for holder in tuple(self._held):
            holder.update_reading()

    def _check_stall(self) -> None:
        self._timer = None
        if not self.is_full:
            return
        now_s = self._loop.time()
        remaining_s = self._released_s + STALL_S - now_s
        if remaining_s > 0:
            self._timer = self._loop.call_later(remaining_s, self._check_stall)
            return
        reason = (
            f"unprocessed requests of all connections hold {self.total} bytes, and this one is "
            f"among the oldest; queued.max.request.bytes allows for {self._limit_bytes}"
        )
        for holder, since_s in tuple(self._since_s.items()):
            if now_s - since_s >= STALL_S:
                holder.refuse(reason)
        if self.is_full:
            self._timer = self._loop.call_later(STALL_S, self._check_stall)
