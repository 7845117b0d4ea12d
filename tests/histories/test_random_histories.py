"""Random histories end whole, and the runner that makes them sees what is not whole."""

from __future__ import annotations

import pytest
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS, KAFKA_VERSIONS
from fakekafka.tests.support import random_histories
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.history_end import heal, record_problems, verdict, what_is_lacking
from fakekafka.tests.support.history_steps import Step, draw_steps, parse_step
from fakekafka.tests.support.history_world import build
from fakekafka.tests.support.present import present
from fakekafka.tests.support.random_histories import History, Outcome, draw_history, play, run

SEEDS = range(1, 5)
DERIVED_VERSIONS = [version for version in KAFKA_VERSIONS if version not in JUDGED_VERSIONS]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_history_ends_whole(version: str, seed: int) -> None:
    """After healing nothing acknowledged is lost, and every replica is in sync."""
    outcome = run(draw_history(version, seed))
    assert outcome.problems == (), outcome.history.command
    assert outcome.acknowledged > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", DERIVED_VERSIONS)
def test_histories_of_releases_that_no_broker_judges_end_whole(version: str) -> None:
    """Flags that belong together switch together: what is half of a change loses records or hangs.
    ``FAKEKAFKA_EXAMPLES`` multiplies the histories."""
    for seed in range(1000, 1000 + examples(3)):
        outcome = run(draw_history(version, seed))
        assert outcome.problems == (), outcome.history.command
        assert outcome.acknowledged > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_an_isr_that_a_reassignment_dropped_is_replaced_uncleanly(version: str) -> None:
    """As in Kafka only an unclean election helps. What its leader lacks is excused, for this
    partition and from its end on (docs/kafka/reassignment.md#dropped-in-sync)."""
    world = build(60090, version)
    steps = "isolate:11702947:8000,reassign:16469621:10,kill:4266243:8000,reassign:16091426:200"
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    assert world.lost_from == {TopicPartition("main-1", 1): 0}
    world.lost_from.clear()
    assert "acknowledged records are lost" in record_problems(world)[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "isr"), [("2.4", {4, 2, 5}), ("2.6", {4, 2, 5}), ("2.7", {4, 2})]
)
def test_a_replica_that_joined_while_it_was_dropped_stays_in_the_isr_until_2_6(
    version: str, isr: set[int]
) -> None:
    """The leader wrote to ZooKeeper after the controller had read the ISR. Since KIP-497 the
    controller decides both (docs/kafka/reassignment.md#dropped-in-sync)."""
    world = build(1022, version)
    steps = "kill_controller:2083604:1,reassign:2228048:1000,reassign:7936511:10"
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    view = world.simulation.partition("main-2", 0)
    assert (set(view.isr), set(view.replicas)) == (isr, {4, 2})


@pytest.mark.slow
def test_a_leader_that_a_reassignment_dropped_is_replaced_by_the_next_controller() -> None:
    """As in Kafka nothing else elects, and nothing is lost
    (docs/kafka/reassignment.md#dropped-in-sync)."""
    world = build(60736, "3.9")
    steps = (
        "drop:1405580:1000,cut:15309846:10,reassign:13007657:4000,expire:15279918:1,"
        "start:6521179:4000,reassign:3158658:200"
    )
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    assert (world.lost_from, world.relieved) == ({}, {TopicPartition("main-2", 0)})


@pytest.mark.slow
def test_a_seed_decides_all() -> None:
    """The same seed gives the same history, to the microsecond."""
    first, second = run(draw_history("3.9", 2)), run(draw_history("3.9", 2))
    assert first == second
    assert first.told != run(draw_history("3.9", 3)).told


def test_steps_are_written_and_read() -> None:
    """The command that repeats a shortened history names its steps."""
    steps = draw_steps(7)
    assert tuple(parse_step(str(step)) for step in steps) == steps
    assert History("3.9", 7, steps).command.endswith("--version 3.9 --seed 7 --tell")
    shorter = History("3.9", 7, (Step("kill", 5, 100),))
    assert "--steps kill:5:100" in shorter.command


