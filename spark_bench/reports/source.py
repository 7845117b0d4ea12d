"""The source of a report: the tables of a batch, by configuration. The suite is not needed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..tables.reader import BatchTables
from ..tables.schema import FIRST, LAST, METRICS, MIDDLE
from .results import FAILED, MORE_IS_BETTER, UNFINISHED, bounded_columns
from .statistics import Observed

_NOT_MEASURED = {*FIRST, *MIDDLE, *LAST}


def number_in(row: Mapping[str, Any], name: str) -> float | None:
    """Return the number in a column of a row; None if it has none."""
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else None


@dataclass
class ReportConfiguration:
    """The runs of a configuration, which differ only in their seeds."""

    number: int
    parameters: dict[str, Any]
    label: str
    rows: list[dict[str, Any]] = field(default_factory=list)

    def column(self, name: str) -> list[float]:
        """Return the values of a column, including lower bounds, of the runs that have one."""
        values = (number_in(row, name) for row in self.rows)
        return [value for value in values if value is not None]

    def observed(self, name: str) -> Observed:
        """Return a column with the runs that have no value, or only a lower bound."""
        values: list[float] = []
        bounds: list[float] = []
        failed = 0
        for row in self.rows:
            value = number_in(row, name)
            if value is None:
                failed += row["status"] in FAILED
            else:
                (bounds if name in bounded_columns(row) else values).append(value)
        absent = len(self.rows) - len(values) - len(bounds) - failed
        more_is_better = name in MORE_IS_BETTER
        return Observed(sorted(values), sorted(bounds), failed, absent, more_is_better)

    @property
    def ok(self) -> int:
        return sum(row["status"] == "ok" for row in self.rows)


@dataclass(frozen=True, slots=True)
class PublishedPair:
    """Two published measurements, and the corresponding ones of this batch."""

    title: str
    measured: tuple[float, float]
    published: tuple[float, float]
    source: str

    @property
    def ratio(self) -> float:
        return self.measured[0] / self.measured[1]

    @property
    def published_ratio(self) -> float:
        return self.published[0] / self.published[1]

    @property
    def off(self) -> float:
        """Relative difference of the ratio from the published one: 0.1 stands for 10 %."""
        return self.ratio / self.published_ratio - 1


class ReportSource:
    """The tables of a batch."""

    def __init__(self, directory: str | Path) -> None:
        """Raises ``UsageError`` for a directory without a batch, or without a run."""
        self.tables: BatchTables = BatchTables(directory)
        self.facts: dict[str, Any] = self.tables.facts
        self.suite: str = self.facts["suite"]
        runs = self.tables.runs("arrow")
        self._docs = {
            field.name: (field.metadata or {}).get(b"doc", b"").decode() for field in runs.schema
        }
        self._docs |= self.facts["measures"]
        self.parameters: list[str] = [p for p in self.facts["parameters"] if p in self._docs]
        configurations: dict[int, ReportConfiguration] = {}
        for row in runs.to_pylist():
            number = row["configuration"]
            if number not in configurations:
                values = {name: row[name] for name in self.parameters}
                label = self.facts["labels"][number]
                configurations[number] = ReportConfiguration(number, values, label)
            configurations[number].rows.append(row)
        self.configurations: list[ReportConfiguration] = [
            configurations[number] for number in sorted(configurations)
        ]
        self.columns: list[str] = [
            name for name in runs.column_names
            if name not in _NOT_MEASURED and name not in self.parameters
        ]  # fmt: skip
        self._histograms = self._pooled_histograms()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [row for configuration in self.configurations for row in configuration.rows]

    @property
    def headline(self) -> str:
        name: str = self.facts["headline"]
        if name in self.columns:
            return name
        candidates = ("unavailable_ms", "response_p99_ms")
        return next((column for column in candidates if column in self.columns), "virtual_ms")

    def unfinished(self) -> list[str]:
        """Return sentences about the outages, answers and reads that were open when runs ended."""
        sentences = []
        for name, text in UNFINISHED.items():
            counts = [count for row in self.rows if (count := number_in(row, name))]
            if counts:
                runs = f"{len(counts)} of {len(self.rows)} runs"
                sentences.append(f"{runs} ended {text}: {sum(counts):,.0f} in all")
        return sentences

    def doc(self, name: str) -> str:
        """Return the meaning of a column or a metric, without a full stop at the end."""
        return (self._docs.get(name) or METRICS.get(name) or name).rstrip(".")

    def numbers(self) -> list[str]:
        """Return the numeric columns with results of runs, the most telling first."""
        first = [self.headline, *self.facts["measures"], "unavailable_ms"]
        rest = [name for name in self.columns if name not in first]
        numeric = [name for name in dict.fromkeys((*first, *rest)) if any(
            configuration.column(name) for configuration in self.configurations)]  # fmt: skip
        return [name for name in numeric if name in self.columns or name == self.headline]

    def _pooled_histograms(self) -> dict[tuple[int, str], list[tuple[float, int]]]:
        table = self.tables.hist("arrow")
        if not table.num_rows:
            return {}
        sums = table.group_by(["configuration", "metric", "bucket", "value"]).aggregate(
            [("n", "sum")]
        )
        sums = sums.sort_by([(name, "ascending") for name in ("configuration", "metric", "bucket")])
        histograms: dict[tuple[int, str], list[tuple[float, int]]] = {}
        for row in sums.to_pylist():
            key = row["configuration"], row["metric"]
            histograms.setdefault(key, []).append((row["value"], row["n_sum"]))
        return histograms

    def metrics(self) -> list[str]:
        """Return the metrics that have a histogram."""
        return sorted({metric for _, metric in self._histograms})

    def histogram(self, configuration: int, metric: str) -> list[tuple[float, int]]:
        """Return the pooled (value, count) rows of a configuration's runs, in order of value."""
        return self._histograms.get((configuration, metric), [])

    def seconds(self, configuration: int) -> list[tuple[int, list[float]]]:
        """Return (second, sorted numbers of records acknowledged in it, one per run) for the
        seconds that at least half of the runs reached."""
        table = self.tables.series("arrow")
        import pyarrow.compute as compute

        if not table.num_rows:
            return []
        rows = table.filter(compute.equal(table["configuration"], configuration))
        counts: dict[int, list[float]] = {}
        for second, count in zip(rows["second"].to_pylist(), rows["acknowledged"].to_pylist(),
                                 strict=True):  # fmt: skip
            counts.setdefault(second, []).append(float(count))
        runs = max(map(len, counts.values()), default=0)
        return [
            (second, sorted(counts[second])) for second in sorted(counts)
            if 2 * len(counts[second]) >= runs
        ]  # fmt: skip

    def published(self) -> list[PublishedPair]:
        """Return the published pairs of which this batch has both configurations."""
        pairs = []
        for pair in self.facts["published"]:
            sides = []
            for side in ("above", "below"):
                for configuration in self.configurations:
                    median = configuration.observed(self.headline).percentile(50)
                    if median.value is None or median.is_bound:
                        continue
                    if all(configuration.parameters.get(k) == v for k, v in pair[side].items()):
                        sides.append(median.value)
                        break
            if len(sides) == 2 and sides[1]:
                pairs.append(
                    PublishedPair(
                        pair["title"], (sides[0], sides[1]), tuple(pair["published"]),
                        pair["source"],
                    )
                )  # fmt: skip
        return pairs
