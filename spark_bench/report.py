"""What a batch says, as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .histogram import Histogram

if TYPE_CHECKING:
    from .suite import BatchResult

PERCENTILES = (50, 90, 99)
_RUN_METRICS = (
    ("unavailable_ms", "unavailability of a run's worst partition, ms"),
    ("detect_ms", "  detect, ms"),
    ("elect_ms", "  elect, ms"),
    ("client_ms", "  client, ms"),
    ("full_isr_ms", "crash to full ISR, ms"),
)
_SAMPLE_METRICS = (
    ("service_ms", "produce, from send, ms"),
    ("response_ms", "produce, from intended time (open loop), ms"),
)


def percentile_rows(batch: BatchResult) -> Iterator[tuple[str, ...]]:
    """(metric, p50, p90, p99, max) rows: over runs, then over samples."""
    for name, title in _RUN_METRICS:
        values = sorted(batch.column(name))
        if values:
            ranks = [
                values[min(len(values) - 1, -(-p * len(values) // 100) - 1)] for p in PERCENTILES
            ]
            yield (title, *(f"{value:,.1f}" for value in (*ranks, values[-1])))
    for name, title in _SAMPLE_METRICS:
        histogram = batch.histograms.get(name, Histogram())
        if histogram.total:
            values = [histogram.percentile(p) for p in (*PERCENTILES, 100)]
            yield (title, *(f"{value:,.1f}" for value in values))
