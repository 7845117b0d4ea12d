"""The results of a batch that are kept in memory: columns of numbers, merged histograms."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..measuring.histogram import BucketHistogram
from ..planning.carry_out import STATUSES
from ..planning.plan import BatchPlan, column_name, labels
from .statistics import Observed

_BROKEN_MAX = 100
FAILED = frozenset(STATUSES) - {"ok", "violation"}
"""Statuses of runs that failed before their end."""
UNFINISHED = {
    "outages_open": "with partitions that took no record again",
    "unanswered": "with records that were never answered",
    "unread": "with acknowledged records that were never read",
}
"""Columns that count what was still open when a run ended, with the words for it."""
MORE_IS_BETTER = frozenset({"records_per_s", "acknowledged", "in_control"})


def bounded_columns(row: Mapping[str, Any]) -> frozenset[str]:
    """Return the columns of a row whose value is a lower bound."""
    return frozenset((row.get("at_least") or "").split(","))


@dataclass
class Configuration:
    """The runs of one combination of parameters."""

    number: int
    parameters: dict[str, Any]
    label: str = ""
    runs: int = 0
    ok: int = 0
    failed: int = 0
    """Number of runs that failed before their end."""
    columns: dict[str, array[float]] = field(default_factory=dict)
    bounds: dict[str, array[float]] = field(default_factory=dict)
    """Values of a column that are only lower bounds."""
    failed_with: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, BucketHistogram] = field(default_factory=dict)

    def column(self, name: str) -> list[float]:
        """Return the sorted values of a column over the runs that have one."""
        return sorted(self.columns.get(name, ()))

    def observed(self, name: str) -> Observed:
        """Return a column with the runs that have no value, or only a lower bound."""
        values, bounds = self.column(name), sorted(self.bounds.get(name, ()))
        failed = self.failed - self.failed_with[name]
        absent = self.runs - len(values) - len(bounds) - failed
        return Observed(values, bounds, failed, absent, name in MORE_IS_BETTER)


class BatchResult:
    """The results of a batch. ``rows`` is empty if they were written to a directory."""

    def __init__(self, plan: BatchPlan, engine: str, *, keeps_rows: bool) -> None:
        self.suite: str = plan.source.name
        self.measures: Mapping[str, str] = plan.suite.measures
        self.engine = engine
        self.planned: int = len(plan.specs)
        """Number of planned runs, which is more than ``runs`` if the batch was ended early."""
        self.wall_s: float = 0.0
        self.setup_s: float = 0.0
        """Seconds to start the engine (a Spark session), which are not part of ``wall_s``."""
        self.statuses: Counter[str] = Counter()
        self.broken: list[dict[str, Any]] = []
        """The first rows that are not ok."""
        self.unfinished: dict[str, list[int]] = {name: [0, 0] for name in UNFINISHED}
        """Number of runs with open outages, answers or reads, and the sum of these, by column."""
        self.notes: list[str] = []
        """Lines about damaged tables, whose runs are made again."""
        self.configurations: dict[int, Configuration] = {}
        self._rows: list[dict[str, Any]] | None = [] if keeps_rows else None
        self._parameters = [column_name(name) for name, _ in plan.specs[0].parameters]
        names = labels(plan)
        for spec in plan.specs:
            number = spec.configuration
            if number not in self.configurations:
                values = {column_name(name): value for name, value in spec.parameters}
                self.configurations[number] = Configuration(number, values, names[number])
        self._not_measured = {
            "run_id", "configuration", "seed", *self._parameters, "events", "messages",
        }  # fmt: skip

    def add(self, row: Mapping[str, Any], histograms: Mapping[str, list[tuple[int, int]]]) -> None:
        """Add the results of a run."""
        configuration = self.configurations[row["configuration"]]
        status = row["status"]
        self.statuses[status] += 1
        configuration.runs += 1
        configuration.ok += status == "ok"
        if status != "ok" and len(self.broken) < _BROKEN_MAX:
            self.broken.append(dict(row))
        if self._rows is not None:
            self._rows.append(dict(row))
        has_failed = status in FAILED
        configuration.failed += has_failed
        at_least = bounded_columns(row)
        for name, value in row.items():
            if name in self._not_measured or not isinstance(value, (int, float)):
                continue
            if not math.isnan(value):
                kept = configuration.bounds if name in at_least else configuration.columns
                kept.setdefault(name, array("d")).append(value)
                configuration.failed_with[name] += has_failed
        for name in UNFINISHED:
            if row.get(name):
                self.unfinished[name][0] += 1
                self.unfinished[name][1] += int(row[name])
        for metric, counts in histograms.items():
            configuration.histograms.setdefault(metric, BucketHistogram()).merge(counts)

    @property
    def runs(self) -> int:
        return sum(self.statuses.values())

    @property
    def ok(self) -> int:
        """Number of runs that ended without a violation or an error."""
        return self.statuses["ok"]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows that were kept, in the order of the runs."""
        return sorted(self._rows or (), key=lambda row: int(row["run_id"]))
