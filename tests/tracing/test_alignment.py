"""Alignment of two long sequences, which finds the common parts behind a difference."""

from __future__ import annotations

import random
import time
from array import array
from collections.abc import Sequence

import pytest
from fakekafka.tracing.alignment import Stretch, stretches


def shared(left: Sequence[int], right: Sequence[int]) -> int:
    """Return the number of common items, after checking the stretches."""
    count = i = j = 0
    for one in stretches(left, right):
        assert (one.left, one.right) == (i, j)
        i, j = i + one.left_count, j + one.right_count
        if one.is_shared:
            assert left[one.left : i] == right[one.right : j]
            count += one.left_count
    assert (i, j) == (len(left), len(right))
    return count


def test_the_alignment_skips_insertions() -> None:
    """The alignment skips an insertion on either side and a replaced item."""
    left = array("q", [1, 2, 3, 4, 5, 6, 7, 8, 9])
    right = array("q", [1, 2, 90, 3, 4, 5, 6, 70, 8, 9])
    assert list(stretches(left, right)) == [
        Stretch(0, 0, 2, 2, True),
        Stretch(2, 2, 0, 1, False),
        Stretch(2, 3, 4, 4, True),
        Stretch(6, 7, 1, 1, False),
        Stretch(7, 8, 2, 2, True),
    ]


@pytest.mark.parametrize("gap", [10, 200, 2000, 15_000])
def test_the_alignment_skips_a_long_gap(gap: int) -> None:
    """The alignment resumes behind thousands of items that only one sequence has."""
    rng = random.Random(gap)
    left = [rng.randrange(1000) for _ in range(20_000)]
    right = left[:500] + [rng.randrange(2000, 3000) for _ in range(gap)] + left[500:]
    assert shared(left, right) == len(left)
    assert shared(right, left) == len(left)


def test_runs_with_nothing_in_common_are_aligned_quickly() -> None:
    """The time to align different sequences grows with their length, not its square."""
    left, right = range(60_000), range(100_000, 160_000)
    started = time.process_time()
    assert shared(left, right) == 0
    assert time.process_time() - started < 5


def test_an_empty_run_is_aligned() -> None:
    assert list(stretches([], [])) == []
    assert list(stretches([1, 2], [])) == [Stretch(0, 0, 2, 0, False)]
