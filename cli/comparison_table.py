"""The output of ``bench compare``: the certain differences as a table, or all as plain data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from ..spark_bench.reports.compare import BatchComparison, ColumnDifference

_SHOWN = 8
_LEAST_COLUMNS = 110
"""Minimum width in columns at which the table shows its numbers in full."""


def print_comparison(console: Console, found: BatchComparison) -> None:
    """Print a table of the differences, and the numbers of runs on which it is based."""
    for name, (old, new) in found.differing_parameters.items():
        console.print(f"{name}: {old} before, {new} after", highlight=False)
    for proportion in found.proportions:
        where = f"{proportion.configuration}: " if proportion.configuration else ""
        before, after = proportion.runs
        counts = f"{proportion.before} of {before} before, {proportion.after} of {after} after"
        significance = " (significant)" if proportion.is_significant else ""
        text = f"{where}{proportion.what}: {counts}{significance}"
        console.print(text, highlight=False, soft_wrap=True)
    has_significant_proportion = any(proportion.is_significant for proportion in found.proportions)
    if found.significant:
        wide = Console(width=max(console.width, _LEAST_COLUMNS))
        wide.print(_table(found))
    elif found.has_too_few:
        console.print("too few seeds per configuration for any significant difference")
    elif not has_significant_proportion:
        console.print("no significant difference")
    _print_left_out(console, found)
    seeds = "in the order of their seeds" if found.by_order else "with the same seeds"
    broken = f"; runs that are not ok: {found.broken[0]} before, {found.broken[1]} after"
    console.print(
        f"{found.pairs} pairs of runs {seeds}, {len(found.differences)} comparisons, "
        f"intervals of {found.confidence:.4%}" + (broken if any(found.broken) else ""),
        highlight=False,
        soft_wrap=True,
    )


def _print_left_out(console: Console, found: BatchComparison) -> None:
    """Print which runs and pairs are not part of the differences above."""
    if any(found.unpaired):
        before, after = found.unpaired
        console.print(f"runs without a partner: {before} before, {after} after", highlight=False)
    for number, names in sorted(_columns_by_incomplete_pairs(found).items()):
        shown = ", ".join(names[:_SHOWN]) + (" and others" if len(names) > _SHOWN else "")
        text = f"{number} pairs in which a run has no value, or only a lower bound: {shown}"
        console.print(text, highlight=False, soft_wrap=True)


def _columns_by_incomplete_pairs(found: BatchComparison) -> dict[int, list[str]]:
    """Return the names of columns by the number of pairs for which they have no value."""
    numbers: dict[str, int] = {}
    for one in found.differences:
        numbers[one.column] = numbers.get(one.column, 0) + one.incomplete_pairs
    columns: dict[int, list[str]] = {}
    for name, number in numbers.items():
        if number:
            columns.setdefault(number, []).append(name)
    return columns


def _number(value: float | None, form: str = ",.2f", is_bound: bool = False) -> str:
    if value is None or not math.isfinite(value):
        return "unknown"
    return ("> " if is_bound else "") + format(value, form)


def _table(found: BatchComparison) -> Table:
    table = Table()
    has_labels = any(one.configuration for one in found.significant)
    if has_labels:
        table.add_column("configuration", overflow="fold")
    table.add_column("column", overflow="fold")
    for name in ("before", "after", "difference", "interval", "%"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found.significant:
        label = [one.configuration] if has_labels else []
        percent = "" if one.percent is None else f"{one.percent:+,.1f}"
        table.add_row(
            *label,
            one.column,
            _number(one.before, is_bound=one.bounds[0]),
            _number(one.after, is_bound=one.bounds[1]),
            _number(one.difference.value, "+,.2f"),
            f"{_number(one.difference.low, '+,.2f')} to {_number(one.difference.high, '+,.2f')}",
            percent,
        )
    return table


def comparison_data(found: BatchComparison) -> dict[str, Any]:
    """Return the comparison as plain data; ``significant`` marks the certain differences."""
    return {
        "differs": {name: list(values) for name, values in found.differing_parameters.items()},
        "pairs": found.pairs,
        "confidence": found.confidence,
        "broken": list(found.broken),
        "proportions": [
            {
                "configuration": one.configuration,
                "what": one.what,
                "before": one.before,
                "after": one.after,
                "runs": list(one.runs),
                "p": one.p,
                "sure": one.is_significant,
            }
            for one in found.proportions
        ],
        "unpaired": list(found.unpaired),
        "by_order": found.by_order,
        "differences": [_data(one) for one in found.differences],
    }


def _data(one: ColumnDifference) -> dict[str, Any]:
    return {
        "configuration": one.configuration,
        "column": one.column,
        "before": _finite(one.before),
        "after": _finite(one.after),
        "more_than": list(one.bounds),
        "difference": _finite(one.difference.value),
        "low": _finite(one.difference.low),
        "high": _finite(one.difference.high),
        "percent": one.percent,
        "without": one.incomplete_pairs,
        "sure": one.is_significant,
    }


def _finite(value: float | None) -> float | None:
    """Return a value for JSON, which has no infinity: None for an unknown one."""
    return value if value is not None and math.isfinite(value) else None
