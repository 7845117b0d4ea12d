"""Random histories end whole, and the judge of them sees what is not whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from fakekafka.exploration.history import History, Play, read_history, run
from fakekafka.exploration.judges.whole import Whole
from fakekafka.exploration.step import Step, parse_step
from fakekafka.protocol.admin import AlterPartitionReassignmentsRequest
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS, KAFKA_VERSIONS
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.present import present

SEEDS = range(1, 5)
DERIVED_VERSIONS = [version for version in KAFKA_VERSIONS if version not in JUDGED_VERSIONS]
KEPT = ROOT / "tests" / "histories" / "kept"


def kept(name: str) -> tuple[Whole, Iterable[Step[Any]]]:
    """The judge of a history that was kept, and its steps."""
    _, history = read_history(KEPT / f"{name}.txt")
    return Whole(history.kafka_version, history.seed), history.steps or ()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_history_ends_whole(version: str, seed: int) -> None:
    """After healing nothing acknowledged is lost, and every replica is in sync."""
    outcome = run(History(Whole, version, seed))
    assert outcome.problems == (), outcome.history.command
    assert dict(outcome.figures)["acknowledged"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", DERIVED_VERSIONS)
def test_histories_of_releases_that_no_broker_judges_end_whole(version: str) -> None:
    """Flags that belong together switch together: what is half of a change loses records or hangs.
    ``FAKEKAFKA_EXAMPLES`` multiplies the histories."""
    for seed in range(1000, 1000 + examples(3)):
        outcome = run(History(Whole, version, seed))
        assert outcome.problems == (), outcome.history.command
        assert dict(outcome.figures)["acknowledged"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_an_isr_that_a_reassignment_dropped_is_replaced_uncleanly(version: str) -> None:
    """As in Kafka only an unclean election helps. What its leader lacks is excused, for this
    partition and from its end on (docs/kafka/reassignment.md#dropped-in-sync)."""
    _, history = read_history(KEPT / "reassignment_drops_the_isr.txt")
    judge = Whole(version, history.seed)
    assert Play(judge).run(present(history.steps)) == []
    assert judge.excuses.lost_from == {TopicPartition("main-1", 1): 0}
    judge.excuses.lost_from.clear()
    assert "acknowledged records are lost" in judge.record_problems()[0]


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
        judge = Whole(version, 1022)
        lines = f"""kill 1
            wait 1
            reassign main-2-0:4,5
            wait {pause_ms}
            reassign main-2-0:4,2/main-2-2:5,1/main-2-1:1,4,3
            wait 10"""
        assert Play(judge).run(map(parse_step, lines.splitlines())) == []
        view = judge.world.simulation.partition("main-2", 0)
        strangers |= set(view.isr) - set(view.replicas)
    assert strangers == ({5} if stays else set())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "rebalances"), [("2.8", False), ("3.9", True)])
def test_a_leader_that_a_reassignment_dropped_is_replaced_by_the_next_controller(
    version: str, rebalances: bool
) -> None:
    """As in Kafka nothing else elects but, since 3.4, the automatic leader rebalance; and nothing
    is lost (docs/kafka/reassignment.md#dropped-in-sync)."""
    judge = Whole(version, 2)
    world, simulation = judge.world, judge.world.simulation
    where = next(key for key in world.main if len(simulation.partition(*key).replicas) == 2)
    first, second = simulation.partition(*where).replicas
    taken = (first, second, simulation.controller.id)
    added, late, *_ = (b for b in simulation.broker_ids if b not in taken)

    def in_sync(*brokers: int) -> bool:
        return set(simulation.partition(*where).isr) == set(brokers)

    def move_to(*replicas: int) -> None:
        world.request("move it", AlterPartitionReassignmentsRequest(((where, replicas),)))

    with judge.watching():
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
        judge.healing.run()
    assert judge.verdict() == []
    relieved = set() if rebalances else {where}
    assert (judge.excuses.lost_from, judge.healing.relieved) == ({}, relieved)


def test_a_seed_decides_all() -> None:
    """The same seed gives the same history, to the microsecond; its steps give it, too."""
    first, second = run(History(Whole, "3.9", 2)), run(History(Whole, "3.9", 2))
    assert first == second
    again = run(first.resolved)
    assert (again.virtual_ms, again.figures) == (first.virtual_ms, first.figures)
    assert first.told != run(History(Whole, "3.9", 3)).told


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.txt")), ids=lambda path: path.stem)
def test_kept_histories_are_read_as_they_are_written(path: Path) -> None:
    """With a sentence that says what they show."""
    about, history = read_history(path)
    assert about.endswith(".")
    assert history.written(about) == path.read_text(encoding="utf-8")


def test_records_that_are_missing_changed_or_doubled_are_told() -> None:
    """The verdict knows what was acknowledged and what was read, and compares."""
    judge = Whole("3.9", 1)
    judge.world.simulation.run_for(1000)
    assert judge.end() == []
    where, load = judge.world.main[0], judge.load
    load.acknowledged.append((where, 0, b"never stored"))
    _, offset, value = next(a for a in load.acknowledged if a[0] == where)
    load.acknowledged.append((where, offset + 1, value))
    load.seen[where, 10_000] = b"was there"
    problems = " ".join(judge.verdict())
    assert "1 acknowledged records are lost" in problems
    assert "1 records are not where they were acknowledged" in problems
    assert "1 records were read and are not there" in problems


