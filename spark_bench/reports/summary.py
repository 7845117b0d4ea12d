"""The summary of a batch, as rows of a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..measuring.histogram import BucketHistogram, is_known
from ..measuring.run import PHASES
from ..tables.schema import METRICS
from .results import UNFINISHED, BatchResult, Configuration
from .statistics import Reading

PERCENTILES = (50, 90, 99)
COLUMNS = (*(f"p{p}" for p in PERCENTILES), "max")
OUTAGE = ("unavailable_ms", *PHASES)
AREA = ("unavailable_partition_s", "outages")
"""Columns about all outages of a run, not just the longest."""


@dataclass(frozen=True)
class Percentiles:
    """The percentiles of a metric in a configuration."""

    name: str
    """Name of the column or the histogram, such as ``detect_ms``."""
    over: str
    """The unit counted: ``runs``, ``records`` or ``partitions``."""
    count: int
    values: dict[str, float | None]
    """``p50``, ``p90``, ``p99`` and ``max``; None if unknown."""
    more_than: tuple[str, ...] = ()
    """Names of the values that are lower bounds."""
    incomplete: str = ""
    """``9 of 12 runs`` if some runs have no value, or ``3 of 500 open``; else empty."""

    def texts(self) -> Iterator[str]:
        """Yield each value as text."""
        for name, value in self.values.items():
            more = "> " if name in self.more_than else ""
            yield "unknown" if value is None else f"{more}{value:,.1f}"


def percentiles(batch: BatchResult, configuration: Configuration) -> Iterator[Percentiles]:
    """Yield the metrics of a configuration: over runs, then over records."""
    columns = dict.fromkeys((*OUTAGE, *AREA, *batch.measures))
    for name in columns:
        observed = configuration.observed(name)
        if observed.values or observed.bounds:
            ranks = [observed.percentile(percent) for percent in (*PERCENTILES, 100)]
            yield _metric(name, "runs", observed.count, ranks, observed.incomplete)
    for name in dict.fromkeys((*METRICS, *batch.measures)):
        histogram = configuration.histograms.get(name, BucketHistogram())
        if histogram.total:
            histogram.largest = _largest(configuration, name)
            total = histogram.total
            ranks = [
                Reading(*histogram.reading(p)) if is_known(total, p) else Reading(None)
                for p in (*PERCENTILES, 100)
            ]
            over = "partitions" if name == "partition_unavailable_ms" else "records"
            open_text = f"{histogram.open:,} of {total:,} open" if histogram.open else ""
            yield _metric(name, over, total, ranks, open_text)


def _largest(configuration: Configuration, metric: str) -> float | None:
    """Return the largest value of all runs, which their rows have but buckets do not."""
    stem, unit = metric.removesuffix("_ms"), "_ms" if metric.endswith("_ms") else ""
    return max(configuration.columns.get(f"{stem}_max{unit}", ()), default=None)


def _metric(name: str, over: str, count: int, ranks: list[Reading], incomplete: str) -> Percentiles:
    values = [None if reading.value is None else round(reading.value, 3) for reading in ranks]
    bounds = (column for column, reading in zip(COLUMNS, ranks, strict=True) if reading.is_bound)
    named = dict(zip(COLUMNS, values, strict=True))
    return Percentiles(name, over, count, named, tuple(bounds), incomplete)


def unfinished_lines(batch: BatchResult) -> Iterator[str]:
    """Yield sentences about the outages, answers and reads that were open when runs ended."""
    for name, (runs, count) in batch.unfinished.items():
        if runs:
            yield f"{runs} of {batch.runs} runs ended {UNFINISHED[name]}: {count:,} in all"


def report(batch: BatchResult) -> dict[str, Any]:
    """Return the batch as plain data for JSON: runs, metrics by configuration, broken runs."""
    return {
        "suite": batch.suite,
        "engine": batch.engine,
        "planned": batch.planned,
        "runs": batch.runs,
        "ok": batch.ok,
        "unfinished": {
            name: {"runs": runs, "count": count} for name, (runs, count) in batch.unfinished.items()
        },
        "statuses": dict(sorted(batch.statuses.items())),
        "wall_s": round(batch.wall_s, 3),
        "setup_s": round(batch.setup_s, 3),
        "configurations": [
            {
                "parameters": configuration.parameters,
                "runs": configuration.runs,
                "metrics": {
                    metric.name: {
                        "over": metric.over,
                        "count": metric.count,
                        **metric.values,
                        "more_than": list(metric.more_than),
                        "incomplete": metric.incomplete,
                    }
                    for metric in percentiles(batch, configuration)
                },
            }
            for configuration in batch.configurations.values()
        ],
        "broken": [
            {name: row[name] for name in ("seed", "status", "problems", "reproduce")}
            for row in batch.broken
        ],
    }
