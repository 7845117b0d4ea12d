"""Histograms with logarithmic buckets: at most 1 % error, merged by addition."""

from __future__ import annotations

import math

import pytest
from fakekafka.spark_bench.measuring.histogram import (
    ZERO_BUCKET,
    BucketHistogram,
    bucket_of,
    value_of,
)
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.lists(st.floats(min_value=1e-6, max_value=1e9), min_size=1, max_size=60)
EDGE = 1e-9
"""Tolerance for rounding where a value is on the border of two buckets."""


def filled(values: list[float]) -> BucketHistogram:
    histogram = BucketHistogram()
    for value in values:
        histogram.add(value)
    return histogram


def exact_percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that at least ``percent`` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[max(1, math.ceil(percent / 100 * len(ordered))) - 1]


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_the_value_of_a_bucket_errs_by_one_per_cent_at_most(value: float) -> None:
    assert abs(value_of(bucket_of(value)) - value) <= (0.01 + EDGE) * value


def test_the_error_is_not_far_less_than_one_per_cent_either() -> None:
    """Buckets are as wide as 1 % of error allows; 1.0 is the upper border of bucket 0."""
    assert bucket_of(1.0) == 0
    assert bucket_of(1.0001) == 1
    assert abs(value_of(1) - 1.0001) > 0.0098


@given(VALUES, st.sampled_from([0, 1, 50, 90, 99, 99.9, 100]))
def test_percentiles_are_the_exact_ones_within_one_per_cent(
    values: list[float], percent: float
) -> None:
    exact = exact_percentile(values, percent)
    assert filled(values).percentile(percent) == pytest.approx(exact, rel=0.01 + EDGE)


@given(VALUES, VALUES)
def test_merging_counts_as_if_all_had_been_added_to_one(
    one: list[float], other: list[float]
) -> None:
    merged = filled(one)
    merged.merge(filled(other).rows())
    assert merged.rows() == filled(one + other).rows()
    assert merged.total == len(one) + len(other)


@given(VALUES, VALUES)
def test_the_order_of_merging_does_not_matter(one: list[float], other: list[float]) -> None:
    left, right = filled(one), filled(other)
    left.merge(filled(other).rows())
    right.merge(filled(one).rows())
    assert left.rows() == right.rows()


def test_zero_and_negative_values_are_counted_as_zero() -> None:
    histogram = filled([0.0, -3.0, 5.0])
    assert histogram.counts[ZERO_BUCKET] == 2
    assert histogram.percentile(50) == 0.0
    assert histogram.percentile(100) == pytest.approx(5.0, rel=0.01)


def test_an_empty_histogram_has_no_percentile() -> None:
    assert math.isnan(BucketHistogram().percentile(50))
    assert BucketHistogram().total == 0
    assert BucketHistogram().rows() == []


def test_a_value_may_be_added_many_times_at_once() -> None:
    histogram = BucketHistogram()
    histogram.add(7.0, 1000)
    histogram.add(700.0)
    assert histogram.total == 1001
    assert histogram.percentile(99) == pytest.approx(7.0, rel=0.01)
    assert histogram.percentile(100) == pytest.approx(700.0, rel=0.01)


def test_a_histogram_owns_its_counts() -> None:
    counts = {1: 2}
    histogram = BucketHistogram(counts)
    histogram.add(1.0)
    assert counts == {1: 2}
