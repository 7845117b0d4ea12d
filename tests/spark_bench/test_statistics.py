"""Confidence intervals over runs, which hold as often as stated for any distribution."""

from __future__ import annotations

import math
import random

import pytest
from fakekafka.spark_bench.reports.statistics import (
    Observed,
    Reading,
    Span,
    nearest_rank,
    paired_difference,
)


def known(values: list[float] | list[int]) -> Observed:
    return Observed(sorted(float(value) for value in values))


def pairs(before: list[float], after: list[float]) -> list[tuple[Span, Span]]:
    """Return pairs of values that are all known."""
    return [((old, old), (new, new)) for old, new in zip(before, after, strict=True)]


@pytest.mark.parametrize("percent", [50, 90])
@pytest.mark.parametrize("count", [30, 200])
def test_an_interval_has_the_true_percentile_as_often_as_it_says(percent: int, count: int) -> None:
    """An interval contains the true percentile as often as stated, for long-tailed samples; 95 %
    may be a little more, because ranks are whole.
    """
    rng = random.Random(count + percent)
    true = math.exp({50: 0.0, 90: 1.2815515655}[percent])
    hits = total = 0
    for _ in range(600):
        found = known([rng.lognormvariate(0, 1) for _ in range(count)]).interval(percent)
        if found is not None:
            total += 1
            low, high = (end.value for end in found)
            assert low is not None
            assert high is not None
            hits += low <= true <= high
    if total:
        assert hits / total > 0.93
    assert total in (0, 600)


def test_the_ranks_of_an_interval_are_those_of_tables() -> None:
    """The ranks of an interval equal published tables, for 10 values at 95 % the 2nd and 9th."""
    ten = known(list(range(1, 11)))
    assert ten.percentile(50) == Reading(5)
    assert ten.interval(50) == (Reading(2), Reading(9))
    assert known(list(range(1, 7))).interval(50) == (Reading(1), Reading(6))
    assert known(list(range(1, 6))).interval(50) is None  # five are too few


def test_nearest_ranks() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [nearest_rank(values, percent) for percent in (0, 50, 90, 99, 100)] == [1, 50, 90, 99,
                                                                                   100]  # fmt: skip
    assert known([]).count == 0
    assert known([]).percentile(50) == Reading(None)


def test_a_paired_difference_is_sure_where_single_runs_vary_more_than_it() -> None:
    """With common seeds a paired difference is significant below the variation of single runs."""
    rng = random.Random(1)
    before = [rng.uniform(0, 1000) for _ in range(40)]
    after = [value + 1 + rng.uniform(-0.5, 0.5) for value in before]
    found = paired_difference(pairs(before, after))
    assert found.excludes_zero
    assert found.value == pytest.approx(1, abs=0.3)
    assert not paired_difference(pairs(before, before)).excludes_zero
    shuffled = before[20:] + before[:20]
    assert not paired_difference(pairs(before, shuffled)).excludes_zero
