"""Random histories end whole, and the runner that makes them sees what is not whole."""

from __future__ import annotations

import pytest
from fakekafka.protocol.admin import AlterPartitionReassignmentsRequest
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
@pytest.mark.parametrize(("version", "stays"), [("2.4", True), ("2.6", True), ("2.7", False)])
def test_a_replica_that_joined_while_it_was_dropped_stays_in_the_isr_until_2_6(
    version: str, stays: bool
) -> None:
    """The leader wrote to ZooKeeper after the controller had read the ISR. Since KIP-497 the
    controller decides both (docs/kafka/reassignment.md#dropped-in-sync). It is a matter of a
    millisecond, so several moments are tried."""
    strangers: set[int] = set()
    for pause_ms in range(990, 1004, 2):
        world = build(1022, version)
        steps = f"kill_controller:2083604:1,reassign:2228048:{pause_ms},reassign:7936511:10"
        assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
        view = world.simulation.partition("main-2", 0)
        strangers |= set(view.isr) - set(view.replicas)
    assert strangers == ({5} if stays else set())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "rebalances"), [("2.8", False), ("3.9", True)])
def test_a_leader_that_a_reassignment_dropped_is_replaced_by_the_next_controller(
    version: str, rebalances: bool
) -> None:
    """As in Kafka nothing else elects but, since 3.4, the automatic leader rebalance; and nothing
    is lost (docs/kafka/reassignment.md#dropped-in-sync)."""
    world = build(2, version)
    simulation = world.simulation
    where = next(key for key in world.main if len(simulation.partition(*key).replicas) == 2)
    first, second = simulation.partition(*where).replicas
    taken = (first, second, simulation.controller.id)
    added, late, *_ = (b for b in simulation.broker_ids if b not in taken)

    def in_sync(*brokers: int) -> bool:
        return set(simulation.partition(*where).isr) == set(brokers)

    def move_to(*replicas: int) -> None:
        world.request("move it", AlterPartitionReassignmentsRequest(((where, replicas),)))

    with world.note_cuts(), world.note_drops():
        simulation.broker(second).kill()
        simulation.run_until(lambda: in_sync(first), 60_000)
        move_to(second, added)
        simulation.run_until(lambda: in_sync(first, added), 60_000)
        simulation.broker(first).kill()
        simulation.run_until(lambda: simulation.partition(*where).leader == added, 60_000)
        simulation.broker(first).start()
        simulation.run_until(lambda: in_sync(first, added), 60_000)
        simulation.network.partition([late], [first])  # so that it does not come in sync
        world.troubled_network = True
        move_to(first, late)
        simulation.run_until(lambda: simulation.partition(*where).leader is None, 60_000)
        simulation.run_for(10_000)
        assert simulation.partition(*where).leader is None
        heal(world)
    assert verdict(world) == []
    assert (world.lost_from, world.relieved) == ({}, set() if rebalances else {where})


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


@pytest.mark.pure  # notes what a log answers by patching it
@pytest.mark.slow
def test_what_1_1_does_not_cut_after_two_quick_elections_is_excused() -> None:
    """Broker 3 wrote records in epoch 1, of which its leader never heard, and keeps them
    (KIP-279, docs/stories/kip-279-fast-failover.md)."""
    world = build(60264, "1.1")
    steps = (
        "shutdown:1687551:0,pause:10692735:10,slow_link:15039908:4000,expire:1459530:200,"
        "kill_controller:5926275:1000"
    )
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    where = TopicPartition("main-1", 0)
    assert world.cut_from == {where: 1}
    leader, wrote = world.simulation.partition(*where), 3
    assert 1 in dict(leader.replica(wrote).epochs)
    assert 1 not in dict(leader.replica(present(leader.leader)).epochs)
    world.cut_from.clear()
    assert [p.partition(" (")[0] for p in verdict(world)] == ["main-1-0: replicas differ"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "steps", "where", "stays"),
    [
        pytest.param(
            500162,
            "reassign:2859404:4000,create:12476367:1000,expire:3324906:1,cut:36133:200,"
            "shutdown:96884:8000",
            TopicPartition("main-1", 0),
            52,
            id="heard of no epoch since",
        ),
        pytest.param(
            500209,
            "kill_controller:5655798:1000,start:8380652:1000,kill_leader:5205516:200,"
            "start:9174227:1000,pause:8396474:4000,kill_controller:4330995:8000",
            TopicPartition("main-1", 0),
            0,
            id="heard only of the last",
        ),
    ],
)
def test_what_1_1_goes_on_behind_when_a_leader_leads_again_is_excused(
    seed: int, steps: str, where: TopicPartition, stays: int
) -> None:
    """The leader cut records while another one led. A follower that missed that keeps them
    (KIP-320, docs/kafka/replica-fetchers.md#releases)."""
    world = build(seed, "1.1")
    assert play(world, tuple(map(parse_step, steps.split(","))), []) == []
    assert world.cut_from == {where: stays}
    world.cut_from.clear()
    assert [p.partition(" (")[0] for p in verdict(world)] == [f"{where}: replicas differ"]


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
