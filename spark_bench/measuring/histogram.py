"""Histograms with logarithmic buckets: 1 % relative error, merged by adding counts.

Bucket ``b`` holds values in (gamma^(b-1), gamma^b] with gamma = 1.01/0.99, the rule of DDSketch;
its representative is the value that errs by at most 1 % on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

GAMMA = 1.01 / 0.99
_LOG_GAMMA = math.log(GAMMA)
ZERO_BUCKET = -(1 << 20)
"""Where values of zero and below go."""


def bucket_of(value: float) -> int:
    """The bucket a value falls into."""
    if value <= 0:
        return ZERO_BUCKET
    return math.ceil(math.log(value) / _LOG_GAMMA)


def value_of(bucket: int) -> float:
    """The value that stands for a bucket."""
    if bucket == ZERO_BUCKET:
        return 0.0
    return 2 * GAMMA**bucket / (GAMMA + 1)


class BucketHistogram:
    """Counts per bucket of one metric."""

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: dict[int, int] = dict(counts or {})

    def add(self, value: float, count: int = 1) -> None:
        bucket = bucket_of(value)
        self.counts[bucket] = self.counts.get(bucket, 0) + count

    def merge(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add (bucket, count) rows."""
        for bucket, count in rows:
            self.counts[bucket] = self.counts.get(bucket, 0) + count

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def rows(self) -> list[tuple[int, int]]:
        """(bucket, count) rows in bucket order."""
        return sorted(self.counts.items())

    def percentile(self, percent: float) -> float:
        """The value at a percentile, within 1 %; NaN when empty.

        The rank is the nearest one: the smallest value with at least ``percent`` of all at or
        below it.
        """
        total = self.total
        if total == 0:
            return math.nan
        rank = max(1, math.ceil(percent / 100 * total))
        seen = 0
        for bucket, count in self.rows():
            seen += count
            if seen >= rank:
                return value_of(bucket)
        raise AssertionError("the rank is at most the total")
