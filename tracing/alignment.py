"""Two long sequences side by side: what they share in the same order, and what only one has.

Memory and time grow with the length, not with its square: behind a difference the sequences are
searched for a place from which on a few items in a row are equal, near first and then farther.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_IN_A_ROW = 4
"""Equal items after which the sequences go together again."""
_WINDOWS = (32, 256, 2048, 16384)
"""How far the place is looked for, one after the other."""


class Stretch(NamedTuple):
    """Items that both have, or items that stand on the two sides of a difference."""

    left: int
    right: int
    left_count: int
    right_count: int
    is_shared: bool


def stretches(left: Sequence[int], right: Sequence[int]) -> Iterator[Stretch]:
    """All of both sequences, in order."""
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
    """Return how many items are equal from here on."""
    most = min(len(left) - i, len(right) - j)
    count = 0
    while count < most and left[i + count] == right[j + count]:
        count += 1
    return count


def _next_meeting(left: Sequence[int], right: Sequence[int], i: int, j: int) -> tuple[int, int]:
    """Return how much to skip on both sides until they go together: as little as can be."""
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
    """Each item of a window with those that follow it, fewer at the end of the whole."""
    for place in range(min(window, len(items) - start)):
        first = start + place
        yield place, tuple(items[first : first + _IN_A_ROW])
