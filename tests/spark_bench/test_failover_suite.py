"""The suite ``failover`` and the story of its trace give one account of what was unavailable."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.spark_bench.measuring.run import PHASES, Run
from fakekafka.spark_bench.planning.carry_out import carry_out, carry_out_in
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.planning.recording import record
from fakekafka.tracing.fingerprint import UNSEEN_KINDS
from fakekafka.tracing.story.timeline import read_story
from fakekafka.tracing.trace_file import TraceReader


@pytest.mark.slow
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
def test_the_story_of_a_run_tells_the_figures_of_its_row(
    kafka_version: str, seed: int, more: dict[str, int], tmp_path: Path
) -> None:
    """Unavailability and its phases are the same in a batch, which keeps no event, and in the
    trace of that run; and the phases add up to the whole."""
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
    told = f"{worst.partition} takes records again"
    texts = [text for _, text in story.lines if text.startswith(told)]
    length = f"unavailable for {row['unavailable_ms']:.1f} ms, because broker-"
    assert any(length in text for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(("replication_factor", "partitions"), [(3, 3), (2, 2)])
def test_a_partition_whose_isr_holds_the_dead_broker_is_unavailable_too(
    replication_factor: int, partitions: int
) -> None:
    """With acks=all and three replicas all three partitions wait for the dead broker to leave
    their ISRs; with two replicas those two of which it is one."""
    values = {"replication_factor": replication_factor}
    plan = make_plan("failover", 1, 3, values=values, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert (row["status"], row["outages"]) == ("ok", partitions)
    assert row["partitions_led"] == 1
    longest_s = row["unavailable_ms"] / 1000
    assert 0.9 * partitions * longest_s < row["unavailable_partition_s"]
    assert row["unavailable_partition_s"] <= partitions * longest_s


@pytest.mark.slow
def test_a_failover_is_felt_about_as_long_as_the_session_times_out() -> None:
    """Four seconds to nine with a session timeout of six, each phase at its place."""
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

def scenario(run, fault: str = "pause"):
    simulation = run.simulation(3)
    simulation.create_topic("t", 1, 3)
    load = run.load("t", rate_per_s=20)
    simulation.run_for(3000)
    leader = simulation.partition("t", 0).leader
    if fault == "pause":
        simulation.broker(leader).pause()
    elif fault == "isolate":
        simulation.network.isolate(leader)
    elif fault == "latency":
        simulation.network.latency(900)
    elif fault == "session":
        simulation.zookeeper.expire_session(leader)
    simulation.run_for(17_000)
    if fault == "pause":
        simulation.broker(leader).resume()
    simulation.network.heal()
    simulation.network.latency(1)
    simulation.run_for(8000)
    load.stop()
'''


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "least_ms"), [("pause", 17_000), ("isolate", 17_000), ("latency", 1_800)]
)
def test_an_outage_is_counted_whatever_its_cause(
    fault: str, least_ms: float, tmp_path: Path
) -> None:
    """A leader that is paused, cut off or behind slow links acknowledges nothing either."""
    path = tmp_path / "silent.py"
    path.write_text(FAULTS, encoding="utf-8")
    plan = make_plan(str(path), 1, 1, values={"fault": fault}, matrix={})
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    assert row["outages"] > 0
    assert least_ms <= row["unavailable_ms"] < 20_000
    assert sum(row[name] for name in PHASES) == pytest.approx(row["unavailable_ms"])
    assert (row["client_ms"] > 1_000) == (fault == "latency")


def test_a_recorded_run_uses_up_its_events_where_that_of_a_batch_does() -> None:
    """What clients report is in the trace only, and takes nothing from the budget."""
    plan = make_plan("failover", 1, 3, matrix={}, budget={"events": 5_000})
    (spec,) = plan.specs
    row = carry_out(plan, spec).row
    run = Run(3, plan.budget, records=True)
    assert carry_out_in(run, plan, spec).row == row
    assert row["status"] == "budget"
    assert len(run.sink) > row["events"]
