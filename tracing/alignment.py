"""Aligns two long sequences: the items they share in the same order, and those only one has.

Memory and time grow linearly with the length: after a difference, windows of growing size are
searched for the next place where a few consecutive items are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_IN_A_ROW = 4
"""Number of consecutive equal items at which the sequences count as aligned again."""
_WINDOWS = (32, 256, 2048, 16384)
"""Sizes of the windows that are searched for that place, one after the other."""


class Stretch(NamedTuple):
    """Items that both sequences share, or the items on the two sides of a difference."""

    left: int
    right: int
    left_count: int
    right_count: int
    is_shared: bool


def stretches(left: Sequence[int], right: Sequence[int]) -> Iterator[Stretch]:
    """Yield the stretches that together cover both sequences, in order."""
    i = j = 0
    while i < len(left) and j < len(right):
        count = _equal(left, right, i, j)
        if count:
            yield Stretch(i, j, count, count, True)
            i, j = i + count, j + count
            continue
        skipped = _next_meeting(left, right, i, j)
        yield Stretch(i, j, *skipped, False)
        i, j = i + skipped[0], j + skipped[1]
    if i < len(left) or j < len(right):
        yield Stretch(i, j, len(left) - i, len(right) - j, False)


def _equal(left: Sequence[int], right: Sequence[int], i: int, j: int) -> int:
    """Return the number of consecutive equal items from the two positions on."""
    most = min(len(left) - i, len(right) - j)
    count = 0
    while count < most and left[i + count] == right[j + count]:
        count += 1
    return count


def _next_meeting(left: Sequence[int], right: Sequence[int], i: int, j: int) -> tuple[int, int]:
    """Return how many items to skip on each side until both are aligned again: as few as possible
    in the smallest window that has such a place."""
    for window in _WINDOWS:
        places: dict[tuple[int, ...], int] = {}
        for place, row in _rows(right, j, window):
            places.setdefault(row, place)
        best: tuple[int, int] | None = None
        for place, row in _rows(left, i, window):
            if best is not None and place >= sum(best):
                break
            found = places.get(row)
            if found is not None and (best is None or place + found < sum(best)):
                best = place, found
        if best is not None:
            return best
    return min(len(left) - i, _WINDOWS[-1]), min(len(right) - j, _WINDOWS[-1])


def _rows(items: Sequence[int], start: int, window: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each place in a window with the item there and those after it, fewer at the end."""
    for place in range(min(window, len(items) - start)):
        first = start + place
        yield place, tuple(items[first : first + _IN_A_ROW])
