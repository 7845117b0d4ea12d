"""Random histories of an application that consumes, transforms and produces exactly once."""

from __future__ import annotations

import pytest
from fakekafka.exploration.history import History, run
from fakekafka.exploration.invariants.clients import TransactionsAreAtomic
from fakekafka.exploration.targets.exactly_once import ExactlyOnce

SEEDS = range(1, 11)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ["1.1", "2.8", "3.9"])
def test_the_output_is_the_input_exactly_once(version: str, seed: int) -> None:
    """DP-133: committed readers find each record once, in order, despite deaths and zombies."""
    outcome = run(History(ExactlyOnce, version, seed))
    assert outcome.unexplained == (), outcome.history.command
    figures = dict(outcome.figures)
    assert figures["records"] > 0
    assert figures["committed"] > 0


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history() -> None:
    """A seed determines the history, and another seed gives another one."""
    first = run(History(ExactlyOnce, "3.9", 2))
    assert first == run(History(ExactlyOnce, "3.9", 2))
    assert first.step_log != run(History(ExactlyOnce, "3.9", 3)).step_log


def test_missing_and_duplicate_output_records_are_reported() -> None:
    """A missing and a duplicate output record are reported."""
    target = ExactlyOnce("3.9", 1)
    world = target.world
    world.transformers.pop().halt()
    world.feed(1)
    target.heal(1000)
    assert any("0 of 1 records" in problem for problem in world.differences())
    for where in world.outputs:
        records = [
            r for r in world.committed_records[world.inputs[0]] if r.offset == where.partition
        ]
        world.committed_records[where] = records * 2
    TransactionsAreAtomic(target.scene).end()
    violations = target.violation_log.violations()
    assert {violation.promise for violation in violations} == {"TransactionsAreAtomic"}
    assert any("2 of 1 records" in violation.text for violation in violations)
    world.simulation.stop()
