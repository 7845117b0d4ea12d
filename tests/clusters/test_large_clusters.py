"""The cost of a topic does not depend on the number of topics."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from fakekafka import Simulation


def lines_run(work: Callable[[], object]) -> int:
    """Return how many lines of Python a function runs, counting each round of a loop."""
    count = 0

    def trace_lines(_frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace_lines

    before = sys.gettrace()
    sys.settrace(trace_lines)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def quiet_cluster() -> Simulation:
    return Simulation(5, trace=False, config={"auto.leader.rebalance.enable": "false"})


def names(first: int, count: int) -> list[str]:
    return [f"t{number}" for number in range(first, first + count)]


def test_a_topic_costs_the_same_among_few_and_among_many() -> None:
    """Every creation lists all topics, as in Kafka, but no line of the emulation runs once per
    known topic.
    """
    with quiet_cluster() as simulation:
        simulation.create_topics(names(0, 50), 1, 1)
        among_few = lines_run(lambda: simulation.create_topics(names(50, 20), 1, 1))
        simulation.create_topics(names(70, 430), 1, 1)
        among_many = lines_run(lambda: simulation.create_topics(names(500, 20), 1, 1))
    assert among_many < 1.02 * among_few


@pytest.mark.slow
def test_a_replica_takes_less_than_three_kilobytes() -> None:
    """This includes ZooKeeper, controller, logs and the caches of five brokers, for topics of one
    partition.
    """
    with quiet_cluster() as simulation:
        simulation.create_topics(names(0, 50), 1, 2)
        gc.collect()
        tracemalloc.start()
        simulation.create_topics(names(50, 300), 1, 2)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    assert taken / 600 < 3072
