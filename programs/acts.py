"""Externally visible acts of programs, each with the place in the code that performed it.

Two runs of one seed perform the same acts in the same order. The first act that differs is closer
to the code that caused the difference than the first differing event of the trace, because bytes
are in flight for a while.
"""

from __future__ import annotations

import asyncio
import inspect
import zlib
from typing import NamedTuple

from . import places
from .tasks import sorted_by_number


class Act(NamedTuple):
    """An act of a program."""

    time_us: int
    """Virtual microseconds since the run began."""
    program: str
    what: str
    """Description without the program's name: ``sends 120 bytes to broker-1:9092``."""
    checksum: int
    """CRC-32 of the bytes sent by the act."""
    place: str
    """Place in the program's code; for library code, also the place where the program's own code
    was waiting."""

    def is_same_as(self, other: Act) -> bool:
        """Return whether both acts are the same; places are not compared, as they follow."""
        return self[:4] == other[:4]


class Acts:
    """The acts of the programs of one run, in order."""

    def __init__(self) -> None:
        self.all: list[Act] = []

    def add(
        self, now_us: int, program: str, loop: asyncio.AbstractEventLoop, what: str, data: bytes
    ) -> None:
        """Record an act of a program's code, with the bytes it sends."""
        place = _current_place(loop)
        self.all.append(Act(now_us, program, what, zlib.crc32(data), place))


def _current_place(loop: asyncio.AbstractEventLoop) -> str:
    frame = inspect.currentframe()
    place = places.of_stack(frame)
    if places.includes_own_code(frame):
        return place
    waiting = map(places.of_task, sorted_by_number(asyncio.all_tasks(loop)))
    return f"{place}, while there are the tasks {', '.join(waiting)}"
