"""Runs that did not end rank as the worst in tables, reports and comparisons."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from fakekafka.cli.main import main
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.measuring.histogram import OPEN, BucketHistogram, is_known
from fakekafka.spark_bench.planning.carry_out import carry_out
from fakekafka.spark_bench.planning.plan import make_plan
from fakekafka.spark_bench.reports.compare import ENDLESS, VIOLATIONS, BatchComparison, compare
from fakekafka.spark_bench.reports.figures import figures
from fakekafka.spark_bench.reports.source import ReportSource
from fakekafka.spark_bench.reports.statistics import Observed, Reading, paired_difference
from fakekafka.spark_bench.tables.reader import BatchTables
from fakekafka.tests.spark_bench.suites_for_tests import written
from fakekafka.tracing.story.outages import OutageAccount

DEAD = '''
"""The leader of a partition dies; in some runs every other broker dies, too, and stays dead"""
HEADLINE = "unavailable_ms"

def scenario(run, dead: int = 0):
    simulation = run.simulation(3, config={"zookeeper.session.timeout.ms": 6000})
    simulation.network.latency(lognormal_ms=(0.5, 0.4))
    simulation.create_topic("t", 3, 2)
    load = run.load("t", rate_per_s=10)
    simulation.run_for(2000 + simulation.runtime.rng.random() * 500)
    run.end_warm_up()
    victim = simulation.partition("t", 0).leader
    simulation.broker(victim).kill()
    if run.seed % 10 < dead:
        for broker in set(simulation.broker_ids) - {victim}:
            simulation.broker(broker).kill()
    simulation.run_for(12_000)
    load.stop()
    simulation.run_for(1_000)
'''
VIRTUAL = '''
"""Values without a cluster"""
import random
from fakekafka.testing.running import WaitTimeout

HEADLINE = "took_ms"
MEASURES = {"took_ms": "a time"}

def scenario(run, bad_percent: int = 0, kind: str = "raise", shift: float = 0.0, salt: int = 0):
    rng = random.Random(f"{run.seed} {salt}")
    if rng.random() * 100 < bad_percent:
        if kind == "violation":
            run.problem("a promise was broken")
        else:
            raise WaitTimeout("nothing came")
    for name in ("took_ms", "other_ms", "third_ms", "fourth_ms"):
        run.value(name, rng.lognormvariate(3, 1) + shift)
'''


def test_values_of_unfinished_runs_rank_as_worst() -> None:
    """Values of unfinished runs rank as worst, and a percentile among them is a lower bound."""
    seen = Observed([1, 2, 3, 50], [10, 20], failed=2, absent=4)
    assert [seen.rank(rank) for rank in range(1, 9)] == [
        Reading(1), Reading(2), Reading(3), Reading(50),
        Reading(3, True), Reading(10, True), Reading(20, True), Reading(50, True),
    ]  # fmt: skip
    assert seen.incomplete == "4 of 12 runs"
    assert Observed([], [], failed=3).percentile(50) == Reading(None)
    assert Observed([5.0], [], failed=1, more_is_better=True).rank(1) == Reading(None)


@pytest.mark.parametrize(
    ("count", "percent", "known"),
    [(9, 90, False), (10, 90, True), (99, 99, False), (100, 99, True), (999, 99.9, False),
     (1000, 99.9, True), (1, 50, True), (1, 100, True)],
)  # fmt: skip
def test_a_percentile_of_too_few_values_is_unknown(count: int, percent: float, known: bool) -> None:
    assert is_known(count, percent) == known
    seen = Observed([float(value) for value in range(1, count + 1)])
    assert (seen.percentile(percent).value is not None) == known


def test_the_largest_value_of_a_histogram_is_itself() -> None:
    """A histogram's largest value is exact, and no percentile exceeds it."""
    histogram = BucketHistogram()
    for value in (1.0, 7777.7):
        histogram.add(value)
    assert histogram.reading(100) == (7777.7, False)
    assert histogram.percentile(99) <= 7777.7


