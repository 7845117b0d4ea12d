"""Single runs: pure functions of scenario and seed, whose failures are rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka import UsageError
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.measuring.histogram import BucketHistogram
from fakekafka.spark_bench.measuring.run import Run
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.tests.spark_bench.suites_for_tests import SCENARIO, SMALL, TROUBLE, written


@pytest.mark.slow
def test_every_kind_of_failure_is_a_row_with_its_status(tmp_path: Path) -> None:
    """An exception, a broken promise and an exceeded budget each give a row with its status."""
    batch = run_suite(written(tmp_path, TROUBLE, "trouble.py"), runs=1, engine="serial")
    found = {row["kind"]: (row["status"], row["problems"]) for row in batch.rows}
    assert found == {
        "none": ("ok", ""),
        "raise": ("error", "RuntimeError: the run broke"),
        "promise": ("violation", "a promise was broken"),
        "events": ("budget", "events: the run had 20,000 and did not end"),
        "virtual": ("budget", "virtual time: the run did not end within 500 s"),
        "wall": ("budget", "wall time: the run took longer than 4 s"),
        "memory": ("memory", "the run needed more than 300 MB"),
    }
    assert (batch.runs, batch.ok) == (7, 1)
    assert all(row["reproduce"].endswith(f"--set kind={row['kind']}") for row in batch.rows[1:])
    assert [row["status"] for row in batch.broken] == [
        row["status"] for row in batch.rows if row["status"] != "ok"
    ] or len(batch.broken) == 6


def test_a_row_has_the_measures_and_the_parameters_of_the_plan(tmp_path: Path) -> None:
    plan = make_plan(written(tmp_path, SMALL, "small.py"), 1, 4, matrix={})
    outcome = carry_out(plan, plan.specs[0])
    row = outcome.row
    assert list(row)[:4] == ["run_id", "suite", "configuration", "seed"]
    assert (row["records"], row["name"], row["fast"], row["wait_ms"]) == (2, "t", True, 1.0)
    assert (row["status"], row["seed"], row["even"], row["who"]) == ("ok", 4, True, "t")
    assert row["acknowledged"] >= 2
    assert row["took_ms"] <= row["virtual_ms"]
    counts = {name: sum(n for _, n in rows) for name, rows in outcome.histograms.items()}
    assert counts["response_ms"] == counts["end_to_end_ms"] == row["acknowledged"]
    exact = BucketHistogram(dict(outcome.histograms["response_ms"]))
    assert row["response_p50_ms"] == exact.percentile(50)
    assert sum(second[1] for second in outcome.series) == row["acknowledged"]
    assert outcome.samples == []
    assert outcome.wall_ms > 0


def test_a_run_gives_the_same_whatever_ran_before_it_in_the_process(tmp_path: Path) -> None:
    """A run's row, histograms and series do not depend on the runs before it."""
    plan = make_plan(written(tmp_path, SMALL, "small.py"), 2)
    forth = [carry_out(plan, spec) for spec in plan.specs]
    back = [carry_out(plan, spec) for spec in plan.specs[::-1]][::-1]
    for one, other in zip(forth, back, strict=True):
        assert (one.row, one.histograms, one.series) == (other.row, other.histograms, other.series)
    assert len({outcome.row["fingerprint"] for outcome in forth}) == 2


@pytest.mark.slow
def test_a_stall_has_its_full_weight_in_an_open_loop_and_not_in_a_closed_one() -> None:
    """In an open loop, unlike a closed one, records that arrive during a stall of 2 s count."""

    def latencies(**load: object) -> BucketHistogram:
        run = Run(1)
        simulation = run.simulation(1)
        simulation.create_topic("t")
        run.load("t", **load)
        simulation.run_for(1000)
        run.end_warm_up()
        simulation.run_for(8000)
        simulation.broker(1).pause()
        simulation.run_for(2000)
        simulation.broker(1).resume()
        run.settle()
        run.close()
        (name,) = [name for name in run.meter.histograms if "response" in name]
        return run.meter.histograms[name]

    open_loop = latencies(rate_per_s=100)
    closed_loop = latencies(model="closed", in_flight=1)
    assert open_loop.total == pytest.approx(1000, abs=3)
    # A fifth of the records arrived during the stall and waited 0 to 2 s, evenly distributed.
    assert open_loop.percentile(79) < 20
    assert open_loop.percentile(90) == pytest.approx(1000, rel=0.05)
    assert open_loop.percentile(99) == pytest.approx(1900, rel=0.05)
    assert open_loop.percentile(100) == pytest.approx(2000, rel=0.02)
    # The closed loop sent one request in these two seconds.
    assert closed_loop.percentile(99.9) < 20
    assert closed_loop.percentile(100) == pytest.approx(2000, rel=0.02)


