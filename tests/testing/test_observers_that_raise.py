"""A user's function that raises is reported by name and removed; the cluster continues."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from fakekafka import Cluster, Simulation


class BrokenError(Exception):
    """Raised by the user's function."""


def broken(_delivery: Any) -> bool:
    raise BrokenError("at the first message")


@pytest.mark.parametrize("runtime", ["live", "threaded"])
@pytest.mark.parametrize("way", ["observe", "hold"])
def test_a_cluster_continues_after_an_observers_error_and_keeps_it(
    runtime: Any, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(1, runtime=runtime, topics={"orders": 1}) as cluster:
        caplog.set_level(logging.CRITICAL)  # hides the traceback
        cluster.produce("orders", b"before")
        end = cluster.observe(broken) if way == "observe" else None
        if way == "hold":
            cluster.network.hold(broken)
        cluster.produce("orders", b"after")
        assert [record.value for record in cluster.consume("orders")] == [b"before", b"after"]
        kind = "observer" if way == "observe" else "filter of hold"
        assert [(name, type(error)) for name, error in cluster.failures] == [
            (f"{kind} broken", BrokenError)
        ]
        if end is not None:
            end()  # ending an observer that was already removed is not an error
        cluster.network.release()


@pytest.mark.parametrize("way", ["observe", "hold"])
def test_a_simulation_raises_an_observers_error_and_loses_no_message(way: str) -> None:
    """A simulation raises an observer's error from the running call, at the time of the event."""
    with Simulation(1, topics={"orders": 1}, trace=False) as simulation:
        before_ms = simulation.now_ms
        if way == "observe":
            simulation.observe(broken)
        else:
            simulation.network.hold(broken)
        with pytest.raises(BrokenError, match="at the first message"):
            simulation.run_for(60_000)
        assert simulation.now_ms < before_ms + 10_000
        simulation.produce("orders", [b"after"])
        assert [record.value for record in simulation.consume("orders")] == [b"after"]
        assert simulation.failures == []


def test_step_raises_an_observers_error_too() -> None:
    with Simulation(1, topics={"orders": 1}, trace=False) as simulation:
        simulation.observe(broken)
        with pytest.raises(BrokenError):
            any(not simulation.step() for _ in range(10_000))
