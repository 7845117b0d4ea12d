"""Histograms with logarithmic buckets: 1 % relative error, merged by adding counts.

Bucket ``b`` holds values in (gamma^(b-1), gamma^b] with gamma = 1.01/0.99, the rule of DDSketch;
its representative is the value that errs by at most 1 % on both sides.

A measurement that had not ended when it was last checked is open: its bucket is that of the time it
had taken so far, plus ``OPEN``. Its value is larger than that, and ranks as the worst.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

GAMMA = 1.01 / 0.99
_LOG_GAMMA = math.log(GAMMA)
ZERO_BUCKET = -(1 << 20)
"""The bucket of values of zero and below."""
OPEN = 1 << 20
"""Added to the bucket of an open measurement."""
_SMALLEST_OPEN_VALUE = 1e-3


def is_known(count: int, percent: float) -> bool:
    """Return whether there are enough values for a percentile: the 99th needs a hundred.

    The median is defined for any number of values.
    """
    return percent <= 50 or percent >= 100 or count * (100 - percent) >= 100 - 1e-6


def is_open(bucket: int) -> bool:
    """Return whether a bucket holds open measurements."""
    return bucket > OPEN // 2


def bound_of(bucket: int) -> float:
    """Return the lower bound of the values in an open bucket."""
    return float(GAMMA ** (bucket - OPEN - 1))


def bucket_of(value: float) -> int:
    """Return the bucket of a value."""
    if value <= 0:
        return ZERO_BUCKET
    return math.ceil(math.log(value) / _LOG_GAMMA)


def value_of(bucket: int) -> float:
    """Return the representative value of a bucket; infinity for an open one."""
    if bucket == ZERO_BUCKET:
        return 0.0
    if is_open(bucket):
        return math.inf
    return 2 * GAMMA**bucket / (GAMMA + 1)


class BucketHistogram:
    """Counts per bucket of one metric."""

    __slots__ = ("counts", "largest")

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})
        self.largest: float | None = None
        """The exact largest value that was added, which buckets do not keep."""

    def add(self, value: float, count: int = 1) -> None:
        if self.largest is None or value > self.largest:
            self.largest = value
        bucket = bucket_of(value)
        self.counts[bucket] = self.counts.get(bucket, 0) + count

    def add_open(self, lower_bound: float) -> None:
        """Count a measurement that has taken ``lower_bound`` so far, and has not ended."""
        bucket = bucket_of(max(lower_bound, _SMALLEST_OPEN_VALUE)) + OPEN
        self.counts[bucket] = self.counts.get(bucket, 0) + 1

    def merge(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add (bucket, count) rows."""
        for bucket, count in rows:
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def open(self) -> int:
        """Number of open measurements."""
        return sum(count for bucket, count in self.counts.items() if is_open(bucket))

    def rows(self) -> list[tuple[int, int]]:
        """Return (bucket, count) rows in the order of buckets."""
        return sorted(self.counts.items())

    def percentile(self, percent: float) -> float:
        """Return the value at a percentile within 1 %: NaN if empty, a lower bound if open."""
        return self.reading(percent)[0]

    def reading(self, percent: float) -> tuple[float, bool]:
        """Return the value at a percentile, and whether it is only a lower bound.

        The nearest rank is used: the smallest value with at least ``percent`` of all values at or
        below it. The largest value that was added is returned exactly.
        """
        total = self.total
        if total == 0:
            return math.nan, False
        rank = max(1, math.ceil(percent / 100 * total - 1e-9))
        ended = total - self.open
        if rank == ended and self.largest is not None:
            return self.largest, False
        if rank <= ended:
            rows: Iterable[tuple[float, int]] = (
                (value_of(bucket), count) for bucket, count in self.rows()
            )
        else:
            rows = sorted(
                (bound_of(bucket) if is_open(bucket) else value_of(bucket), count)
                for bucket, count in self.rows()
            )
        cumulative = 0
        for value, count in rows:
            cumulative += count
            if cumulative >= rank:
                largest = math.inf if self.largest is None else self.largest
                return (min(value, largest), False) if rank <= ended else (value, True)
        raise AssertionError("the rank is at most the total")
