"""What ``bench compare`` prints: the differences that are sure, as a table or as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..spark_bench.reports.compare import BatchComparison, ColumnDifference

_LEAST_COLUMNS = 110
"""Of a terminal that shows whole numbers."""


def print_comparison(console: Console, found: BatchComparison) -> None:
    """Print a table, and what it is based on."""
    for name, (old, new) in found.differs.items():
        console.print(f"{name}: {old} before, {new} after", highlight=False)
    if found.sure:
        wide = Console(width=max(console.width, _LEAST_COLUMNS))
        wide.print(_table(found))
    elif found.has_too_few:
        console.print("the seeds of a configuration are too few to be sure of any difference")
    else:
        console.print("nothing surely differs")
    broken = f"; runs that are not ok: {found.broken[0]} before, {found.broken[1]} after"
    console.print(
        f"{found.pairs} pairs of runs with the same seeds, {len(found.differences)} comparisons, "
        f"intervals of {found.confidence:.4%}" + (broken if any(found.broken) else ""),
        highlight=False,
        soft_wrap=True,
    )


def _table(found: BatchComparison) -> Table:
    table = Table()
    has_labels = any(one.configuration for one in found.sure)
    if has_labels:
        table.add_column("configuration", overflow="fold")
    table.add_column("column", overflow="fold")
    for name in ("before", "after", "difference", "interval", "%"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.sure:
        label = [one.configuration] if has_labels else []
        percent = "" if one.percent is None else f"{one.percent:+,.1f}"
        table.add_row(
            *label,
            one.column,
            f"{one.before:,.2f}",
            f"{one.after:,.2f}",
            f"{one.difference.value:+,.2f}",
            f"{one.difference.low:+,.2f} to {one.difference.high:+,.2f}",
            percent,
        )
    return table


def comparison_data(found: BatchComparison) -> dict[str, Any]:
    """The comparison as plain data; ``sure`` tells which differences count."""
    return {
        "differs": {name: list(values) for name, values in found.differs.items()},
        "pairs": found.pairs,
        "confidence": found.confidence,
        "broken": list(found.broken),
        "differences": [_data(one) for one in found.differences],
    }


def _data(one: ColumnDifference) -> dict[str, Any]:
    return {
        "configuration": one.configuration,
        "column": one.column,
        "before": one.before,
        "after": one.after,
        "difference": one.difference.value,
        "low": one.difference.low,
        "high": one.difference.high,
        "percent": one.percent,
        "sure": one.is_sure,
    }
