"""The rate of bytes per second, over windows that expire one by one."""

from __future__ import annotations

import pytest
from fakekafka.replication.byte_rate import ByteRate


@pytest.fixture
def rate() -> ByteRate:
    """A rate with eleven windows of a second, as in Kafka's replication quotas."""
    return ByteRate(11, 1000)


def test_without_bytes_the_rate_is_zero(rate: ByteRate) -> None:
    assert rate.per_second(5_000) == 0.0


def test_a_rate_is_over_one_window_at_least(rate: ByteRate) -> None:
    """A burst at this moment counts over one window at least, not as an infinite rate."""
    rate.record(500, 10_000)
    assert rate.per_second(10_000) == 500.0
    assert rate.per_second(10_999) == 500.0
    assert rate.per_second(12_000) == 250.0


def test_bytes_within_a_window_add_up(rate: ByteRate) -> None:
    rate.record(100, 10_000)
    rate.record(100, 10_999)
    rate.record(100, 11_000)
    assert rate.per_second(11_500) == 200.0
    assert rate.per_second(20_999) == pytest.approx(300 * 1000 / 10_999)


def test_a_window_is_forgotten_after_the_whole_sample_time(rate: ByteRate) -> None:
    rate.record(100, 10_000)
    rate.record(100, 12_500)
    assert rate.per_second(20_999) == pytest.approx(200 * 1000 / 10_999)
    assert rate.per_second(21_000) == pytest.approx(100 * 1000 / 8_500)
    assert rate.per_second(23_500) == 0.0


def test_filled_windows_count_like_recorded_ones(rate: ByteRate) -> None:
    rate.fill(100, 8_000, 10_000)
    assert rate.per_second(10_000) == pytest.approx(300 * 1000 / 2_000)
    assert rate.per_second(18_999) == pytest.approx(300 * 1000 / 10_999)
    assert rate.per_second(19_000) == pytest.approx(200 * 1000 / 10_000)


def test_no_more_windows_are_filled_than_there_are(rate: ByteRate) -> None:
    rate.fill(100, 0, 100_000)
    assert rate.per_second(100_000) == pytest.approx(11 * 100 * 1000 / 10_000)


def test_filling_does_not_overwrite_recorded_windows(rate: ByteRate) -> None:
    rate.record(7, 10_000)
    rate.fill(100, 0, 10_500)
    assert rate.per_second(10_500) == 7.0
    rate.clear()
    assert rate.per_second(10_500) == 0.0
    rate.fill(100, 10_000, 10_500)
    assert rate.per_second(10_500) == 100.0
