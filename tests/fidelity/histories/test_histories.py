"""Random histories: how they are generated and judged, and how differences are shrunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fakekafka.exploration.generator import shrink
from fakekafka.exploration.step import parse_step, read, written
from fakekafka.replication.partition.partition import Partition
from fakekafka.testing.cluster import Cluster
from fakekafka.tests.fidelity.histories import generator, judging, keeping, playing
from fakekafka.tests.fidelity.histories.verbs import History
from fakekafka.tests.fidelity.histories.world import World, possible
from fakekafka.tests.fidelity.recording import Steps
from fakekafka.tests.fidelity.sides.session_proxy import SessionProxy
from fakekafka.tests.fidelity.sides.simulated import SimulatedSide
from fakekafka.tests.fidelity.stage.stage import Stage
from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState


def history(text: str) -> History:
    return [parse_step(line) for line in text.strip().splitlines()]


def test_the_same_seed_gives_the_same_history() -> None:
    """A seed gives the same forty steps each time, and another seed gives others."""
    assert generator.history(7) == generator.history(7)
    assert len(generator.history(7)) == generator.STEPS
    assert generator.history(7) != generator.history(8)


@pytest.mark.parametrize("seed", range(40))
def test_generated_steps_are_possible(seed: int) -> None:
    """No dead broker is killed, and no two brokers race to become the controller."""
    made = generator.history(seed)
    assert possible(made) == made


def test_random_histories_use_all_verbs() -> None:
    """Forty histories contain every verb."""
    seen = {step.verb for seed in range(40) for step in generator.history(seed)}
    assert seen == {*generator.CHOICES, "coordinator", "transaction_log"}


def test_a_history_survives_writing_and_reading() -> None:
    made = generator.history(3)
    assert read(written("What it is.", made)) == ("What it is.", made)


def test_a_controller_that_has_two_rivals_does_not_stop() -> None:
    """Its session would end at an uncontrolled time, and the next controller would be random."""
    world = World()
    assert not world.allows(parse_step("stop 3"))
    assert world.allows(parse_step("stop 1"))
    world.take(parse_step("kill 1"))
    assert world.allows(parse_step("stop 3"))
    world.take(parse_step("stop 3"))
    assert (world.controller, world.living, world.dead) == (2, {2}, {1, 3})


def test_steps_that_became_impossible_are_left_out() -> None:
    """A start is left out if the broker was not killed before."""
    assert possible(history("create a 1\nstart 2\nkill 2\nkill 2\nstart 2")) == history(
        "create a 1\nkill 2\nstart 2"
    )


def test_shrinking_keeps_only_steps_that_show_the_difference() -> None:
    """The remaining steps show the difference, and each of them is needed."""

    def differs(tried: History) -> bool:
        words = [step.verb for step in tried]
        return "freeze" in words and "move" in words[words.index("freeze") :]

    made = history("create a 1\nread a 0\nfreeze 2\nread a 0\nmoves\nmove a 0 3\nread a 0\nthaw 2")
    assert shrink(made, differs, possible) == history("freeze 2\nmove a 0 3")


def test_a_simulation_does_not_differ_from_itself() -> None:
    """A history is judged with another simulation in Kafka's place."""
    side = SimulatedSide("3.9", judging.SHAPE)
    try:
        verdict = judging.judge(side, generator.history(5))
    finally:
        side.close()
    assert verdict == judging.Verdict(-1, [], [])


@pytest.mark.slow
def test_a_planted_fault_is_found_and_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the judged side followers never join the ISR of a history's topics."""
    simulated = judging.simulated

    def without_fault(kafka_version: str, tried: History) -> Steps:
        with monkeypatch.context() as mended:
            mended.setattr(Partition, "_maybe_expand_isr", expand)
            return simulated(kafka_version, tried)

    expand = Partition._maybe_expand_isr
    monkeypatch.setattr(judging, "simulated", without_fault)

    def only_while_prepared(partition: Partition, *arguments: Any) -> None:
        if partition.topic_partition.topic not in generator.TOPICS:
            expand(partition, *arguments)

    monkeypatch.setattr(Partition, "_maybe_expand_isr", only_while_prepared)

    def differs(tried: History) -> bool:
        side = SimulatedSide("3.9", judging.SHAPE)
        try:
            return judging.judge(side, tried).differs
        finally:
            side.close()

    made = history(
        "create b 1\nread b 0\nproduce b 0 -1\ncreate a 1,2\nkill 2\nread b 0\nstart 2\nmoves"
    )
    assert shrink(made, differs, possible) == history("create a 1,2\nkill 2\nstart 2")


def test_kept_histories_have_a_describing_sentence() -> None:
    """Each kept history has a sentence, and verbs that the generator uses."""
    found = list(keeping.scenarios())
    assert len(found) >= 14
    assert all(scenario.about.endswith(".") for scenario in found)
    for path in keeping.FOLDER.glob("*.txt"):
        _, made = read(path.read_text(encoding="utf-8"))
        assert {step.verb for step in made} <= {
            *generator.CHOICES,
            "coordinator",
            "transaction_log",
        }, path.name


def test_the_next_controller_is_the_lowest_broker_that_is_not_frozen() -> None:
    """The next controller is the lowest broker that runs, as the others are frozen."""
    side = SimulatedSide("3.9", judging.SHAPE)
    try:
        stage = Stage(side)
        playing.prepare(stage)
        assert stage.observer.controller() == 3
        playing.play(stage, history("resign\nkill 1"))
        assert stage.observer.controller() == 2
    finally:
        side.close()


@pytest.fixture
def zookeeper_port() -> Iterator[int]:
    with Cluster(1) as cluster:
        yield int(cluster.zookeeper_connect.rpartition(":")[2])


def test_a_session_behind_a_proxy_is_ended_at_once(zookeeper_port: int) -> None:
    """Its ephemeral znodes are gone, and its owner learns that it has expired."""
    proxy = SessionProxy(zookeeper_port)
    states: list[str] = []
    owner = KazooClient(hosts=f"127.0.0.1:{proxy.port}", timeout=60)
    owner.add_listener(states.append)
    other = KazooClient(hosts=f"127.0.0.1:{zookeeper_port}", timeout=60)
    try:
        owner.start()
        other.start()
        owner.create("/mine", b"", ephemeral=True)
        assert other.exists("/mine")
        proxy.end_session()
        assert not other.exists("/mine")
        gone = owner.handler.event_object()
        owner.add_listener(lambda state: gone.set() if state == KazooState.LOST else None)
        assert KazooState.LOST in states or gone.wait(10)
    finally:
        for client in (owner, other):
            client.stop()
            client.close()
        proxy.close()