def test_a_scenario_file_is_measured_like_any_suite(tmp_path: Path) -> None:
    """A scenario file is measured by outages, latencies and its own expectations."""
    path = written(tmp_path, SCENARIO, "dies.toml")
    plan = make_plan(path, 1, 3)
    for spec in plan.specs:
        row = carry_out(plan, spec).row
        assert row["status"] == "ok", row["problems"]
        assert row["cluster_brokers"] == dict(spec.parameters)["cluster.brokers"]
        assert row["unavailable_ms"] > 4000
        assert row["response_max_ms"] > 4000
        assert row["lost"] == row["duplicated"] == 0


def test_a_warm_up_is_counted_and_not_measured() -> None:
    run = Run(1)
    simulation = run.simulation(1)
    simulation.create_topic("t")
    load = run.load("t", rate_per_s=100)
    simulation.run_for(500)
    run.end_warm_up()
    simulation.run_for(500)
    run.settle()
    assert len(load.acknowledged) == 100 or len(load.acknowledged) == 101
    assert run.meter.histograms["response_ms"].total in (50, 51)
    assert run.meter.histograms["response_ms"].percentile(100) < 5
    run.close()


def test_a_run_has_one_cluster_and_its_own_seed() -> None:
    run = Run(1)
    with pytest.raises(UsageError, match=r"call run.simulation\(\) first"):
        run.load("t")
    with pytest.raises(UsageError, match="omit seed"):
        run.simulation(1, seed=5)
    run.simulation(1)
    with pytest.raises(UsageError, match="a run has one simulation"):
        run.simulation(1)
    run.close()


def test_some_runs_of_each_configuration_keep_every_value(tmp_path: Path) -> None:
    plan = make_plan(written(tmp_path, SMALL, "small.py"), 2, 7, samples=1)
    outcomes = [carry_out(plan, spec) for spec in plan.specs]
    assert [bool(outcome.samples) for outcome in outcomes] == [True, False, True, False]
    kept = [value for name, _, value in outcomes[0].samples if name == "response_ms"]
    histogram = BucketHistogram()
    for value in kept:
        histogram.add(value)
    assert histogram.rows() == outcomes[0].histograms["response_ms"]


LEADER_ALONE = '''
"""A leader that acknowledges before its follower has a record dies"""

def scenario(run):
    simulation = run.simulation(2, config={"zookeeper.session.timeout.ms": 6000})
    simulation.create_topic("t", assignment={0: [1, 2]})
    load = run.load("t", rate_per_s=100, acks=1)
    simulation.run_for(1000)
    simulation.network.latency(200, source="broker-1", target="broker-2")
    simulation.run_for(1000)
    simulation.broker(1).power_off()
    load.stop()
    simulation.run_until(lambda: simulation.partition("t", 0).leader == 2)
    simulation.broker(1).start()
    run.settle()
'''
DEAF_CONSUMER = '''
"""The consumer is cut off before the last records are acknowledged"""

def scenario(run):
    simulation = run.simulation(1)
    simulation.create_topic("t", 1)
    load = run.load("t", rate_per_s=100, consumers=1, producers=1)
    simulation.run_for(1000)
    simulation.network.partition([load.consumers[0].name], ["broker-1"])
    simulation.run_for(500)
    run.settle()
'''


def test_records_lost_without_a_promise_are_a_figure_and_no_violation(tmp_path: Path) -> None:
    plan = make_plan(written(tmp_path, LEADER_ALONE, "alone.py"), 1)
    row = carry_out(plan, plan.specs[0]).row
    assert row["status"] == "ok", row["problems"]
    assert 10 <= row["lost"] <= 50
    assert row["lost_promised"] == row["expired"] == row["duplicated"] == 0


def test_acknowledged_records_that_were_never_read_rank_as_worst(tmp_path: Path) -> None:
    plan = make_plan(written(tmp_path, DEAF_CONSUMER, "deaf.py"), 1)
    outcome = carry_out(plan, plan.specs[0])
    row, counts = outcome.row, dict(outcome.histograms["end_to_end_ms"])
    assert row["status"] == "ok", row["problems"]
    assert row["unanswered"] == 0
    assert 50 <= row["unread"] <= 60
    assert sum(counts.values()) == row["acknowledged"]
    assert "end_to_end_max_ms" in row["at_least"].split(",")
    assert row["end_to_end_max_ms"] >= 480
