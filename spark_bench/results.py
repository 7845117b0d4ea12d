"""What a batch of runs gave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .histogram import BucketHistogram


@dataclass
class BatchResult:
    """What a batch gave: run rows in run order, and histograms merged over all runs."""

    suite: str
    engine: str
    rows: list[dict[str, Any]]
    histograms: dict[str, BucketHistogram]
    wall_s: float
    setup_s: float
    """Time to get the engine ready (a Spark session), not part of ``wall_s``."""
    planned: int
    """Runs that were asked for; more than ``rows`` when the batch was ended early."""

    @property
    def runs(self) -> int:
        return len(self.rows)

    @property
    def ok(self) -> int:
        """Runs that ended without a violation or an error."""
        return sum(row["status"] == "ok" for row in self.rows)

    def column(self, name: str) -> list[float]:
        """Values of a column over the runs that have it."""
        values = (row.get(name) for row in self.rows)
        return [value for value in values if value is not None and not math.isnan(value)]
