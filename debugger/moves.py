"""Long moves through a run in slices, between which the caller may do something else.

A slice takes some milliseconds. Nothing runs between two slices, so the debugger can be inspected
there, and ``Generator.close`` ends the move at the position it has reached.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a move after a slice."""

    number: int
    """Number of the last event that was passed."""
    time_us: int
    """Time of that event in microseconds."""
    is_repeated: bool = False
    """True while the run is repeated from its seed, to a known position or for conditions."""


Move = Generator[Progress, None, Result]
"""A move: a generator that yields its progress after every slice, and returns the result."""


def complete(move: Move[Result]) -> Result:
    """Complete a move without a pause; return its result."""
    while True:
        try:
            next(move)
        except StopIteration as end:
            result: Result = end.value
            return result


def map_progress(move: Move[Result], change: Callable[[Progress], Progress]) -> Move[Result]:
    """Return the same move, with its progress changed by a function after every slice."""
    try:
        while True:
            try:
                progress = next(move)
            except StopIteration as end:
                result: Result = end.value
                return result
            yield change(progress)
    finally:
        move.close()


def mark_repeated(move: Move[Result]) -> Move[Result]:
    """Return the same move, with its progress marked as that of a repeated run."""
    return map_progress(move, lambda progress: replace(progress, is_repeated=True))