def test_records_that_are_missing_changed_or_doubled_are_told() -> None:
    """The verdict knows what was acknowledged and what was read, and compares."""
    world = build(1, "3.9")
    world.simulation.run_for(1000)
    heal(world)
    assert verdict(world) == []
    where = world.main[0]
    world.acknowledged.append((where, 0, b"never stored"))
    _, offset, value = next(a for a in world.acknowledged if a[0] == where)
    world.acknowledged.append((where, offset + 1, value))
    world.seen[where, 10_000] = b"was there"
    problems = " ".join(verdict(world))
    assert "1 acknowledged records are lost" in problems
    assert "1 records are not where they were acknowledged" in problems
    assert "1 records were read and are not there" in problems


def test_what_0_10_cuts_at_its_high_watermark_is_excused() -> None:
    """Its followers may lose and change records from there on (KIP-101), and none before."""
    world = build(1, "0.10")
    world.simulation.run_for(1000)
    heal(world)
    where = world.main[0]
    for offset in (3, 4):
        world.acknowledged.append((where, offset, b"never stored"))
    assert record_problems(world)[0].startswith("2 acknowledged records are lost")
    leader = present(world.simulation.partition(*where).leader)
    manager = present(world.simulation.processes[leader].broker).replica_manager
    log = present(present(manager.partition(where)).log)
    with world.note_cuts():
        log.truncate_to(log.high_watermark)
        assert world.cut_from == {}, "nothing was cut"
        log.high_watermark = 4
        log.truncate_to(4)
    assert world.cut_from == {where: 4}
    world.read_anew += [(where, 3, b"one", b"other"), (where, 4, b"one", b"other")]
    assert [p for p in record_problems(world) if "read as" in p] == [
        f"{where} offset 3 was read as b'one' and then as b'other'"
    ], "a new leader's records may be read before the old one cuts its own"
    world.read_anew.clear()
    assert record_problems(world)[0].startswith("1 acknowledged records are lost")


@pytest.mark.slow
def test_what_1_1_does_not_cut_after_two_quick_elections_is_excused() -> None:
    """Broker 3 wrote two records in epoch 4, of which its leader never heard, and keeps them
    (KIP-279, docs/stories/kip-279-fast-failover.md)."""
    world = build(60250, "1.1")
    steps = (
        "restart:16305137:4000,elect:8553684:200,create:13088299:8000,restart:6611449:4000,"
        "pause:5018831:1000,shutdown:8980676:1000,reassign:5585371:8000,power_off:12198652:1000,"
        "reassign:7699873:8000"
    )
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    assert world.cut_from == {TopicPartition("main-1", 1): 0}
    world.cut_from.clear()
    assert [p.partition(" (")[0] for p in verdict(world)] == ["main-1-1: replicas differ"]


def test_a_cluster_that_is_not_whole_is_told() -> None:
    """A dead broker, and then one that has not caught up yet, keep a cluster from being whole."""
    world = build(1, "3.9")
    heal(world)
    assert what_is_lacking(world) is None
    world.simulation.broker(1).kill()
    assert what_is_lacking(world) == "broker 1 is not_running"
    world.simulation.run_for(20_000)
    world.simulation.create_topic("all", assignment={0: [2, 3, 1]})
    world.simulation.broker(1).start(wait=False)
    assert what_is_lacking(world) == "broker 1 is starting"
    world.simulation.run_until(lambda: world.simulation.broker(1).state == "running")
    assert "all is not fully replicated" in (what_is_lacking(world) or "")
    heal(world)


def test_shrinking_leaves_out_what_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the steps without which the problem does not come remain."""

    def run_with_two_needed(history: History, trace: str | None = None) -> Outcome:
        names = [step.name for step in history.steps]
        problems = ("lost",) if "kill" in names and "pause" in names else ()
        return Outcome(history, problems, (), 0.0, 0)

    monkeypatch.setattr(random_histories, "run", run_with_two_needed)
    names = ["expire", "kill", "resign", "cut", "pause", "heal_network", "create"]
    steps = tuple(Step(name, 1, 0) for name in names)
    found = random_histories.shrink(run_with_two_needed(History("3.9", 1, steps)))
    assert [step.name for step in found.history.steps] == ["kill", "pause"]