def test_open_values_of_a_histogram_are_merged_and_rank_as_worst() -> None:
    one, other = BucketHistogram(), BucketHistogram()
    one.add(100.0, 8)
    other.add_open(28_000.0)
    other.add_open(0.0)
    one.merge(other.rows())
    assert (one.total, one.open) == (10, 2)
    assert one.reading(80) == (100.0, False)
    value, is_bound = one.reading(100)
    assert is_bound
    assert 28_000 * 0.97 < value <= 28_000
    assert all(bucket > OPEN // 2 for bucket, _ in other.rows())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_fails_its_run(value: float, tmp_path: Path) -> None:
    """A value that is not a number fails its run, and the report can still be made."""
    text = f'"""Bad"""\ndef scenario(run):\n    run.value("took_ms", float("{value}"))\n'
    outcome = carry_out(plan := make_plan(written(tmp_path, text, "bad.py"), 1), plan.specs[0])
    assert outcome.row["status"] == "error"
    expected = f"UsageError: the value of took_ms must be a finite number, not {value}"
    assert outcome.row["problems"] == expected
    sampled = text.replace("run.value", "run.sample")
    outcome = carry_out(plan := make_plan(written(tmp_path, sampled, "bad.py"), 1), plan.specs[0])
    assert "must be a finite number" in outcome.row["problems"]


@pytest.mark.slow
def test_a_partition_that_never_comes_back_is_in_every_figure(tmp_path: Path) -> None:
    suite = written(tmp_path, DEAD, "dead.py")
    run_suite(suite, runs=10, engine="serial", out=tmp_path / "dead", dead=3)
    rows = BatchTables(tmp_path / "dead").runs("arrow").to_pylist()
    for row in rows:
        is_dead = row["seed"] % 10 < 3
        assert (row["outages_open"] > 0) == (row["unanswered"] > 0) == is_dead
        assert ("unavailable_ms" in (row["at_least"] or "").split(",")) == is_dead
        if is_dead:
            assert row["unavailable_ms"] > 11_000
            assert row["unavailable_partition_s"] > 11
            assert row["detect_ms"] is None
    source = ReportSource(tmp_path / "dead")
    (configuration,) = source.configurations
    assert configuration.observed("unavailable_ms").percentile(90).is_bound
    assert any("3 of 10 runs ended with partitions that" in line for line in source.unfinished())
    series = BatchTables(tmp_path / "dead").series("arrow").to_pylist()
    last = {row["run_id"]: row["unavailable"] for row in series}
    assert all((last[row["run_id"]] > 0) == (row["seed"] % 10 < 3) for row in rows)
    about = {figure.key: figure.about for figure in figures(source)}
    assert "3 had not ended and are lower bounds" in about["headline"]
    assert "Of 7 of 10 runs" in about["phases"]
    assert "had not ended, beyond the ends of the curves" in about["distribution-response_ms"]
    assert "had not ended, beyond" in about["distribution-partition_unavailable_ms"]
    assert "had not ended" not in about["distribution-service_ms"]
    assert bench("report", str(tmp_path / "dead"), "--no-pictures") == 0
    page = (tmp_path / "dead" / "report.html").read_text(encoding="utf-8")
    assert "max&nbsp;more&nbsp;than&nbsp;" in page
    assert "records that were never answered" in page


def test_a_partition_that_loses_two_leaders_has_one_open_outage() -> None:
    account = OutageAccount()
    account.decide(0, 3, "t-0", 1, 0, [1, 2])
    account.begin_wait(5, "t-0")
    account.crash(10, 1)
    account.decide(15, 3, "t-0", 2, 1, [2])
    account.crash(20, 2)
    (outage,) = account.open_outages(100)
    assert (outage.begun_us, outage.ended_us, outage.leader) == (5, None, 1)


def bench(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    return ended.value.code


@pytest.mark.slow
def test_the_report_of_a_batch_includes_its_dead_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = written(tmp_path, DEAD, "dead.py")
    options = ("--runs", "10", "--engine", "serial", "--set", "dead=3")
    assert bench("run", suite, *options) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "3 of 10 runs ended with partitions that took no record again: " in shown
    assert "> 1" in shown
    assert bench("run", suite, *options, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unfinished"]["outages_open"]["runs"] == 3
    metric = found["configurations"][0]["metrics"]["unavailable_ms"]
    assert (metric["more_than"], metric["incomplete"]) == (["p90", "max"], "7 of 10 runs")


@pytest.fixture
def virtual(tmp_path: Path) -> Any:
    """Compare two batches of drawn values."""
    suite = written(tmp_path, VIRTUAL, "virtual.py")

    def run(name: str, seed: int = 0, runs: int = 20, **values: Any) -> Path:
        out = tmp_path / name
        run_suite(suite, runs=runs, seed=seed, engine="serial", out=out, overwrite=True, **values)
        return out

    return run


def compared(before: Path, after: Path) -> BatchComparison:
    return compare(ReportSource(before), ReportSource(after))


@pytest.mark.slow
def test_equal_batches_with_other_seeds_hardly_ever_differ(virtual: Any) -> None:
    """Equal batches with other seeds rarely differ, whether all runs end or a fifth do not."""
    alarms = 0
    for number in range(20):
        bad = 20 * (number % 2)
        first = virtual("first", 1000 * number, bad_percent=bad)
        second = virtual("second", 1000 * number + 500, bad_percent=bad)
        found = compared(first, second)
        assert (found.by_order, found.pairs) == (True, 20)
        alarms += bool(found.significant) or found.is_regression(0)
    assert alarms <= 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["raise", "violation"])
def test_dead_runs_fail_the_gate(
    kind: str, virtual: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = virtual("good"), virtual("bad", bad_percent=45, kind=kind)
    found = compared(good, bad)
    what = ENDLESS if kind == "raise" else VIOLATIONS
    (told,) = found.proportions
    assert (told.what, told.before, told.is_significantly_worse) == (what, 0, True)
    assert told.after >= 6
    assert bench("compare", str(good), str(bad), "--fail-over", "1000") == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{what}: 0 of 20 before, {told.after} of 20 after (significant)" in shown
    if kind == "raise":
        assert f"{told.after} pairs in which a run has no value" in shown
    assert bench("compare", str(bad), str(good), "--fail-over", "0") == 0


def test_runs_without_a_partner_are_counted(virtual: Any) -> None:
    found = compared(virtual("first"), virtual("second", 10))
    assert (found.by_order, found.pairs, found.unpaired) == (False, 10, (10, 10))


def test_an_interval_holds_whatever_the_lower_bounds_hide() -> None:
    """An interval contains the true median, whatever larger values the lower bounds stand for."""
    rng = random.Random(3)
    for _ in range(200):
        old = [rng.uniform(0, 10) for _ in range(30)]
        new = [value + rng.uniform(0, 4) for value in old]
        spans = [((a, a), (b, math.inf if b > 11 else b)) for a, b in zip(old, new, strict=True)]
        found = paired_difference(spans)
        for _ in range(5):
            real = [b + rng.expovariate(0.1) * (b > 11) for b in new]
            exact = paired_difference([((a, a), (b, b)) for a, b in zip(old, real, strict=True)])
            assert found.low is not None
            assert found.high is not None
            assert exact.low is not None
            assert exact.high is not None
            assert found.low <= exact.low <= exact.high <= found.high


def test_open_values_are_infinite_in_the_tables(tmp_path: Path) -> None:
    """Values of unfinished runs are infinite in ``hist``, so that they rank as worst anywhere."""
    suite = written(tmp_path, DEAD, "dead.py")
    run_suite(suite, runs=1, engine="serial", out=tmp_path / "out", dead=1)
    hist = parquet.read_table(tmp_path / "out" / "hist" / "hist.parquet")
    assert math.inf in hist["value"].to_pylist()
