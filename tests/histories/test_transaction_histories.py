"""Random histories of an application that consumes, transforms and produces exactly once."""

from __future__ import annotations

import pytest
from fakekafka.tests.support.transaction_histories import History, run

SEEDS = range(1, 11)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ["1.1", "2.8", "3.9"])
def test_the_output_is_the_input_exactly_once(version: str, seed: int) -> None:
    """DP-133: brokers die and zombies come; committed readers find each record once, in order."""
    outcome = run(version, seed)
    assert outcome.problems == (), outcome.command
    assert outcome.records > 0
    assert outcome.committed > 0


@pytest.mark.slow
def test_a_seed_decides_all() -> None:
    """The same seed gives the same history, and another one another."""
    assert run("3.9", 2) == run("3.9", 2)
    assert run("3.9", 2).told != run("3.9", 3).told


def test_the_runner_sees_what_is_lost_and_what_comes_twice() -> None:
    """An output that lacks a record or has one twice is no copy."""
    history = History("3.9", 1)
    history.transformers.clear()
    history.simulation.consumer(history.inputs)
    producer = history.simulation.producer()
    for value in (b"0", b"1"):
        producer.produce(history.inputs[0], value)
        history.sent += 1
    problems = history.heal(1000)
    assert any("0 of 1 records" in problem for problem in problems), problems
    for where in history.outputs:
        records = [r for r in history.found[history.inputs[0]] if r.offset == where.partition]
        history.found[where] = records * 2
    assert any("2 of 1 records" in problem for problem in history.problems())
    history.simulation.stop()
