"""The suite ``failover`` and the story of its trace agree on unavailability."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakekafka.spark_bench.measuring.recording_sink import RecordingSink
from fakekafka.spark_bench.measuring.run import PHASES, Run
from fakekafka.spark_bench.planning.carry_out import carry_out, carry_out_in
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.recording import record
from fakekafka.tracing.fingerprint import UNSEEN_KINDS
from fakekafka.tracing.story.timeline import Story, read_story
from fakekafka.tracing.trace_file import TraceReader


@pytest.mark.parametrize(
    ("kafka_version", "seed", "more"),
    [
        ("0.10", 1, {}),
        ("1.1", 2, {}),
        ("2.8", 3, {"partitions": 5}),
        ("3.9", 4, {}),
        ("3.9", 5, {"rate_per_s": 1}),
    ],
)
def test_the_story_of_a_run_agrees_with_the_figures_of_its_row(
    kafka_version: str, seed: int, more: dict[str, int], tmp_path: Path
) -> None:
    """Unavailability and its phases are the same in a batch, which keeps no events, and in the
    trace of the run; the phases add up to the total.
    """
    values = {"kafka_version": kafka_version, "session_timeout_ms": 6000, **more}
    plan = make_plan("failover", 1, seed, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    path = tmp_path / "run.fktrace"
    assert record("failover", seed, values, path) == []
    with TraceReader(path) as trace:
        story = read_story(trace.events())
        kinds, _ = trace.counts()
        assert trace.outline == row["fingerprint"]
    outlined = [number for kind, number in kinds.items() if kind not in UNSEEN_KINDS]
    assert sum(outlined) == row["events"]
    (crash,) = story.crashes
    assert not story.open_outages
    assert all(outage.is_acknowledged for outage in story.outages)
    felt = [one for one in story.outages if (one.ended_us or 0) > crash.begun_us]
    assert felt
    assert all(outage.cause is crash for outage in felt)
    assert len(story.outages) == row["outages"]
    lengths_us = [outage.unavailable_us or 0 for outage in story.outages]
    assert row["unavailable_partition_s"] == pytest.approx(sum(lengths_us) / 1e6)
    worst = story.outages[lengths_us.index(max(lengths_us))]
    assert row["unavailable_ms"] == (worst.unavailable_us or 0) / 1000
    phases = {f"{name}_ms": us / 1000 for name, us in worst.phases_us().items()}
    assert {name: row[name] for name in PHASES} == phases
    assert sum(phases.values()) == pytest.approx(row["unavailable_ms"])
    told = f"{worst.partition} accepts records again"
    texts = [text for _, text in story.lines if text.startswith(told)]
    length = f"unavailable for {row['unavailable_ms']:.1f} ms, because broker-"
    assert any(length in text for text in texts)


@pytest.mark.parametrize(("replication_factor", "partitions"), [(3, 3), (2, 2)])
def test_a_partition_whose_isr_holds_the_dead_broker_is_unavailable_too(
    replication_factor: int, partitions: int
) -> None:
    """With acks=all, partitions whose ISR contains the dead broker are unavailable too: all three
    with three replicas, two of them with two. If a follower is left, the epoch without the dead
    broker fences its waiting fetch, and the partition also waits for the follower's back-off
    (DP-62).
    """
    values = {"replication_factor": replication_factor, "session_timeout_ms": 6000}
    plan = make_plan("failover", 1, 3, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    fenced = partitions - 1 if replication_factor == 3 else 0
    assert (row["status"], row["outages"]) == ("ok", partitions + fenced)
    assert row["partitions_led"] == 1
    longest_s = row["unavailable_ms"] / 1000
    of_all_s = row["unavailable_partition_s"] - fenced * 1.0
    assert 0.9 * partitions * longest_s < of_all_s <= partitions * longest_s + fenced * 0.1


@pytest.mark.slow
def test_a_failover_is_felt_about_as_long_as_the_session_times_out() -> None:
    """With a session timeout of 6 s a failover takes 4 to 9 s, each phase as expected."""
    plan = make_plan("failover", 3, 1, values={"session_timeout_ms": 6000}, matrix={})
    rows = [carry_out(plan, spec).row for spec in plan.specs]
    assert all(row["status"] == "ok" for row in rows)
    assert 4_000 <= sorted(row["unavailable_ms"] for row in rows)[1] <= 9_000
    for row in rows:
        assert row["detect_ms"] > 10 * (row["elect_ms"] + row["propagate_ms"])
        assert min(row["elect_ms"], row["client_ms"]) > 0
        assert row["full_isr_ms"] > row["unavailable_ms"]


FAULTS = '''
"""A leader is silent for 17 s, by one of several causes"""
HEADLINE = "unavailable_ms"

def scenario(
    run, fault: str = "pause", acks: str = "all", kafka_version: str = "3.9",
    session_ms: int = 18_000,
):
    # No broker is the preferred leader again, which would be an outage of its own.
    config = {
        "auto.leader.rebalance.enable": False,
        "min.insync.replicas": 2,
        "zookeeper.session.timeout.ms": session_ms,
    }
    simulation = run.simulation(3, config=config, kafka_version=kafka_version)
    simulation.create_topic("t", assignment={0: [1, 2, 3]})
    load = run.load("t", rate_per_s=20, acks=acks if acks == "all" else int(acks))
    simulation.run_for(3000)
    leader = simulation.partition("t", 0).leader
    others = [broker for broker in simulation.broker_ids if broker != leader]
    if fault == "pause":
        simulation.broker(leader).pause()
    elif fault == "isolate":
        simulation.network.isolate(leader)
    elif fault == "latency":
        simulation.network.latency(900)
    elif fault == "session":
        simulation.zookeeper.expire_session(leader)
    elif fault == "controller":
        controller = simulation.controller.id
        cut_off = [broker for broker in simulation.broker_ids if broker != controller]
        simulation.network.partition([controller], cut_off)
    elif fault == "follower":
        simulation.broker(others[0]).pause()
    elif fault == "followers":
        for broker in others:
            simulation.broker(broker).kill(expire_session=True)
    elif fault == "dead":
        for broker in simulation.broker_ids:
            simulation.broker(broker).kill()
    simulation.run_for(17_000)
    if fault == "pause":
        simulation.broker(leader).resume()
    elif fault == "follower":
        simulation.broker(others[0]).resume()
    elif fault == "followers":
        for broker in others:
            simulation.broker(broker).start(wait=False)
    simulation.network.heal()
    simulation.network.latency(1)
    simulation.run_for(8000)
    load.stop()
'''


def play_fault(tmp_path: Path, **values: str | int) -> tuple[dict[str, Any], Story]:
    """Run a fault recorded and unrecorded with equal rows; return the row and the story."""
    path = tmp_path / "silent.py"
    path.write_text(FAULTS, encoding="utf-8")
    plan = make_plan(str(path), 1, 1, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    run = Run(plan.specs[0].seed, plan.budget, records=True)
    assert carry_out_in(run, plan, plan.specs[0]).row == row
    assert isinstance(run.sink, RecordingSink)
    story = read_story(run.sink.events)
    story.end(int(row["virtual_ms"] * 1000))
    return row, story


@pytest.mark.parametrize(
    ("fault", "least_ms", "phase", "cause"),
    [
        ("pause", 17_000, "detect_ms", "broker-1 was paused"),
        ("isolate", 17_000, "detect_ms", "broker-1 was cut off"),
        ("controller", 17_000, "detect_ms", "broker-1 was cut off"),
        ("follower", 14_000, "detect_ms", "broker-2 was paused"),
        ("followers", 17_000, "restore_ms", "broker-3 was killed"),
        ("latency", 1_800, "client_ms", "all links: latency 900 ms"),
        ("session", 100, "client_ms", "the session of broker-1 expired"),
    ],
)
def test_an_outage_is_counted_whatever_its_cause(
    fault: str, least_ms: float, phase: str, cause: str, tmp_path: Path
) -> None:
    """Outages by a silent leader or a too small ISR count as well, and the batch and the story
    agree on their lengths and phases.
    """
    row, story = play_fault(tmp_path, fault=fault)
    assert row["outages"] == len(story.outages) > 0
    assert least_ms <= row["unavailable_ms"] < 20_000
    assert sum(row[name] for name in PHASES) == pytest.approx(row["unavailable_ms"])
    assert max(PHASES, key=lambda name: float(row[name])) == phase
    worst = max(story.outages, key=lambda outage: outage.unavailable_us or 0)
    assert worst.cause is not None
    assert worst.cause.text == cause
    assert row["unavailable_ms"] == (worst.unavailable_us or 0) / 1000
    assert {n: row[f"{n}_ms"] for n in worst.phases_us()} == {
        n: us / 1000 for n, us in worst.phases_us().items()
    }


def test_an_outage_without_an_end_is_the_same_in_a_batch_and_in_the_story(tmp_path: Path) -> None:
    row, story = play_fault(tmp_path, fault="dead")
    (outage,) = story.open_outages
    assert (row["outages"], row["outages_open"]) == (0, 1)
    assert row["unavailable_ms"] == row["virtual_ms"] - outage.begun_us / 1000
    assert "unavailable_ms" in row["at_least"].split(",")


def test_an_acknowledgement_of_a_deposed_leader_ends_only_its_own_clients_outage(
    tmp_path: Path,
) -> None:
    """With acks=1 a deposed leader's acknowledgement ends only the outage of its own clients."""
    row, story = play_fault(tmp_path, fault="pause", acks="1")
    first, second = story.outages
    assert first.unavailable_us is not None
    assert second.unavailable_us is not None
    assert first.unavailable_us >= 17_000_000
    assert 0 < second.unavailable_us < 500_000
    assert (second.leader, second.new_leader) == (1, 2)
    assert row["outages"] == 2


def test_a_leader_writes_its_isr_itself_before_2_7(tmp_path: Path) -> None:
    """Before 2.7 a leader writes its ISR itself, and the time counts as the phase "shrink"."""
    row, _ = play_fault(tmp_path, fault="follower", kafka_version="1.1", session_ms=40_000)
    assert row["shrink_ms"] > 0.9 * row["unavailable_ms"] > 9_000


def test_a_recorded_run_uses_up_its_events_where_that_of_a_batch_does() -> None:
    """Client events are recorded without using the event budget, so that batches agree."""
    plan = make_plan("failover", 1, 3, matrix={}, budget={"events": 5_000})
    (spec,) = plan.specs
    row = carry_out(plan, spec).row
    run = Run(3, plan.budget, records=True)
    assert carry_out_in(run, plan, spec).row == row
    assert row["status"] == "budget"
    assert len(run.sink) > row["events"]
