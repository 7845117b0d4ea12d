"""Reports and comparisons: made from the tables, offline, and showing differences."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fakekafka import UsageError
from fakekafka.cli.main import main
from fakekafka.spark_bench.batch import run_suite
from fakekafka.spark_bench.measuring.run import PHASES
from fakekafka.spark_bench.reports import figures as figures_module
from fakekafka.spark_bench.reports.compare import compare
from fakekafka.spark_bench.reports.figures import figures
from fakekafka.spark_bench.reports.source import ReportSource
from fakekafka.tests.spark_bench.suites_for_tests import SMALL, TROUBLE, written
from fakekafka.tests.support.chromium import CHROMIUM, chromium

pytestmark = pytest.mark.slow
NEEDS_CHROMIUM = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
SEEDS = 12
SHAPE: dict[str, Any] = {"session_timeout_ms": 6000, "rate_per_s": 20}


def bench(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    return ended.value.code


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a batch, one with twice the latency, and one of another release."""
    folder = tmp_path_factory.mktemp("batches")

    def run(name: str, **more: Any) -> None:
        shape = {**SHAPE, **more}
        run_suite("failover", runs=SEEDS, engine="serial", out=folder / name, matrix={}, **shape)

    run("first")
    run("slow", latency_median_ms=1.0)
    run("old", kafka_version="2.8")
    return folder


