"""What a batch says, as rows of a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..measuring.histogram import BucketHistogram
from ..tables.schema import METRICS
from .results import BatchResult, Configuration
from .statistics import nearest_rank

PERCENTILES = (50, 90, 99)
COLUMNS = (*(f"p{p}" for p in PERCENTILES), "max")
OUTAGE = ("unavailable_ms", "before_ms", "detect_ms", "elect_ms", "propagate_ms", "client_ms")


@dataclass(frozen=True)
class Percentiles:
    """One metric of a configuration."""

    name: str
    """Its column or its histogram, such as ``detect_ms``."""
    over: str
    """What was counted: ``runs`` or ``records``."""
    count: int
    values: dict[str, float]
    """``p50``, ``p90``, ``p99`` and ``max``."""


def percentiles(batch: BatchResult, configuration: Configuration) -> Iterator[Percentiles]:
    """The metrics of a configuration: over runs, then over records."""
    columns = dict.fromkeys((*OUTAGE, *batch.measures))
    for name in columns:
        values = configuration.column(name)
        if values:
            ranks = [nearest_rank(values, percent) for percent in (*PERCENTILES, 100)]
            yield Percentiles(name, "runs", len(values), _named(ranks))
    for name in dict.fromkeys((*METRICS, *batch.measures)):
        histogram = configuration.histograms.get(name, BucketHistogram())
        if histogram.total:
            ranks = [histogram.percentile(percent) for percent in (*PERCENTILES, 100)]
            over = "partitions" if name == "partition_unavailable_ms" else "records"
            yield Percentiles(name, over, histogram.total, _named(ranks))


def _named(values: list[float]) -> dict[str, float]:
    return dict(zip(COLUMNS, (round(value, 3) for value in values), strict=True))


def report(batch: BatchResult) -> dict[str, Any]:
    """The batch as plain data for JSON: runs, metrics by configuration, and what was broken."""
    return {
        "suite": batch.suite,
        "engine": batch.engine,
        "planned": batch.planned,
        "runs": batch.runs,
        "ok": batch.ok,
        "statuses": dict(sorted(batch.statuses.items())),
        "wall_s": round(batch.wall_s, 3),
        "setup_s": round(batch.setup_s, 3),
        "configurations": [
            {
                "parameters": configuration.parameters,
                "runs": configuration.runs,
                "metrics": {
                    found.name: {"over": found.over, "count": found.count, **found.values}
                    for found in percentiles(batch, configuration)
                },
            }
            for configuration in batch.configurations.values()
        ],
        "broken": [
            {name: row[name] for name in ("seed", "status", "problems", "reproduce")}
            for row in batch.broken
        ],
    }
