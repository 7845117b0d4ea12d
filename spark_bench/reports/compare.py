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

_CIRCUMSTANCES = frozenset({"partitions_led", "was_controller", "moved_mb", "alone_ms"})
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
    incomplete_pairs: int
    """Number of pairs in which a run has no value or only a lower bound."""

    @property
    def is_significant(self) -> bool:
        return self.difference.excludes_zero

    @property
    def percent(self) -> float | None:
        """The median difference in per cent of the median before."""
        part = 100 * self.difference.value / abs(self.before) if self.before else math.nan
        return part if math.isfinite(part) else None

    @property
    def significant_regression_percent(self) -> float:
        """Per cent by which the column is at least worse; 0 if that is not certain."""
        low, high = self.difference.low, self.difference.high
        if not self.is_significant or low is None or high is None:
            return 0.0
        regression = -high if self.column in MORE_IS_BETTER else low
        if regression <= 0:
            return 0.0
        return 100 * regression / abs(self.before) if self.before > 0 else math.inf


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
    def is_significant(self) -> bool:
        return self.p < self.level

    @property
    def is_significantly_worse(self) -> bool:
        return self.is_significant and self.after * self.runs[0] > self.before * self.runs[1]


@dataclass
class BatchComparison:
    """The result of comparing two batches."""

    differing_parameters: dict[str, tuple[Any, Any]]
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
    def significant(self) -> list[ColumnDifference]:
        return [item for item in self.differences if item.is_significant]

    def is_regression(self, percent: float) -> bool:
        """Return whether a column is certainly worse by more than ``percent``, certainly more runs
        break a promise or do not end, or only the second batch breaks promises."""
        violations = [item for item in self.proportions if item.what == VIOLATIONS]
        kept_before = not any(item.before for item in violations)
        breaks_after = any(item.after for item in violations)
        has_worse_proportion = any(item.is_significantly_worse for item in self.proportions)
        return (
            self.worst_regression_percent > percent
            or has_worse_proportion
            or (kept_before and breaks_after)
        )

    @property
    def worst_regression_percent(self) -> float:
        return max((item.significant_regression_percent for item in self.differences), default=0.0)


def compare(before: ReportSource, after: ReportSource) -> BatchComparison:
    """Compare two batches of a suite.

    Raises ``UsageError`` if they have no runs with the same parameters. A parameter that has one
    value throughout the first batch and another throughout the second may differ.
    """
    differing_parameters = _differing_parameters(before, after)
    after_by_key = {_key(item, differing_parameters): item for item in after.configurations}
    matching = [
        (item, after_by_key[key])
        for item in before.configurations
        if (key := _key(item, differing_parameters)) in after_by_key
    ]
    by_order = not any(_pair(old, new) for old, new in matching)
    pair = _pair_by_order if by_order else _pair
    paired = [(old, new, pair(old, new)) for old, new in matching]
    paired = [(old, new, rows) for old, new, rows in paired if rows]
    if not paired:
        raise UsageError(
            "the batches have no runs in common: they need the same suite, and parameters "
            "that differ in one value at most"
        )
    columns = [
        name for name in before.numbers() if name in after.columns and name not in _CIRCUMSTANCES
    ]
    level = (1 - CONFIDENCE) / 2
    confidence = 1 - level / max(1, len(columns) * len(paired))
    differences = []
    for old, _, rows in paired:
        for name in columns:
            difference = _difference(old.label, name, rows, confidence)
            if difference is not None:
                differences.append(difference)
    all_pairs = [pair for _, _, rows in paired for pair in rows]
    return BatchComparison(
        differing_parameters,
        len(all_pairs),
        confidence,
        differences,
        (
            sum(old_row["status"] != "ok" for old_row, _ in all_pairs),
            sum(new_row["status"] != "ok" for _, new_row in all_pairs),
        ),
        all(difference.difference.low is None for difference in differences),
        _proportions([(old.label, rows) for old, _, rows in paired], level),
        (_run_count(before) - len(all_pairs), _run_count(after) - len(all_pairs)),
        by_order,
    )


Rows = list[tuple[dict[str, Any], dict[str, Any]]]


def _differing_parameters(before: ReportSource, after: ReportSource) -> dict[str, tuple[Any, Any]]:
    differing = {}
    for name in before.parameters:
        old = {repr(value := item.parameters.get(name)): value for item in before.configurations}
        new = {repr(value := item.parameters.get(name)): value for item in after.configurations}
        if len(old) == len(new) == 1 and old.keys() != new.keys():
            (old_value,), (new_value,) = old.values(), new.values()
            differing[name] = (old_value, new_value)
    return differing


def _key(configuration: ReportConfiguration, without: dict[str, Any]) -> str:
    values = configuration.parameters
    return repr(sorted((name, values[name]) for name in values if name not in without))


def _pair(old: ReportConfiguration, new: ReportConfiguration) -> Rows:
    by_seed = {row["seed"]: row for row in new.rows}
    return [(row, by_seed[row["seed"]]) for row in old.rows if row["seed"] in by_seed]


def _pair_by_order(old: ReportConfiguration, new: ReportConfiguration) -> Rows:
    """Pair runs in the order of seeds: for equal distributions, the differences of any pairs are
    symmetric around zero."""

    def in_order(configuration: ReportConfiguration) -> list[dict[str, Any]]:
        return sorted(configuration.rows, key=lambda row: int(row["seed"]))

    return list(zip(in_order(old), in_order(new), strict=False))


def _run_count(source: ReportSource) -> int:
    return sum(len(configuration.rows) for configuration in source.configurations)


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
    observed = []
    for label, rows in groups:
        for what, has_property in ((VIOLATIONS, _is_violation), (ENDLESS, _is_endless)):
            before = sum(has_property(old) for old, _ in rows)
            after = sum(has_property(new) for _, new in rows)
            if before or after:
                observed.append((label, what, before, after, len(rows)))
    level_each = level / max(1, len(observed))
    return [
        ProportionDifference(
            label, what, before, after, (runs, runs), level_each,
            proportion_p(before, after, runs, runs),
        )
        for label, what, before, after, runs in observed
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
