"""Statistics over runs: percentiles and differences with intervals that assume no distribution.

Runs are independent, the values within a run are not, so intervals are over runs. They come from
ranks: the number of runs below the true percentile is binomially distributed.

A run that ended before the measured process gives a lower bound, and a failed run gives no value.
Both belong to the distribution as its worst part: without them the worst runs would look best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...protocol.errors import UsageError
from ..measuring.histogram import is_known

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with an interval, both ends of which are None if there are too few runs."""

    value: float
    low: float | None
    high: float | None
    count: int

    @property
    def excludes_zero(self) -> bool:
        """True if the interval is entirely above or below zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


@dataclass(frozen=True, slots=True)
class Reading:
    """A percentile: a value, a lower bound (``is_bound``), or None if nothing is known."""

    value: float | None
    is_bound: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """The values of a column in the runs of a configuration."""

    values: Sequence[float]
    """Values of the runs in which the measured process ended, in order."""
    bounds: Sequence[float] = ()
    """Lower bounds of the runs in which the measured process had not ended, in order."""
    failed: int = 0
    """Number of runs that failed before they had a value."""
    absent: int = 0
    """Number of runs in which there was nothing to measure; not part of the distribution."""
    more_is_better: bool = False

    @property
    def count(self) -> int:
        return len(self.values) + len(self.bounds) + self.failed

    @property
    def incomplete(self) -> str:
        """A text such as ``9 of 12 runs`` if not every run has a value, else empty."""
        runs = self.count + self.absent
        return "" if len(self.values) == runs else f"{len(self.values)} of {runs} runs"

    def rank(self, rank: int) -> Reading:
        """Return the value at a rank, which counts from 1; unknown values rank as worst."""
        if self.more_is_better:
            known = rank - self.failed
            return Reading(self.values[known - 1]) if known > 0 else Reading(None)
        if rank <= len(self.values):
            return Reading(self.values[rank - 1])
        least = sorted((*self.values, *self.bounds))
        place = rank - self.failed
        return Reading(least[place - 1], True) if place > 0 else Reading(None)

    def percentile(self, percent: float) -> Reading:
        """Return the value at the nearest rank; 100 is the largest. None for too few runs."""
        if not self.count or not is_known(self.count, percent):
            return Reading(None)
        return self.rank(_rank(self.count, percent))

    def interval(self, percent: float, confidence: float = CONFIDENCE) -> Interval | None:
        """Return the confidence interval of the percentile; None if there are too few runs."""
        tail = (1 - confidence) / 2
        below = _ranks_below(self.count, percent / 100, tail)
        above = _ranks_below(self.count, 1 - percent / 100, tail)
        if below < 1 or above < 1:
            return None
        return self.rank(below), self.rank(self.count + 1 - above)


Interval = tuple[Reading, Reading]


def _rank(count: int, percent: float) -> int:
    return max(1, min(count, math.ceil(percent * count / 100 - 1e-9)))


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value with at least ``percent`` % of all values at or below it."""
    rank = math.ceil(percent * len(ordered) / 100)
    return ordered[max(0, min(len(ordered), rank) - 1)]


Span = tuple[float, float]
"""Bounds of a value; both equal the value if it is known."""


def paired_difference(
    pairs: Sequence[tuple[Span, Span]], confidence: float = CONFIDENCE
) -> Estimate:
    """Estimate the median difference of pairs of runs, some values of which are only bounded.

    The interval is valid for all values within the bounds. For the median, a value that is not
    known counts as its upper bound.
    """
    lows = sorted(new[0] - old[1] for old, new in pairs)
    highs = sorted(new[1] - old[0] for old, new in pairs)
    count = len(lows)
    if not count:
        return Estimate(math.nan, None, None, 0)
    differences = sorted(0.0 if old[1] == new[1] else new[1] - old[1] for old, new in pairs)
    value = differences[count // 2]
    if count % 2 == 0 and value != differences[count // 2 - 1]:
        value = (differences[count // 2 - 1] + value) / 2
    below = _ranks_below(count, 0.5, (1 - confidence) / 2)
    if below < 1:
        return Estimate(value, None, None, count)
    return Estimate(value, lows[below - 1], highs[count - below], count)


def proportion_p(before: int, after: int, runs_before: int, runs_after: int) -> float:
    """Return the probability of proportions that differ at least as much if there is no difference
    (Boschloo's exact test).

    Raises ``UsageError`` if scipy is not installed.
    """
    try:
        from scipy.stats import boschloo_exact
    except ImportError:
        raise UsageError("comparing batches needs scipy: pip install 'fakekafka[spark]'") from None
    if before * runs_after == after * runs_before:
        return 1.0
    table = [[before, after], [runs_before - before, runs_after - after]]
    return float(boschloo_exact(table).pvalue)


def _ranks_below(count: int, share: float, tail: float) -> int:
    """Return the largest rank r such that fewer than r of ``count`` runs are below the percentile
    with a probability of at most ``tail``."""
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
