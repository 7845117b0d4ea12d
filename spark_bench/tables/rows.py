"""Turns the results of a run into rows of the tables."""

from __future__ import annotations

from typing import Any

from ..measuring.histogram import value_of
from ..planning.carry_out import Outcome


def run_row(outcome: Outcome) -> dict[str, Any]:
    """Return the row of ``runs``. Lists in a scenario file become text: a column has one type."""
    return {name: str(value) if isinstance(value, (tuple, dict)) else value
            for name, value in outcome.row.items()}  # fmt: skip


def table_rows(table: str, outcome: Outcome, engine: str) -> list[tuple[Any, ...]]:
    """Return the rows of any other table, as tuples in the order of its columns."""
    head = (outcome.row["run_id"], outcome.row["configuration"])
    if table == "hist":
        return [
            (*head, metric, bucket, count, value_of(bucket))
            for metric, counts in outcome.histograms.items()
            for bucket, count in counts
        ]
    if table == "series":
        return [(*head, *row) for row in outcome.series]
    if table == "samples":
        return [(*head, *sample) for sample in outcome.samples]
    return [(head[0], engine, outcome.worker, outcome.wall_ms)]
