"""The figures of a report as data: ``page`` draws them in a browser, ``pictures`` as PNG files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..measuring.run import PHASES
from .source import ReportSource
from .statistics import Observed, Reading, nearest_rank

_LOGARITHMIC_RATIO = 30
"""Ratio of the largest to the smallest value beyond which an axis is logarithmic."""
_LABEL_WIDTH = 22
_LINES_MAX = 12
"""Maximum number of configurations in a figure; more would be indistinguishable."""
_SHORT = 8
"""Maximum number of points of a curve that are marked, as a single point makes no line."""


@dataclass
class Curve:
    """A part of a figure: a line, bars, points with intervals, or a band."""

    name: str
    kind: str
    """``line``, ``bars``, ``points`` or ``band``."""
    x: list[float | str]
    y: list[float]
    low: list[float | None] = field(default_factory=list)
    high: list[float | None] = field(default_factory=list)

    @property
    def is_short(self) -> bool:
        """True if each point of the curve is marked."""
        return self.kind in ("line", "band") and len(self.x) <= _SHORT


@dataclass
class Figure:
    """A figure with its title and explanation."""

    key: str
    title: str
    about: str
    x_title: str
    y_title: str
    curves: list[Curve]
    log_x: bool = False
    log_y: bool = False
    stacked: bool = False


def wrapped(label: float | str, between: str) -> float | str:
    """Wrap a label into several short lines; a parameter and its value stay together."""
    if not isinstance(label, str):
        return label
    return between.join(textwrap.wrap(label, _LABEL_WIDTH, break_long_words=False))


def figures(source: ReportSource) -> Iterator[Figure]:
    """Yield all figures for which the tables have data."""
    yield from _headline(source)
    yield from _published(source)
    yield from _phases(source)
    yield from _throughput_over_time(source)
    yield from _distributions(source)


def _headline(source: ReportSource) -> Iterator[Figure]:
    name = source.headline
    labels: list[float | str] = []
    curve = Curve("median over seeds", "points", labels, [])
    worst = Curve("worst seed", "points", [], [])
    incomplete_notes = []
    for configuration in source.configurations:
        observed = configuration.observed(name)
        median = observed.percentile(50)
        maximum = observed.percentile(100)
        label = configuration.label or source.suite
        if observed.incomplete or observed.bounds:
            incomplete_notes.append(f"{label}: {_incomplete(observed)}")
        if median.value is None:
            continue
        low, high = observed.interval(50) or (Reading(None), Reading(None))
        has_interval = low.value is not None and high.value is not None
        curve.x.append(configuration.label)
        curve.y.append(median.value)
        curve.low.append(low.value if has_interval else None)
        curve.high.append(high.value if has_interval else None)
        worst.x.append(configuration.label)
        worst.y.append(median.value if maximum.value is None else maximum.value)
    if curve.x:
        spread = max(worst.y) / max(min(curve.y), 1e-9)
        yield Figure(
            "headline",
            f"{name} by configuration",
            ". ".join(
                [f"{source.doc(name)}. Bars are 95 % intervals of the median", *incomplete_notes]
            )
            + ".",
            "",
            name,
            [curve, worst],
            log_y=min(curve.y) > 0 and spread > _LOGARITHMIC_RATIO,
        )


def _incomplete(observed: Observed) -> str:
    parts = [
        f"{len(observed.bounds)} had not ended and are lower bounds" if observed.bounds else "",
        f"{observed.failed} failed" if observed.failed else "",
        f"{observed.absent} without" if observed.absent else "",
    ]
    runs = observed.count + observed.absent
    return f"of {runs} runs " + ", ".join(part for part in parts if part)


def _published(source: ReportSource) -> Iterator[Figure]:
    pairs = source.published()
    if pairs:
        titles: list[float | str] = [pair.title for pair in pairs]
        yield Figure(
            "published",
            "ratios beside those that were published",
            "How much faster the second is than the first: of this batch, and as published.",
            "",
            "ratio",
            [
                Curve("this batch", "bars", titles, [pair.ratio for pair in pairs]),
                Curve("published", "bars", titles, [pair.published_ratio for pair in pairs]),
            ],
        )


def _phases(source: ReportSource) -> Iterator[Figure]:
    configurations = [c for c in source.configurations if c.column(PHASES[0])]
    if not configurations:
        return
    ended = sum(len(c.column(PHASES[0])) for c in configurations)
    text = "Means over seeds, worst partition of each run. The phases add up to the whole."
    if ended < len(source.rows):
        text += f" Of {ended} of {len(source.rows)} runs: the others had no outage that ended."
    labels: list[float | str] = [configuration.label for configuration in configurations]
    curves = []
    for phase in PHASES:
        means = [sum(c.column(phase)) / len(c.column(phase)) for c in configurations]
        curves.append(Curve(phase, "bars", labels, means))
    yield Figure("phases", "what an outage is made of", text, "", "ms", curves, stacked=True)


def _throughput_over_time(source: ReportSource) -> Iterator[Figure]:
    """Yield the acknowledged records over virtual time: the median of the runs and a band."""
    curves = []
    for configuration in source.configurations[:_LINES_MAX]:
        seconds = source.seconds(configuration.number)
        if not seconds:
            continue
        x: list[float | str] = [float(second) for second, _ in seconds]
        curves.append(
            Curve(
                configuration.label or source.suite,
                "band",
                x,
                [nearest_rank(counts, 50) for _, counts in seconds],
                [nearest_rank(counts, 5) for _, counts in seconds],
                [nearest_rank(counts, 95) for _, counts in seconds],
            )
        )
    if curves:
        yield Figure(
            "rate",
            "acknowledged records in each second",
            "Median over seeds, and the band from the 5th to the 95th percentile, of the runs that "
            f"reached the second; shown while half of them do.{_cut_short(source)}",
            "virtual time, s",
            "records",
            curves,
        )


def _cut_short(source: ReportSource) -> str:
    """Return a sentence about configurations that are not drawn, if there are too many."""
    count = len(source.configurations)
    if count <= _LINES_MAX:
        return ""
    return f" Drawn are the first {_LINES_MAX} of {count} configurations."


def _endless(source: ReportSource, metric: str) -> str:
    """Return a sentence about the open values, which are beyond the ends of the curves."""
    counts = [
        (value, count)
        for configuration in source.configurations
        for value, count in source.histogram(configuration.number, metric)
    ]
    open_count = sum(count for value, count in counts if math.isinf(value))
    if not open_count:
        return ""
    total = sum(count for _, count in counts)
    return f" Of all {total:,} values {open_count:,} had not ended, beyond the ends of the curves."


def _distributions(source: ReportSource) -> Iterator[Figure]:
    """Yield a figure for each metric, with a curve per configuration and an axis that stretches the
    tail: 0.9, 0.99, 0.999, ..."""
    for metric in source.metrics():
        curves = []
        for configuration in source.configurations[:_LINES_MAX]:
            rows = source.histogram(configuration.number, metric)
            total = sum(count for _, count in rows)
            if not total:
                continue
            x: list[float | str] = []
            y: list[float] = []
            cumulative = 0
            for value, count in rows:
                if math.isinf(value):
                    continue  # open values are beyond the end of the curve
                cumulative += count
                x.append(max(value, 1e-3))
                # The last value is placed at half the share of one record.
                y.append(1 / max(1 - cumulative / total, 0.5 / total))
            if x:
                curves.append(Curve(configuration.label or source.suite, "line", x, y))
        if curves:
            yield Figure(
                f"distribution-{metric}",
                metric,
                f"{source.doc(metric)}. All runs of a configuration together; a value is at most "
                "1 % off. On the axis 10 is the 90th percentile, 100 the 99th, 1000 the 99.9th."
                f"{_endless(source, metric)}{_cut_short(source)}",
                "ms, logarithmic",
                "1 / share of values above",
                curves,
                log_x=True,
                log_y=True,
            )
