"""Bounds on the timeouts of consumer-protocol groups, checked when a broker starts."""

from __future__ import annotations

import pytest
from fakekafka import Simulation, UsageError
from fakekafka.testing.defaults import cluster_config

SESSION, HEARTBEAT = "session.timeout.ms", "heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("time", "bound", "value"),
    [
        (SESSION, "", 44_999),
        (SESSION, "", 60_001),
        (SESSION, "min.", 60_001),
        (SESSION, "max.", 44_999),
        (HEARTBEAT, "", 4_999),
        (HEARTBEAT, "", 15_001),
        (HEARTBEAT, "min.", 15_001),
        (HEARTBEAT, "max.", 4_999),
    ],
)
def test_a_time_beyond_its_bounds_is_refused(time: str, bound: str, value: int) -> None:
    """A timeout outside its bounds is refused, as in ``GroupCoordinatorConfig`` of Kafka 3.9."""
    with pytest.raises(UsageError, match=f"{bound}{time} .*it must not be more"):
        cluster_config({f"group.consumer.{bound}{time}": value}, 3, "3.9", test_friendly=False)


def test_bounds_can_be_moved() -> None:
    config = {
        "group.consumer.min.session.timeout.ms": "2000",
        "group.consumer.session.timeout.ms": "2000",
        "group.consumer.max.session.timeout.ms": "2000",
    }
    assert config.items() <= cluster_config(config, 3, "3.9", test_friendly=False).items()


def test_a_cluster_for_tests_takes_short_times() -> None:
    config = {"group.consumer.session.timeout.ms": 100, "group.consumer.heartbeat.interval.ms": 10}
    assert config.items() <= cluster_config(config, 3, "3.9", test_friendly=True).items()


def test_a_simulation_has_the_bounds_of_kafka() -> None:
    with (
        pytest.raises(UsageError, match=r"min\.session\.timeout\.ms is 45000"),
        Simulation(1, config={"group.consumer.session.timeout.ms": 1000}),
    ):
        pass


def test_a_time_that_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="Not a number"):
        cluster_config({"group.consumer.session.timeout.ms": "x"}, 3, "3.9", test_friendly=False)
