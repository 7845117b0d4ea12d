"""Long ways through a run, in slices: who goes on one may do something else between two of them.

A slice takes some milliseconds. Nothing runs between two slices, so whatever the debugger shows
may be looked at there, and to go no further (``Generator.close``) ends the way where it has come.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Waypoint:
    """The place that a way has come to after a slice."""

    number: int
    """The last event that was passed."""
    time_us: int
    """Its time."""
    is_repeated: bool = False
    """Whether this is a run from the seed to a place that is known already, or to look again."""


Going = Generator[Waypoint, None, Result]
"""Gives the progress after every slice, and the result at the end."""


def finished(going: Going[Result]) -> Result:
    """Go all the way without a pause."""
    while True:
        try:
            next(going)
        except StopIteration as end:
            result: Result = end.value
            return result


def with_each(going: Going[Result], change: Callable[[Waypoint], Waypoint]) -> Going[Result]:
    """The same way with another progress after every slice."""
    try:
        while True:
            try:
                progress = next(going)
            except StopIteration as end:
                result: Result = end.value
                return result
            yield change(progress)
    finally:
        going.close()


def repeated(going: Going[Result]) -> Going[Result]:
    """The same way, which leads through a run from its seed once more."""
    return with_each(going, lambda progress: replace(progress, is_repeated=True))
