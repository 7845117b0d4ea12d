"""What a batch says, as rows of a table and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .histogram import BucketHistogram

if TYPE_CHECKING:
    from .results import BatchResult

PERCENTILES = (50, 90, 99)
COLUMNS = (*(f"p{p}" for p in PERCENTILES), "max")
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


@dataclass(frozen=True)
class Percentiles:
    """One metric of a batch, in milliseconds."""

    name: str
    """Its column, such as ``detect_ms``."""
    title: str
    """What a table calls it."""
    over: str
    """What was counted: ``runs`` or ``records``."""
    count: int
    values: dict[str, float]
    """``p50``, ``p90``, ``p99`` and ``max``."""


def percentiles(batch: BatchResult) -> Iterator[Percentiles]:
    """The metrics that the batch has: over runs, then over records."""
    for name, title in _RUN_METRICS:
        values = sorted(batch.column(name))
        if values:
            ranks = [
                values[min(len(values) - 1, -(-p * len(values) // 100) - 1)] for p in PERCENTILES
            ]
            yield Percentiles(name, title, "runs", len(values), _named([*ranks, values[-1]]))
    for name, title in _SAMPLE_METRICS:
        histogram = batch.histograms.get(name, BucketHistogram())
        if histogram.total:
            ranks = [histogram.percentile(p) for p in (*PERCENTILES, 100)]
            yield Percentiles(name, title, "records", histogram.total, _named(ranks))


def _named(values: list[float]) -> dict[str, float]:
    return dict(zip(COLUMNS, (round(value, 3) for value in values), strict=True))


def percentile_rows(batch: BatchResult) -> Iterator[tuple[str, ...]]:
    """(metric, p50, p90, p99, max) rows of text: over runs, then over records."""
    for found in percentiles(batch):
        yield (found.title, *(f"{value:,.1f}" for value in found.values.values()))


def report(batch: BatchResult) -> dict[str, Any]:
    """The batch as plain data for JSON: runs, metrics by name, and what was broken."""
    return {
        "suite": batch.suite,
        "engine": batch.engine,
        "runs": batch.runs,
        "ok": batch.ok,
        "wall_s": round(batch.wall_s, 3),
        "setup_s": round(batch.setup_s, 3),
        "metrics": {
            found.name: {"over": found.over, "count": found.count, **found.values}
            for found in percentiles(batch)
        },
        "broken": [
            {"seed": row["seed"], "problems": row["problems"], "reproduce": row["reproduce"]}
            for row in batch.rows
            if row["status"] != "ok"
        ],
    }
