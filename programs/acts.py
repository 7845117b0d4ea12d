"""Acts of programs that others can notice, each with the place in the code that did it.

Two runs of one seed do the same, act by act. The first one that differs is nearer to the code that
caused it than the first event of the trace that does: bytes are under way for a while.
"""

from __future__ import annotations

import asyncio
import inspect
import zlib
from typing import NamedTuple

from . import places
from .tasks import by_number


class Act(NamedTuple):
    """An act of a program."""

    time_us: int
    """Virtual microseconds since the run began."""
    program: str
    what: str
    """In words, without the program's name: ``sends 120 bytes to broker-1:9092``."""
    checksum: int
    """CRC-32 of the bytes that it sent."""
    place: str
    """Where its code was; of a library's, where its own waited, too."""

    def is_as(self, other: Act) -> bool:
        """Return whether the other run did the same; the place follows from that."""
        return self[:4] == other[:4]


class Acts:
    """The acts of the programs of one run, in their order."""

    def __init__(self) -> None:
        self.all: list[Act] = []

    def add(
        self, now_us: int, program: str, loop: asyncio.AbstractEventLoop, what: str, data: bytes
    ) -> None:
        """Keep what the code of a program does now, and the bytes that it sends."""
        place = _place_now(loop)
        self.all.append(Act(now_us, program, what, zlib.crc32(data), place))


def _place_now(loop: asyncio.AbstractEventLoop) -> str:
    frame = inspect.currentframe()
    place = places.of_stack(frame)
    if places.is_in_own(frame):
        return place
    waiting = map(places.of_task, by_number(asyncio.all_tasks(loop)))
    return f"{place}, while there are the tasks {', '.join(waiting)}"
