"""Random histories of clusters end whole, and violations are detected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fakekafka.exploration.cluster_steps import Wait
from fakekafka.exploration.history import History, Play, read_history, run
from fakekafka.exploration.known import Caveat
from fakekafka.exploration.step import Step, parse_step
from fakekafka.exploration.targets.cluster import LoadedCluster
from fakekafka.exploration.targets.target import Target
from fakekafka.protocol.admin import AlterPartitionReassignmentsRequest
from fakekafka.protocol.records.batch import RecordBatch
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import JUDGED_VERSIONS, KAFKA_VERSIONS
from fakekafka.tests.support.batches import with_base_offset
from fakekafka.tests.support.examples import examples
from fakekafka.tests.support.logs import Tools
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.present import present

SEEDS = range(1, 5)
DERIVED_VERSIONS = [version for version in KAFKA_VERSIONS if version not in JUDGED_VERSIONS]
KEPT = ROOT / "tests" / "histories" / "kept"


def kept(name: str) -> tuple[Target, Iterable[Step[Any]]]:
    """Return the target of a stored history and its steps."""
    _, history = read_history(KEPT / f"{name}.txt")
    return history.target(history.kafka_version, history.seed), history.steps or ()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", JUDGED_VERSIONS)
def test_a_history_breaks_no_promise(version: str, seed: int) -> None:
    """After healing, no acknowledged record is lost and every replica is in sync."""
    outcome = run(History(LoadedCluster, version, seed))
    assert outcome.unexplained == (), outcome.history.command
    assert dict(outcome.figures)["acknowledged"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", DERIVED_VERSIONS)
def test_histories_of_derived_releases_break_no_promise(version: str) -> None:
    """Histories of releases between the judged ones end whole: flags of one change switch together,
    as half a change would lose records or hang. ``FAKEKAFKA_EXAMPLES`` multiplies the histories.
    """
    for seed in range(1000, 1000 + examples(3)):
        outcome = run(History(LoadedCluster, version, seed))
        assert outcome.unexplained == (), outcome.history.command
        assert dict(outcome.figures)["acknowledged"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_an_isr_that_a_reassignment_dropped_is_replaced_uncleanly(version: str) -> None:
    """As in Kafka, only an unclean election helps an ISR that a reassignment dropped. Records that
    its leader lacks are then a known defect, for this partition and from its log end on
    (docs/kafka/reassignment.md#dropped-in-sync).
    """
    _, history = read_history(KEPT / "reassignment_drops_the_isr.txt")
    target = LoadedCluster(version, history.seed)
    violations = Play(target).run(present(history.steps))
    assert {violation.known for violation in violations} == {"dropped in sync"}
    assert {"PartitionsOnline", "AcknowledgedSurvive"} <= {one.promise for one in violations}
    assert target.defects.caveats == {TopicPartition("main-1", 1): [Caveat(0, "dropped in sync")]}


@pytest.mark.slow
@pytest.mark.parametrize(("version", "stays"), [("2.4", True), ("2.6", True), ("2.7", False)])
def test_a_replica_that_joined_while_it_was_dropped_stays_in_the_isr_until_2_6(
    version: str, stays: bool
) -> None:
    """Until 2.6 a dropped replica stays in the ISR if the leader wrote it to ZooKeeper after the
    controller had read the ISR. Since KIP-497 the controller decides both
    (docs/kafka/reassignment.md#dropped-in-sync). The race lasts a millisecond, so several moments
    are tried.
    """
    strangers: set[int] = set()
    for pause_ms in range(990, 1004, 2):
        target = LoadedCluster(version, 1022)
        lines = f"""kill 1
            wait 1
            reassign main-2-0:4,5
            wait {pause_ms}
            reassign main-2-0:4,2/main-2-2:5,1/main-2-1:1,4,3
            wait 10"""
        violations = Play(target).run(map(parse_step, lines.splitlines()))
        assert {violation.known for violation in violations} <= {"KIP-497"}
        view = target.world.simulation.partition("main-2", 0)
        strangers |= set(view.isr) - set(view.replicas)
    assert strangers == ({5} if stays else set())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "stays"), [("2.8", True), ("3.0", False), ("3.9", False)])
def test_a_dropped_replica_of_which_the_next_controller_does_not_know_leaves_the_isr_since_3_0(
    version: str, stays: bool
) -> None:
    """Since 3.0 the leader removes the dropped replica from the ISR if the next controller did not
    (KAFKA-9672, docs/kafka/reassignment.md#dropped-in-sync).
    """
    _, history = read_history(KEPT / "successor_does_not_know_who_was_dropped.txt")
    target = LoadedCluster(version, history.seed)
    assert Play(target).run(present(history.steps)) == []
    view = target.world.simulation.partition("main-1", 0)
    assert set(view.isr) - set(view.replicas) == ({3} if stays else set())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "rebalances"), [("2.8", False), ("3.9", True)])
def test_a_leader_that_a_reassignment_dropped_is_replaced_by_the_next_controller(
    version: str, rebalances: bool
) -> None:
    """As in Kafka, a dropped leader is replaced by the next controller or, since 3.4, by the
    automatic leader rebalance, and nothing is lost (docs/kafka/reassignment.md#dropped-in-sync).
    """
    target = LoadedCluster(version, 2)
    world, simulation = target.world, target.world.simulation
    where = next(key for key in world.main if len(simulation.partition(*key).replicas) == 2)
    first, second = simulation.partition(*where).replicas
    taken = (first, second, simulation.controller.id)
    added, late, *_ = (b for b in simulation.broker_ids if b not in taken)

    def in_sync(*brokers: int) -> bool:
        return set(simulation.partition(*where).isr) == set(brokers)

    def move_to(*replicas: int) -> None:
        world.request("move it", AlterPartitionReassignmentsRequest(((where, replicas),)))

    with target.tracking_defects():
        simulation.broker(second).kill()
        simulation.run_until(lambda: in_sync(first), 60_000)
        move_to(second, added)
        simulation.run_until(lambda: in_sync(first, added), 60_000)
        simulation.broker(first).kill()
        simulation.run_until(lambda: simulation.partition(*where).leader == added, 60_000)
        simulation.broker(first).start()
        simulation.run_until(lambda: in_sync(first, added), 60_000)
        simulation.network.partition([late], [first])  # keeps it out of the ISR
        world.has_network_faults = True
        move_to(first, late)
        simulation.run_until(lambda: simulation.partition(*where).leader is None, 60_000)
        simulation.run_for(10_000)
        assert simulation.partition(*where).leader is None
        target.healing.run()
    moved = set() if rebalances else {where}
    assert (target.defects.caveats, target.healing.controller_moved_for) == ({}, moved)
    found = {violation.signature for violation in target.end()}
    assert found == (set() if rebalances else {"PartitionsOnline: dropped in sync"})


def test_the_same_seed_gives_the_same_history() -> None:
    """A seed determines a history to the microsecond, and so do its steps."""
    first, second = run(History(LoadedCluster, "3.9", 2)), run(History(LoadedCluster, "3.9", 2))
    assert first == second
    again = first.resolved.run()
    assert (again.virtual_ms, again.figures) == (first.virtual_ms, first.figures)
    assert first.step_log != run(History(LoadedCluster, "3.9", 3)).step_log


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.txt")), ids=lambda path: path.stem)
def test_kept_histories_survive_reading_and_writing(path: Path) -> None:
    """A stored history is read and written unchanged, and begins with a sentence."""
    about, history = read_history(path)
    assert about.endswith(".")
    assert history.written(about) == path.read_text(encoding="utf-8")


def test_missing_changed_and_duplicate_records_are_reported() -> None:
    """Acknowledged or read records that are missing or changed in the log are reported."""
    target = LoadedCluster("3.9", 1)
    target.world.simulation.run_for(1000)
    assert target.end() == []
    where, load = target.world.main[0], target.load
    acknowledged = load.acknowledged[where]
    moved = acknowledged[1]
    acknowledged += [
        moved._replace(offset=0, value=b"never stored", broker=2, epoch=4),
        moved._replace(offset=moved.offset + 1),
    ]
    for hear in load.on_read:
        hear(
            where,
            RecordBatch.from_bytes(with_base_offset(Tools.data(b"was there"), 10_000, 0)),
            10_000,
        )
    for invariant in target.invariants:
        invariant.end()
    told = {(violation.promise, violation.text) for violation in target.violation_log.violations()}
    assert (
        "AcknowledgedSurvive",
        f"{where}: acknowledged at offset 0 by broker 2 in epoch 4, missing in epoch 0",
    ) in told
    assert any("another record is there in epoch 0" in text for _, text in told)
    assert any("was read as b'was there'" in text for _, text in told)


@pytest.mark.parametrize(
    ("name", "signatures"),
    [
        ("two_quick_elections", {"LogMatching: KIP-279", "ReplicasIdentical: KIP-279"}),
        (
            "follower_heard_of_no_epoch_since",
            {"LogMatching: KIP-320", "ReplicasIdentical: KIP-320"},
        ),
        (
            "follower_heard_only_of_the_last_epoch",
            {"LogMatching: KIP-320", "ReplicasIdentical: KIP-320"},
        ),
        ("answer_to_alter_isr_is_lost", {"IsrWhole: unanswered AlterIsr"}),
        ("former_controller_refuses_the_isr", {"IsrWhole: refused AlterIsr"}),
        ("broker_lacks_a_topic_of_0_11", {"MetadataAgrees: KAFKA-1120"}),
        ("broker_lacks_a_topic_of_1_1", {"IsrWhole: KAFKA-1120"}),
        ("dead_broker_stays_in_the_isr", set()),
        ("high_watermark_one_change_behind", {"IsrWhole: missed high watermark"}),
        ("high_watermark_one_record_behind", {"IsrWhole: missed high watermark"}),
        (
            "dropped_replica_leads_with_an_empty_log",
            {"AcknowledgedSurvive: dropped in sync", "ReadsArePrefixes: dropped in sync"},
        ),
        ("fenced_producer_commits_offsets_late", {"TransactionsAreAtomic: KAFKA-9144"}),
        ("leader_does_not_widen_its_isr", {"IsrWhole: KAFKA-2729"}),
    ],
)
@pytest.mark.slow
def test_defects_of_kafka_are_found_and_named(name: str, signatures: set[str]) -> None:
    """A follower of 1.1 keeps records that its leader never had (KIP-279), or that its leader
    truncated while another one led (KIP-320, docs/kafka/replica-fetchers.md#releases). A controller
    without broker epochs misses a bounce and does not inform the broker (KAFKA-1120); a follower
    that truncates does not learn its high watermark (docs/kafka/fetch-sessions.md#answers); and a
    leader that never learns that its ISR was written, or is refused by a former controller, no
    longer changes it (docs/kafka/isr.md#changes-through-the-controller). A group accepts the
    offsets that a fenced producer commits after the marker (KAFKA-9144). A replica that a
    reassignment drops loses its log, but stays in the ISR if it is its only member
    (docs/kafka/reassignment.md#dropped-in-sync).
    """
    target, steps = kept(name)
    assert {violation.signature for violation in Play(target).run(steps)} == signatures


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("acknowledged_record_is_cut_at_the_high_watermark", "AcknowledgedSurvive: KIP-101 (loss)"),
        ("logs_diverge_below_the_high_watermark", "ReplicasIdentical: KIP-101 (divergence)"),
        ("follower_of_0_10_missed_a_leader", "ReplicasIdentical: KIP-320"),
        ("broker_follows_one_of_whom_it_had_not_heard", "IsrWhole: KAFKA-4443"),
        ("deposed_controller_writes_leaders", "ControllerKnowsZookeeper: KAFKA-6082"),
        ("leader_never_heard_of_the_epoch", "ReplicasIdentical: KIP-279"),
        ("fetcher_ends_behind_records_that_were_cut", "IsrWhole: KIP-320"),
    ],
)
def test_each_find_needs_few_faults_and_is_fixed_in_a_later_release(
    name: str, signature: str
) -> None:
    """At most eight faults and actions break the promise in the old release, and the same steps
    break none in a release with the fix (docs/guides/exploration.md#finds).
    """
    _, history = read_history(KEPT / f"{name}.txt")
    steps = present(history.steps)
    assert len([step for step in steps if not isinstance(step, Wait)]) <= 8
    outcome = run(history)
    assert signature in {violation.signature for violation in outcome.violations}
    assert outcome.unexplained == ()
    assert run(replace(history, kafka_version="3.9")).violations == ()


def test_an_unhealthy_cluster_is_reported() -> None:
    """A dead broker, and then one that lags behind, are reported until the cluster is whole."""
    target = LoadedCluster("3.9", 1)
    healing, simulation = target.healing, target.world.simulation

    def unmet() -> str:
        return ": ".join(target.first_unmet() or ("nothing",))

    assert healing.run()
    assert unmet() == "nothing"
    simulation.broker(1).kill()
    assert unmet() == "BrokersRun: broker 1 is not_running"
    simulation.run_for(20_000)
    simulation.create_topic("all", assignment={0: [2, 3, 1]})
    simulation.broker(1).start(wait=False)
    assert unmet() == "BrokersRun: broker 1 is starting"
    simulation.run_until(lambda: simulation.broker(1).state == "running")
    assert unmet() == "IsrWhole: broker 1 has no log of all-0"
    simulation.run_until(lambda: "IsrWhole: all is not fully replicated" in unmet(), every_ms=1)
    healing.run()
