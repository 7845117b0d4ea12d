"""The steps of histories as lines that can be parsed, drawn, removed and repeated."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from fakekafka import UsageError
from fakekafka.exploration.cluster_steps import (
    Cut,
    ElectPreferred,
    FailLogDir,
    Kill,
    Latency,
    Lose,
    Reassign,
    Resign,
    Start,
    StartZookeeper,
    Thaw,
    Wait,
)
from fakekafka.exploration.generator import Draws, draw, draw_swarm, shrink
from fakekafka.exploration.history import History, Outcome, read_history
from fakekafka.exploration.invariants.invariant import Violation
from fakekafka.exploration.mutation import mutate
from fakekafka.exploration.shrinking import shorten
from fakekafka.exploration.step import Step, parse_step, read, written
from fakekafka.exploration.targets.cluster import LoadedCluster
from fakekafka.exploration.worlds.copying import StartApplication
from fakekafka.exploration.worlds.group_world import Join, Records
from fakekafka.protocol.values import TopicPartition

MOVES = ((TopicPartition("a-b", 0), (1, 2)), (TopicPartition("c", 12), (3,)))
LINES: dict[str, Step[Any]] = {
    "kill 2": Kill(2),
    "start 10": Start(10),
    "start 10 yes": Start(10, True),
    "fail_log_dir 1 0": FailLogDir(1, 0),
    "start_zookeeper 3": StartZookeeper(3),
    "cut broker-1 zk-1,zk-2 no": Cut(("broker-1",), ("zk-1", "zk-2"), False),
    "lose 0.05 broker-1 broker-2": Lose(0.05, "broker-1", "broker-2"),
    "latency 200 zk-1 broker-2": Latency(200.0, "zk-1", "broker-2"),
    "reassign a-b-0:1,2/c-12:3": Reassign(MOVES),
    "elect_preferred": ElectPreferred(),
    "join member-2 500": Join("member-2", 500),
    "join member-2 500 s-1": Join("member-2", 500, "s-1"),
    "records 0,5,0": Records((0, 5, 0)),
    "records -": Records(()),
    "start_application 5000 120000 1000": StartApplication(5000, 120000, 1000),
}


@pytest.mark.parametrize("line", LINES)
def test_a_step_is_a_line(line: str) -> None:
    """A step is written as one line, which parses to an equal step."""
    assert parse_step(line) == LINES[line]
    assert str(LINES[line]) == line


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("explode 2", "no step is called 'explode'"),
        ("kill", "kill takes broker"),
        ("kill 1 2", "kill takes broker"),
        ("kill two", "invalid literal"),
        ("cut a b maybe", "invalid literal"),
    ],
)
def test_a_line_that_is_no_step_is_refused(line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_step(line)


def test_a_file_of_steps_survives_writing_and_reading() -> None:
    steps: list[Step[Any]] = list(LINES.values())
    assert read(written("What it is.", steps)) == ("What it is.", steps)


def test_a_history_names_its_target_its_release_and_its_seed(tmp_path: Path) -> None:
    """A history's file and its command name target, release and seed."""
    history = History(LoadedCluster, "3.9", 7, (Kill(5), Wait(100)))
    path = tmp_path / "kept.txt"
    path.write_text(history.written("What it shows."), encoding="utf-8")
    assert read_history(path) == ("What it shows.", history)
    assert history.command.endswith("--kafka-version 3.9 --seed 7 --steps 'kill 5; wait 100'")
    assert History(LoadedCluster, "3.9", 7).command.endswith("--seed 7")
    path.write_text("# What it shows.\n# nobody 3.9 7\nkill 5\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no target is called 'nobody'"):
        read_history(path)


class Enlarge(Step[list[int]]):
    """A step for a world that is a list."""

    number: int

    def do(self, world: list[int]) -> bool:
        world.append(self.number)
        return True


def _add(world: list[int], rng: random.Random, more: int = 0) -> Any:
    yield Enlarge(len(world))
    yield Enlarge(len(world) * 10 + more)
    for _ in range(more):
        rng.random()


def test_each_step_is_drawn_after_the_previous_one_was_applied() -> None:
    """Each step is drawn after the previous one was applied; a pause follows each choice."""
    world: list[int] = []
    draws = Draws({"enlarge": (1, _add)}, (2, 2), (5,), frozenset({"enlarge"}))
    taken = []
    for step in draw(draws, world, random.Random(1)):
        taken.append(step)
        if isinstance(step, Enlarge):
            step.do(world)
    assert world == [0, 10, 2, 30]
    assert taken == [Enlarge(0), Enlarge(10), Wait(5), Enlarge(2), Enlarge(30), Wait(5)]


