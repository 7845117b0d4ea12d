"""Statistics over runs: percentiles and differences with intervals that assume no distribution.

Runs are independent, the values inside a run are not, so intervals are over runs. They come from
ranks: how likely so many of n runs lie below the true percentile is binomial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval; both ends are None where there are too few runs for one."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies above zero or below it."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """The smallest value with at least ``percent`` % of all at or below it."""
    rank = math.ceil(percent * len(ordered) / 100)
    return ordered[max(0, min(len(ordered), rank) - 1)]


def percentile(values: Sequence[float], percent: float, confidence: float = CONFIDENCE) -> Estimate:
    """A percentile over runs, and where that of all possible runs lies."""
    ordered = sorted(values)
    count = len(ordered)
    if not count:
        return Estimate(math.nan, None, None, 0)
    value = nearest_rank(ordered, percent)
    tail = (1 - confidence) / 2
    below = _ranks_below(count, percent / 100, tail)
    above = _ranks_below(count, 1 - percent / 100, tail)
    if below < 1 or above < 1:
        return Estimate(value, None, None, count)
    return Estimate(value, ordered[below - 1], ordered[count - above], count)


def paired_difference(
    before: Sequence[float], after: Sequence[float], confidence: float = CONFIDENCE
) -> Estimate:
    """The median difference of runs with the same seeds."""
    differences = sorted(new - old for old, new in zip(before, after, strict=True))
    found = percentile(differences, 50, confidence)
    if not differences:
        return found
    middle = len(differences) // 2
    value = differences[middle]
    if len(differences) % 2 == 0:
        value = (differences[middle - 1] + value) / 2
    return Estimate(value, found.low, found.high, found.count)


def _ranks_below(count: int, share: float, tail: float) -> int:
    """The largest rank r for which fewer than r of the runs lie below with at most this chance."""
    if share <= 0:
        return 0
    total = 0.0
    logarithm = math.log1p(-share) * count if share < 1 else -math.inf
    for rank in range(count + 1):
        if logarithm > -745:
            total += math.exp(logarithm)
        if total > tail:
            return rank
        if share >= 1:
            return count
        logarithm += math.log((count - rank) / (rank + 1)) if rank < count else 0.0
        logarithm += math.log(share) - math.log1p(-share)
    return count