def test_what_0_10_cuts_at_its_high_watermark_is_excused() -> None:
    """Its followers may lose and change records from there on (KIP-101), and none before."""
    judge = Whole("0.10", 1)
    simulation, excuses = judge.world.simulation, judge.excuses
    simulation.run_for(1000)
    judge.healing.run()
    where = judge.world.main[0]
    for offset in (3, 4):
        judge.load.acknowledged.append((where, offset, b"never stored"))
    assert judge.record_problems()[0].startswith("2 acknowledged records are lost")
    leader = present(simulation.partition(*where).leader)
    manager = present(simulation.processes[leader].broker).replica_manager
    log = present(present(manager.hosted.partition(where)).log)
    with judge.watching():
        log.truncate_to(log.high_watermark)
        assert excuses.cut_from == {}, "nothing was cut"
        log.high_watermark = 4
        log.truncate_to(4)
    assert excuses.cut_from == {where: 4}
    judge.load.read_anew += [(where, 3, b"one", b"other"), (where, 4, b"one", b"other")]
    assert [p for p in judge.record_problems() if "read as" in p] == [
        f"{where} offset 3 was read as b'one' and then as b'other'"
    ], "a new leader's records may be read before the old one cuts its own"
    judge.load.read_anew.clear()
    assert judge.record_problems()[0].startswith("1 acknowledged records are lost")


@pytest.mark.pure  # notes what a log answers by patching it
@pytest.mark.slow
def test_what_1_1_does_not_cut_after_two_quick_elections_is_excused() -> None:
    """Broker 3 wrote records in epoch 1, of which its leader never heard, and keeps them
    (KIP-279, docs/stories/kip-279-fast-failover.md)."""
    judge, steps = kept("two_quick_elections")
    assert Play(judge).run(steps) == []
    where = TopicPartition("main-1", 0)
    assert judge.excuses.cut_from == {where: 1}
    leader, wrote = judge.world.simulation.partition(*where), 3
    assert 1 in dict(leader.replica(wrote).epochs)
    assert 1 not in dict(leader.replica(present(leader.leader)).epochs)
    judge.excuses.cut_from.clear()
    assert [p.partition(" (")[0] for p in judge.verdict()] == ["main-1-0: replicas differ"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stays"),
    [("follower_heard_of_no_epoch_since", 52), ("follower_heard_only_of_the_last_epoch", 0)],
)
def test_what_1_1_goes_on_behind_when_a_leader_leads_again_is_excused(
    name: str, stays: int
) -> None:
    """The leader cut records while another one led. A follower that missed that keeps them
    (KIP-320, docs/kafka/replica-fetchers.md#releases)."""
    judge, steps = kept(name)
    where = TopicPartition("main-1", 0)
    assert Play(judge).run(steps) == []
    assert judge.excuses.cut_from == {where: stays}
    judge.excuses.cut_from.clear()
    assert [p.partition(" (")[0] for p in judge.verdict()] == [f"{where}: replicas differ"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "answer_to_alter_isr_is_lost",
        "broker_lacks_a_topic_of_0_11",
        "broker_lacks_a_topic_of_1_1",
        "dead_broker_stays_in_the_isr",
        "high_watermark_one_change_behind",
        "high_watermark_one_record_behind",
        "leader_does_not_widen_its_isr",
    ],
)
def test_what_needs_an_operator_is_healed(name: str) -> None:
    """A controller without broker epochs misses a bounce and tells the broker nothing (KAFKA-1120);
    a follower that truncates does not hear its high watermark
    (docs/kafka/fetch-sessions.md#answers); and a leader that never hears that its ISR was written
    changes it no more (docs/kafka/isr.md#changes-through-the-controller)."""
    judge, steps = kept(name)
    assert Play(judge).run(steps) == []


def test_a_cluster_that_is_not_whole_is_told() -> None:
    """A dead broker, and then one that has not caught up yet, keep a cluster from being whole."""
    judge = Whole("3.9", 1)
    healing, simulation = judge.healing, judge.world.simulation
    healing.run()
    assert healing.what_is_lacking() is None
    simulation.broker(1).kill()
    assert healing.what_is_lacking() == "broker 1 is not_running"
    simulation.run_for(20_000)
    simulation.create_topic("all", assignment={0: [2, 3, 1]})
    simulation.broker(1).start(wait=False)
    assert healing.what_is_lacking() == "broker 1 is starting"
    simulation.run_until(lambda: simulation.broker(1).state == "running")
    assert healing.what_is_lacking() == "broker 1 has no log of all-0"
    simulation.run_until(
        lambda: "all is not fully replicated" in (healing.what_is_lacking() or ""), every_ms=1
    )
    healing.run()
