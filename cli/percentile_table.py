"""The percentiles of a batch as a table that never cuts off a number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ..spark_bench.reports.summary import COLUMNS, OUTAGE, percentiles

if TYPE_CHECKING:
    from ..spark_bench.reports.results import BatchResult, Configuration

_PADDING = 3
"""Terminal columns that a column of the table takes besides its text."""


def percentile_table(
    batch: BatchResult, configuration: Configuration, title: str | None = None
) -> tuple[Table, int]:
    """Return the table, and the minimum number of terminal columns that it needs.

    The names of metrics wrap, the numbers do not: half a number is a wrong one. On a terminal
    narrower than the numbers, lines are too long.
    """
    rows = [
        (_title(found.name, found.over, found.incomplete), *found.texts())
        for found in percentiles(batch, configuration)
    ]
    table = Table(title=title)
    table.add_column("metric", overflow="fold")
    for name in COLUMNS:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    cells = [("metric", *COLUMNS), *rows]
    numbers = [max(len(row[place]) for row in cells) for place in range(1, len(COLUMNS) + 1)]
    words = max(len(word) for row in cells for word in row[0].split())
    return table, 1 + words + _PADDING + sum(width + _PADDING for width in numbers)


def _title(name: str, over: str, incomplete: str) -> str:
    """Return the title of a row: the phases of ``unavailable_ms`` are indented, and what is counted
    is named unless it is runs."""
    indent = "  " if name in OUTAGE[1:] else ""
    counted = [text for text in ("" if over == "runs" else over, incomplete) if text]
    return indent + name + (f" ({', '.join(counted)})" if counted else "")


def print_percentiles(
    console: Console, batch: BatchResult, configuration: Configuration, title: str | None = None
) -> None:
    """Print the table, wider than the terminal if necessary."""
    table, least = percentile_table(batch, configuration, title)
    if least > console.width:
        console = Console(width=least)
    console.print(table)