def test_a_choice_that_draws_more_random_numbers_does_not_change_the_others() -> None:
    """Each choice has a random generator of its own."""

    def drawn(more: int) -> list[Step[Any]]:
        def noisy(world: list[int], rng: random.Random) -> Any:
            for _ in range(more):
                rng.random()
            yield Enlarge(0)

        def plain(world: list[int], rng: random.Random) -> Any:
            yield Enlarge(rng.randrange(1000))

        choices = {"noisy": (1, noisy), "plain": (1, plain)}
        return list(draw(Draws(choices, (20, 20)), [], random.Random(3)))

    assert drawn(0) == drawn(5)


def test_shrinking_removes_unneeded_steps() -> None:
    """Shrinking keeps only the steps without which the violation does not occur."""
    steps = [Kill(number) for number in range(7)]
    found = shrink(steps, lambda tried: Kill(1) in tried and Kill(4) in tried)
    assert found == [Kill(1), Kill(4)]


def _breaks(promise: str) -> tuple[Violation, ...]:
    return (Violation(promise, "main-1-0: it broke", 5.0),)


def test_another_kind_of_violation_is_no_shorter_history(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shorter history counts only if its violation has the same signature."""

    def run(history: History, _trace: str | None = None) -> Outcome:
        steps = history.steps or ()
        lost = Kill(1) in steps and Kill(4) in steps
        violations = _breaks("Lost" if lost else "Another")
        return Outcome(history, steps, violations, (), 0.0, ())

    monkeypatch.setattr("fakekafka.exploration.history.run", run)
    outcome = run(History(LoadedCluster, "3.9", 1, tuple(map(Kill, range(7)))))
    found = shorten(outcome, outcome.violations[0].signature)
    assert found.outcome.history.steps == (Kill(1), Kill(4))
    assert shorten(outcome, outcome.violations[0].signature, runs_max=3).runs == 3
    assert shorten(outcome, outcome.violations[0].signature, wall_s_max=0).outcome == outcome


def test_waits_that_follow_each_other_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Successive waits are merged, so that removing a step between them keeps the time."""

    def run(history: History, _trace: str | None = None) -> Outcome:
        steps = history.steps or ()
        waited_ms = sum(step.ms for step in steps if isinstance(step, Wait))
        violations = _breaks("Late") if waited_ms >= 30 else ()
        return Outcome(history, steps, violations, (), 0.0, ())

    monkeypatch.setattr("fakekafka.exploration.history.run", run)
    outcome = run(History(LoadedCluster, "3.9", 1, (Wait(20), Kill(1), Wait(10))))
    assert shorten(outcome, outcome.violations[0].signature).outcome.history.steps == (Wait(30),)


def test_a_step_that_does_not_apply_is_skipped_and_reported() -> None:
    """A step that does not apply is skipped and returns False, as when its cause was removed."""
    world = LoadedCluster("3.9", 1).world
    for step in (Start(1), Thaw(1), parse_step("heal"), StartZookeeper(1)):
        assert not step.do(world), step
    assert Kill(1).do(world)
    assert not Kill(1).do(world)
    assert not Resign().do(world), "a broker is down"
    assert not parse_step("power_off 2").do(world), "a broker is down"
    world.simulation.stop()


def test_a_changed_history_has_steps_of_its_parents() -> None:
    """A mutated history has one to four changes and steps of its parents, the same for a seed."""
    steps, other = [Kill(1), Wait(5), Start(1)], [Kill(2), Thaw(2), Resign()]
    made = {mutate(steps, other, random.Random(seed)) for seed in range(200)}
    assert len(made) > 100
    assert {step for one in made for step in one if not isinstance(step, Wait)} == {
        Kill(1), Start(1), Kill(2), Thaw(2), Resign()
    }  # fmt: skip
    assert mutate(steps, other, random.Random(3)) == mutate(steps, other, random.Random(3))


def test_a_swarm_uses_only_some_kinds_of_fault() -> None:
    """A swarm draws some kinds of fault per history, and always those that undo faults."""
    draws = Draws(dict.fromkeys("abcdef", (1, _add)), (1, 1), always=frozenset("a"))
    drawn = [draw_swarm(draws, random.Random(seed)).choices for seed in range(50)]
    assert all("a" in choices for choices in drawn)
    assert len({tuple(choices) for choices in drawn}) > 15
    assert {weight for choices in drawn for weight, _ in choices.values()} == {1, 3, 9}
