"""Two batches side by side: what differs, by how much, and how sure that is.

Runs with the same seed are compared with each other, so what the seeds have in common cancels out.
A difference counts where its interval excludes zero, at a level that allows for the number of
comparisons: of a hundred true equalities 95 in a hundred batches show none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...protocol.errors import UsageError
from .source import ReportConfiguration, ReportSource
from .statistics import CONFIDENCE, Estimate, paired_difference, percentile

_MORE_IS_BETTER = frozenset({"records_per_s", "acknowledged", "in_control"})
_LEFT_OUT = frozenset({"partitions_led", "was_controller", "moved_mb", "alone_ms"})
"""Columns that describe what a run met, not how it went."""


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """One column of one configuration in both batches."""

    configuration: str
    column: str
    before: float
    after: float
    """Medians over the seeds."""
    difference: Estimate
    """Of the runs with the same seeds."""

    @property
    def is_sure(self) -> bool:
        return self.difference.excludes_zero

    @property
    def percent(self) -> float | None:
        """The median difference as a part of the median before."""
        return 100 * self.difference.value / abs(self.before) if self.before else None

    @property
    def surely_worse_percent(self) -> float:
        """By how much it is worse at least; 0 where that is not sure."""
        low, high = self.difference.low, self.difference.high
        if not self.is_sure or low is None or high is None:
            return 0.0
        least = -high if self.column in _MORE_IS_BETTER else low
        if least <= 0:
            return 0.0
        return 100 * least / abs(self.before) if self.before else float("inf")


@dataclass
class BatchComparison:
    """What two batches have in common, and where they differ."""

    differs: dict[str, tuple[Any, Any]]
    """Parameters with another value in the second batch."""
    pairs: int
    """Runs that were compared."""
    confidence: float
    """Of each single interval."""
    differences: list[ColumnDifference]
    """All, in the order of configurations and columns."""
    broken: tuple[int, int]
    """Runs that are not ok, of those that were compared."""
    has_too_few: bool
    """Whether there are too few seeds for any interval."""

    @property
    def sure(self) -> list[ColumnDifference]:
        return [one for one in self.differences if one.is_sure]

    @property
    def worst_percent(self) -> float:
        return max((one.surely_worse_percent for one in self.differences), default=0.0)


def compare(before: ReportSource, after: ReportSource) -> BatchComparison:
    """Compare two batches of a suite.

    Raises ``UsageError`` when they have no runs with the same seeds and parameters. A parameter
    that has one value in the first batch and another in the second is what is compared.
    """
    differs = _differing(before, after)
    theirs = {_key(one, differs): one for one in after.configurations}
    matched = [
        (one, theirs[_key(one, differs)])
        for one in before.configurations
        if _key(one, differs) in theirs
    ]
    paired = [(old, new, _pair(old, new)) for old, new in matched]
    paired = [entry for entry in paired if entry[2]]
    if not paired:
        raise UsageError(
            "the batches have no runs in common: they need the same suite, parameters that "
            "differ in one value at most, and common seeds"
        )
    columns = [name for name in before.numbers() if name in after.columns and name not in _LEFT_OUT]
    confidence = 1 - (1 - CONFIDENCE) / max(1, len(columns) * len(paired))
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


def _difference(label: str, name: str, rows: Rows, confidence: float) -> ColumnDifference | None:
    both = [
        (float(old[name]), float(new[name]))
        for old, new in rows
        if isinstance(old.get(name), (int, float)) and isinstance(new.get(name), (int, float))
    ]
    if not both:
        return None
    first, second = [old for old, _ in both], [new for _, new in both]
    return ColumnDifference(
        label,
        name,
        percentile(first, 50).value,
        percentile(second, 50).value,
        paired_difference(first, second, confidence),
    )
