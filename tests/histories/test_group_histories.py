"""Random histories of groups: one owner per generation, and no committed offset is lost."""

from __future__ import annotations

import pytest
from fakekafka.exploration.cluster_steps import Kill
from fakekafka.exploration.history import History, run
from fakekafka.exploration.targets.groups import ClassicGroups, ConsumerGroups
from fakekafka.exploration.worlds.group_world import TOPIC, Die, Join, Leave
from fakekafka.protocol.values import TopicPartition


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_history_of_a_group_breaks_no_promise(seed: int) -> None:
    """DP-135: groups end whole though members come and go and brokers die in rebalances."""
    version = ("2.8", "3.9", "1.1", "2.8", "3.9", "0.10")[seed % 6]
    outcome = run(History(ClassicGroups, version, seed))
    assert outcome.unexplained == (), outcome.history.command
    assert dict(outcome.figures)["committed"] > 0


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_history_of_a_group_of_the_consumer_protocol_breaks_no_promise(seed: int) -> None:
    """KIP-848: no partition is ever read by two members, whichever broker dies."""
    outcome = run(History(ConsumerGroups, "3.9", seed))
    assert outcome.unexplained == (), outcome.history.command


def test_a_second_owner_and_a_lost_offset_are_reported() -> None:
    """A second owner of a partition and a lost committed offset are reported."""
    target = ClassicGroups("3.9", 1)
    partition = TopicPartition(TOPIC, 0)
    target.world.acknowledged[partition] = 1000
    target.world.owners[1, partition] = "another"
    told = [f"{violation.promise}: {violation.text}" for violation in target.end()]
    two = f"{partition} has two owners in generation 1: another and member-1"
    assert f"OneOwner: {two}" in told
    assert f"CommitsStay: {partition}: 1000 was committed, but the coordinator has 3" in told


def test_the_last_member_stays_and_two_brokers_live() -> None:
    """The last member does not leave, and of three brokers two stay alive."""
    world = ClassicGroups("3.9", 1).world
    assert not Leave("member-1").do(world)
    assert [Kill(broker).do(world) for broker in (1, 2)] == [True, False]


def test_a_member_that_comes_at_the_end_has_a_name_of_its_own() -> None:
    """New members get unique names even if a removed step leaves a gap in the numbers."""
    steps = (Join("member-3", 500), Leave("member-1"), Die("member-3"))
    outcome = run(History(ClassicGroups, "3.9", 1, steps))
    assert outcome.violations == ()
