"""A histogram for the controller's metrics."""

from __future__ import annotations

from collections import deque

_SAMPLES_MAX = 1024


class Histogram:
    """Count, sum, minimum and maximum of all values, and percentiles of the last 1024."""

    __slots__ = ("_recent", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.count: int = 0
        self.total: int = 0
        self.minimum: int = 0
        """Smallest value; 0 while there are no values."""
        self.maximum: int = 0
        self._recent: deque[int] | None = None

    def update(self, value: int) -> None:
        if self._recent is None:
            self._recent = deque(maxlen=_SAMPLES_MAX)
            self.minimum = self.maximum = value
        self._recent.append(value)
        self.count += 1
        self.total += value
        if value < self.minimum:
            self.minimum = value
        elif value > self.maximum:
            self.maximum = value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def percentile(self, fraction: float) -> int:
        """Return the value below which ``fraction`` (0..1) of the recent values lie; 0 without
        values."""
        if not self._recent:
            return 0
        ordered = sorted(self._recent)
        return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]

    def snapshot(self) -> dict[str, float]:
        return {
            "count": self.count,
            "min": self.minimum,
            "max": self.maximum,
            "mean": self.mean,
            "p50": self.percentile(0.5),
            "p99": self.percentile(0.99),
        }
