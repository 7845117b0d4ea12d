"""Compares two batches: what differs, by how much, and with what certainty.

Runs with the same seed are compared with each other, so that effects of the seed cancel out. A
difference counts if its interval excludes zero, at a level that allows for the number of
comparisons: if nothing differs, 95 of a hundred comparisons of batches show no difference at all.
Half of that level is reserved for the numbers of runs that broke a promise or did not end. Batches
without a common seed are compared run by run in the order of seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...protocol.errors import UsageError
from .results import FAILED, MORE_IS_BETTER, UNFINISHED, bounded_columns
from .source import ReportConfiguration, ReportSource, number_in
from .statistics import (
    CONFIDENCE,
    Estimate,
    Observed,
    Reading,
    Span,
    paired_difference,
    proportion_p,
)

_LEFT_OUT = frozenset({"partitions_led", "was_controller", "moved_mb", "alone_ms"})
"""Columns that describe the circumstances of a run rather than its result."""


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """A column of a configuration in both batches."""

    configuration: str
    column: str
    before: float
    after: float
    """Medians over the runs that are compared; NaN where the median run has no value."""
    bounds: tuple[bool, bool]
    """True for each median that is only a lower bound."""
    difference: Estimate
    """Estimated difference between paired runs."""
    without: int
    """Number of pairs in which a run has no value or only a lower bound."""

    @property
    def is_sure(self) -> bool:
        return self.difference.excludes_zero

    @property
    def percent(self) -> float | None:
        """The median difference in per cent of the median before."""
        part = 100 * self.difference.value / abs(self.before) if self.before else math.nan
        return part if math.isfinite(part) else None

    @property
    def surely_worse_percent(self) -> float:
        """Per cent by which the column is at least worse; 0 if that is not certain."""
        low, high = self.difference.low, self.difference.high
        if not self.is_sure or low is None or high is None:
            return 0.0
        least = -high if self.column in MORE_IS_BETTER else low
        if least <= 0:
            return 0.0
        return 100 * least / abs(self.before) if self.before > 0 else math.inf


@dataclass(frozen=True, slots=True)
class ProportionDifference:
    """The numbers of runs in both batches that have some property."""

    configuration: str
    what: str
    before: int
    after: int
    runs: tuple[int, int]
    level: float
    """Limit below which ``p``, the probability for two equal batches, makes a difference count."""
    p: float

    @property
    def is_sure(self) -> bool:
        return self.p < self.level

    @property
    def is_surely_worse(self) -> bool:
        return self.is_sure and self.after * self.runs[0] > self.before * self.runs[1]


@dataclass
class BatchComparison:
    """The result of comparing two batches."""

    differs: dict[str, tuple[Any, Any]]
    """Parameters that have another value in the second batch, with both values."""
    pairs: int
    """Number of pairs of runs that were compared."""
    confidence: float
    """Confidence level of each single interval."""
    differences: list[ColumnDifference]
    """All differences, certain or not, in the order of configurations and columns."""
    broken: tuple[int, int]
    """Numbers of compared runs that are not ok."""
    has_too_few: bool
    """True if there are too few seeds for any interval."""
    proportions: list[ProportionDifference]
    """Numbers of runs with a broken promise, and of runs without an end, if there are any."""
    unpaired: tuple[int, int]
    """Numbers of runs that were left out because the other batch does not have their seed."""
    by_order: bool
    """True if the batches have no seed in common, so that runs are paired in their order."""

    @property
    def sure(self) -> list[ColumnDifference]:
        return [one for one in self.differences if one.is_sure]

    def fails(self, percent: float) -> bool:
        """Return whether a column is certainly worse by more than ``percent``, certainly more runs
        break a promise or do not end, or only the second batch breaks promises."""
        kept = not any(one.before for one in self.proportions if one.what == VIOLATIONS)
        breaks = any(one.after for one in self.proportions if one.what == VIOLATIONS)
        worse = any(one.is_surely_worse for one in self.proportions)
        return self.worst_percent > percent or worse or (kept and breaks)

    @property
    def worst_percent(self) -> float:
        return max((one.surely_worse_percent for one in self.differences), default=0.0)


def compare(before: ReportSource, after: ReportSource) -> BatchComparison:
    """Compare two batches of a suite.

    Raises ``UsageError`` if they have no runs with the same parameters. A parameter that has one
    value throughout the first batch and another throughout the second may differ.
    """
    differs = _differing(before, after)
    theirs = {_key(one, differs): one for one in after.configurations}
    matched = [
        (one, theirs[_key(one, differs)])
        for one in before.configurations
        if _key(one, differs) in theirs
    ]
    by_order = not any(_pair(old, new) for old, new in matched)
    pair = _pair_by_order if by_order else _pair
    paired = [(old, new, pair(old, new)) for old, new in matched]
    paired = [entry for entry in paired if entry[2]]
    if not paired:
        raise UsageError(
            "the batches have no runs in common: they need the same suite, and parameters "
            "that differ in one value at most"
        )
    columns = [name for name in before.numbers() if name in after.columns and name not in _LEFT_OUT]
    level = (1 - CONFIDENCE) / 2
    confidence = 1 - level / max(1, len(columns) * len(paired))
    differences = []
    for old, _, rows in paired:
        for name in columns:
            found = _difference(old.label, name, rows, confidence)
            if found is not None:
                differences.append(found)
    every = [pair for _, _, rows in paired for pair in rows]
    return BatchComparison(
        differs,
        len(every),
        confidence,
        differences,
        (
            sum(one["status"] != "ok" for one, _ in every),
            sum(two["status"] != "ok" for _, two in every),
        ),
        all(one.difference.low is None for one in differences),
        _proportions([(old.label, rows) for old, _, rows in paired], level),
        (_all_runs(before) - len(every), _all_runs(after) - len(every)),
        by_order,
    )


Rows = list[tuple[dict[str, Any], dict[str, Any]]]


def _differing(before: ReportSource, after: ReportSource) -> dict[str, tuple[Any, Any]]:
    found = {}
    for name in before.parameters:
        old = {repr(one.parameters.get(name)): one for one in before.configurations}
        new = {repr(one.parameters.get(name)): one for one in after.configurations}
        if len(old) == len(new) == 1 and old.keys() != new.keys():
            (first,), (second,) = old.values(), new.values()
            found[name] = (first.parameters.get(name), second.parameters.get(name))
    return found


def _key(configuration: ReportConfiguration, without: dict[str, Any]) -> str:
    values = configuration.parameters
    return repr(sorted((name, values[name]) for name in values if name not in without))


def _pair(old: ReportConfiguration, new: ReportConfiguration) -> Rows:
    by_seed = {row["seed"]: row for row in new.rows}
    return [(row, by_seed[row["seed"]]) for row in old.rows if row["seed"] in by_seed]


def _pair_by_order(old: ReportConfiguration, new: ReportConfiguration) -> Rows:
    """Pair runs in the order of seeds: for equal distributions, the differences of any pairs are
    symmetric around zero."""

    def in_order(one: ReportConfiguration) -> list[dict[str, Any]]:
        return sorted(one.rows, key=lambda row: int(row["seed"]))

    return list(zip(in_order(old), in_order(new), strict=False))


def _all_runs(source: ReportSource) -> int:
    return sum(len(one.rows) for one in source.configurations)


VIOLATIONS = "runs with a broken promise"
ENDLESS = "runs without an end"
"""Runs that failed, or ended with unavailable partitions or unanswered records."""


def _is_violation(row: dict[str, Any]) -> bool:
    return bool(row["status"] == "violation")


def _is_endless(row: dict[str, Any]) -> bool:
    return row["status"] in FAILED or any(number_in(row, name) for name in UNFINISHED)


def _proportions(paired: list[tuple[str, Rows]], level: float) -> list[ProportionDifference]:
    """Return the proportions for properties that at least one run has; others cannot differ."""
    groups = list(paired)
    if len(paired) > 1:
        groups.append(("all configurations", [pair for _, rows in paired for pair in rows]))
    counted = []
    for label, rows in groups:
        for what, holds in ((VIOLATIONS, _is_violation), (ENDLESS, _is_endless)):
            before = sum(holds(old) for old, _ in rows)
            after = sum(holds(new) for _, new in rows)
            if before or after:
                counted.append((label, what, before, after, len(rows)))
    each = level / max(1, len(counted))
    return [
        ProportionDifference(
            label, what, before, after, (runs, runs), each,
            proportion_p(before, after, runs, runs),
        )
        for label, what, before, after, runs in counted
    ]  # fmt: skip


def _difference(label: str, name: str, rows: Rows, confidence: float) -> ColumnDifference | None:
    """Return the difference over the pairs whose runs both have a value or a bound, or failed."""
    both = [
        (first, second)
        for old, new in rows
        if (first := _span(old, name)) is not None and (second := _span(new, name)) is not None
    ]
    if not both:
        return None
    medians = [_median(name, [pair[side] for pair in both]) for side in (0, 1)]
    return ColumnDifference(
        label,
        name,
        math.nan if medians[0].value is None else medians[0].value,
        math.nan if medians[1].value is None else medians[1].value,
        (medians[0].is_bound, medians[1].is_bound),
        paired_difference(both, confidence),
        len(rows) - sum(math.isfinite(old[1]) and math.isfinite(new[1]) for old, new in both),
    )


def _span(row: dict[str, Any], name: str) -> Span | None:
    """Return the bounds of a run's value; None if there was nothing to measure."""
    value = number_in(row, name)
    if value is not None:
        return value, math.inf if name in bounded_columns(row) else value
    return (-math.inf, math.inf) if row["status"] in FAILED else None


def _median(name: str, spans: list[Span]) -> Reading:
    values = sorted(low for low, high in spans if low == high)
    bounds = sorted(low for low, high in spans if math.isfinite(low) and low != high)
    failed = len(spans) - len(values) - len(bounds)
    return Observed(values, bounds, failed, 0, name in MORE_IS_BETTER).percentile(50)