def test_a_batch_does_not_differ_from_itself(
    batches: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = str(batches / "first")
    assert bench("compare", first, first, "--fail-over", "0") == 0
    output = capsys.readouterr().out
    assert "no significant difference" in output
    assert f"{SEEDS} pairs of runs with the same seeds" in output


def test_twice_the_latency_is_found_and_can_fail_a_build(
    batches: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twice the latency is reported as twice the median, and as an exit status for CI."""
    first, slow = str(batches / "first"), str(batches / "slow")
    assert bench("compare", first, slow, "--json", "--fail-over", "50") == 1
    found = json.loads(capsys.readouterr().out)
    assert found["differs"] == {"latency_median_ms": [0.5, 1.0]}
    row = next(one for one in found["differences"] if one["column"] == "propagate_ms")
    assert row["after"] >= row["before"]
    end = next(one for one in found["differences"] if one["column"] == "end_to_end_p50_ms")
    assert end["before"] > 0
    sure = {one["column"] for one in found["differences"] if one["sure"]}
    assert "client_ms" in sure or "elect_ms" in sure
    assert bench("compare", slow, first, "--fail-over", "50") == 0  # better, not worse
    assert bench("compare", first, slow, "--fail-over", "100000") == 0


def test_two_releases_are_compared_seed_by_seed(batches: Path) -> None:
    found = compare(ReportSource(batches / "old"), ReportSource(batches / "first"))
    assert found.differing_parameters == {"kafka_version": ("2.8", "3.9")}
    assert found.pairs == SEEDS
    assert not found.has_too_few
    for one in found.differences:
        low, high = one.difference.low, one.difference.high
        assert low is not None
        assert high is not None
        assert low <= one.difference.value <= high
    assert found.confidence > 0.99  # of each, so that all of them together hold


def test_batches_without_common_runs_are_refused(batches: Path, tmp_path: Path) -> None:
    small = written(tmp_path, SMALL, "small.py")
    run_suite(small, runs=1, engine="serial", out=tmp_path / "small")
    with pytest.raises(UsageError, match="no runs in common"):
        compare(ReportSource(batches / "first"), ReportSource(tmp_path / "small"))


def test_a_report_is_one_page_that_loads_nothing(
    batches: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report is one reproducible page that is made from the tables and loads nothing."""
    first = tmp_path / "first"
    shutil.copytree(batches / "first", first)
    assert bench("report", str(first)) == 0
    listed = capsys.readouterr().out.split()
    page = (first / "report.html").read_text(encoding="utf-8")
    assert [Path(name).suffix for name in listed] == [".html", *[".png"] * (len(listed) - 1)]
    assert all(Path(name).stat().st_size > 5_000 for name in listed)
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)  # without plotly's code
    assert not re.search(r"(src|href)=|https?://|@import", own)
    assert "fakekafka bench trace failover --seed" in own
    keys = [figure.key for figure in figures(ReportSource(first))]
    assert keys[:3] == ["headline", "phases", "rate"]
    assert all(f'id="{key}"' in own for key in keys)
    assert "Every run ended, and kept every promise" in own
    assert bench("report", str(first), "-o", str(tmp_path / "again.html"), "--no-pictures") == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert not (tmp_path / "pictures").exists()


def test_phases_in_the_report_add_up_to_the_whole(batches: Path) -> None:
    source = ReportSource(batches / "first")
    for row in source.rows:
        assert sum(row[name] for name in PHASES) == pytest.approx(row["unavailable_ms"])
    figure = next(one for one in figures(source) if one.key == "phases")
    column = source.configurations[0].column("unavailable_ms")
    assert sum(curve.y[0] for curve in figure.curves) == pytest.approx(sum(column) / len(column))


def test_a_figure_says_which_of_many_configurations_it_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = written(tmp_path, SMALL, "small.py")
    run_suite(suite, runs=1, engine="serial", out=tmp_path / "out")
    source = ReportSource(tmp_path / "out")
    told = "Drawn are the first 1 of 2 configurations."
    assert not [figure for figure in figures(source) if told in figure.about]
    monkeypatch.setattr(figures_module, "_LINES_MAX", 1)
    cut = [figure for figure in figures(source) if len(figure.curves) == 1 and told in figure.about]
    assert {"rate", "distribution-response_ms"} <= {figure.key for figure in cut}


def test_failed_runs_are_in_the_report_with_their_commands(tmp_path: Path) -> None:
    """Failed runs are in the report with their commands, and markup in messages is escaped."""
    text = TROUBLE.replace("the run broke", "<b>broke</b>")
    suite = written(tmp_path, text, "trouble.py")
    matrix = {"kind": ["none", "raise"]}
    run_suite(suite, runs=1, engine="serial", out=tmp_path / "out", matrix=matrix)
    assert bench("report", str(tmp_path / "out"), "--no-pictures") == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "RuntimeError: &lt;b&gt;broke&lt;/b&gt;" in page
    assert "--set kind=raise" in page
    assert "1 runs that are not ok" in page


def test_a_directory_without_a_batch_gives_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("report", str(tmp_path)) == 2
    assert "has no batch" in capsys.readouterr().err


@NEEDS_CHROMIUM
def test_figures_are_drawn_in_a_browser_without_network(batches: Path, tmp_path: Path) -> None:
    """In a browser without network every figure is drawn, and no error is logged."""
    page = tmp_path / "report.html"
    assert bench("report", str(batches / "first"), "-o", str(page), "--no-pictures") == 0
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000", page.as_uri()],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    keys = [figure.key for figure in figures(ReportSource(batches / "first"))]
    assert done.stdout.count("main-svg") >= len(keys)
    for key in keys:
        assert re.search(
            rf'id="{key}"[^>]*js-plotly-plot|js-plotly-plot[^>]*id="{key}"', done.stdout
        )


ONE_VALUE = '''
"""Every run of a configuration measures the same value, and many columns"""
MATRIX = {"wait_ms": [10.0, 20.0], "a_long_name_of_a_parameter": ["and its long value"]}

def scenario(run, wait_ms: float = 10.0, a_long_name_of_a_parameter: str = ""):
    run.sample("partition_unavailable_ms", wait_ms)
    run.value("a_second", 999.7)
    for number in range(12):
        run.value(f"partition_unavailable_p99_{number}_ms", 12_345.678 + run.seed)
'''


@NEEDS_CHROMIUM
def test_a_laptop_shows_every_column_and_a_mark_for_a_single_value(tmp_path: Path) -> None:
    """At 1366 pixels no table is wider than the page, and a single value is drawn as a mark."""
    suite = written(tmp_path, ONE_VALUE, "one_value.py")
    run_suite(suite, runs=15, engine="serial", out=tmp_path / "out")
    page = tmp_path / "report.html"
    assert bench("report", str(tmp_path / "out"), "-o", str(page)) == 0
    assert "<b>1,000</b>" in page.read_text(encoding="utf-8")  # not 1e+03
    with chromium(tmp_path / "profile") as browser:
        opened = browser.new_page()
        opened.set_viewport_size({"width": 1366, "height": 768})
        opened.goto(page.as_uri())
        assert opened.locator("thead th.number", has_text="_").count() == 14
        scrolled = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
        assert opened.eval_on_selector_all(".wide", scrolled) == 0
        drawn = "#distribution-partition_unavailable_ms .scatterlayer path.point"
        opened.wait_for_selector(drawn)
        marks = opened.locator(drawn)
        assert marks.count() == 2
        assert all(mark.bounding_box()["width"] >= 8 for mark in marks.all())
    curves = next(one.curves for one in figures(ReportSource(tmp_path / "out"))
                  if one.key == "distribution-partition_unavailable_ms")  # fmt: skip
    assert [(len(curve.x), curve.is_short) for curve in curves] == [(1, True), (1, True)]
