"""The measurements of ``make bench`` run, and report the error of a process that failed."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakekafka.spark_bench.engines import spark
from fakekafka.tests.support.paths import ROOT

BROKEN = "import sys; print('first', file=sys.stderr); sys.exit('no cluster to be had')"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Import a module of ``benchmarks``, which is no part of the package."""
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: importlib.import_module(f"benchmarks.{name}")


def test_a_child_that_fails_is_reported_with_its_last_line(
    benchmarks: Callable[[str], Any],
) -> None:
    """The error also keeps the whole output."""
    figures = benchmarks("figures")
    with pytest.raises(figures.MeasurementFailed) as caught:
        figures.in_child(BROKEN)
    assert str(caught.value) == "the child ended with status 1: no cluster to be had"
    assert caught.value.output == "first\nno cluster to be had\n"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            "status -9, without any output",
        ),
        ("raise ValueError('two')", "status 1: ValueError: two"),
        ("raise ValueError('two\\n lines')", "status 1: ValueError: two"),
        ("print()", "the child printed no figures, without any output"),
    ],
)
def test_a_child_that_ends_otherwise_is_reported(
    code: str, told: str, benchmarks: Callable[[str], Any]
) -> None:
    """A child may be killed from outside, raise an exception, or fail silently."""
    figures = benchmarks("figures")
    with pytest.raises(figures.MeasurementFailed, match=told + "$"):
        figures.in_child(code)


def test_a_child_that_succeeds_returns_its_figures(benchmarks: Callable[[str], Any]) -> None:
    """Output on standard error does not matter."""
    code = "import sys; print('a warning', file=sys.stderr); print('[1, 2]')"
    assert benchmarks("figures").in_child(code) == [1, 2]


def test_a_load_client_that_ends_is_reported_with_its_error(
    benchmarks: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client may end at once or at a command."""
    client, figures = benchmarks("client"), benchmarks("figures")
    monkeypatch.chdir(ROOT)
    with (
        client.LoadClient("127.0.0.1:1", batch_bytes=-1) as load,
        pytest.raises(
            figures.MeasurementFailed, match=r"status 1: .*KafkaException: .*batch\.size"
        ),
    ):
        load.fetch("orders", 1)


def test_a_client_in_its_own_process_that_ends_ends_the_measurement(
    benchmarks: Callable[[str], Any],
) -> None:
    """It ends at once and with the reason, not after a minute without acknowledgements."""
    failover, figures = benchmarks("client_failover"), benchmarks("figures")

    def broken(_servers: str, _settings: object, seen: Any) -> None:
        failover._run_child([sys.executable, "-c", BROKEN], seen)

    with pytest.raises(figures.MeasurementFailed, match="no cluster to be had"):
        failover.failover_ms(broken, {}, lambda cluster: None)


@pytest.mark.parametrize(
    ("figure", "number"),
    [("66,496 msg/s", 66496.0), ("1.5 (1.2-9.0)", 1.5), ("-35 %", -35.0), ("not here", None)],
)
def test_a_comparison_reads_the_first_number_of_a_figure(
    figure: str, number: float | None, benchmarks: Callable[[str], Any]
) -> None:
    assert benchmarks("compare").first_number(figure) == number


def test_figures_of_several_runs_are_matched_without_their_numbers(
    benchmarks: Callable[[str], Any],
) -> None:
    """Figures of the same name are numbered."""
    whats = ["5 brokers (1,234 messages)", "  to the first", "6 brokers (1.5 messages)"]
    names = ["N brokers (N messages)", "to the first", "N brokers (N messages) (2)"]
    assert benchmarks("compare").figure_names(whats) == names


def test_a_comparison_reports_rounds_without_a_ratio(
    benchmarks: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    values = {
        "rate": {"there": {0: 10.0, 1: 20.0}, "here": {0: 20.0, 1: 30.0, 2: 99.0}},
        "new": {"there": {}, "here": {0: 1.0}},
    }
    benchmarks("compare").report("virtual", {"rate": "a rate", "new": "a new one"}, values, 3)
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert told[3:] == [
        "a rate 15 30 1.750 (1.500 to 2.000), 2 of 3 rounds",
        "a new one - 1 only on one side, 0 of 3 rounds",
    ]


@pytest.mark.slow
def test_a_comparison_measures_the_given_package(
    benchmarks: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of that package is reported, without any figure."""
    compare, figures = benchmarks("compare"), benchmarks("figures")
    monkeypatch.setenv("BENCH_SIZE", "small")
    (tmp_path / "fakekafka").mkdir()
    (tmp_path / "fakekafka" / "__init__.py").write_text("raise ImportError('the other one')")
    with pytest.raises(figures.MeasurementFailed, match="ImportError: the other one"):
        compare.run_once("virtual", tmp_path)
    found = compare.run_once("virtual", None)
    assert [value > 0 for _, value in found.values()] == [True, True, True]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["HEAD", "nothing"], "unknown: nothing; there are start, throughput"),
        (["HEAD", "--rounds", "0"], "--rounds 0: give at least 1"),
    ],
)
def test_a_comparison_refuses_what_it_cannot_measure(
    arguments: list[str],
    told: str,
    benchmarks: Callable[[str], Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert benchmarks("compare").main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_comparison_with_no_commit_says_so(
    benchmarks: Callable[[str], Any], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit, match="COMPARE=no-such-thing: there is no such commit in "):
        benchmarks("compare").check_out("no-such-thing", tmp_path)


RUN = """
import sys
from benchmarks import run
from benchmarks.figures import in_child
run.MEASUREMENTS = {"broken": lambda: in_child(sys.argv[1])}
sys.exit(run.main(["broken"]))
"""


def test_a_run_reports_a_failure_in_one_line() -> None:
    """The status is 1, and there is no traceback of the measurement itself."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, BROKEN],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == "broken: the child ended with status 1: no cluster to be had\n"


@pytest.mark.parametrize(("statuses", "status"), [([0, -9, 0], 1), ([1, 0, 0], 1), ([0] * 3, 0)])
def test_a_run_continues_after_a_failed_measurement(
    statuses: list[int],
    status: int,
    benchmarks: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The final status is a failure, also after a measurement that was killed."""
    run = benchmarks("run")
    started: list[str] = []

    def child(command: list[str], check: bool) -> subprocess.CompletedProcess[str]:
        started.append(command[-1])
        return subprocess.CompletedProcess(command, statuses[len(started) - 1])

    monkeypatch.setattr(run.subprocess, "run", child)
    names = list(run.MEASUREMENTS)[:3]
    assert run.main(names) == status
    assert started == names


NAMES = re.findall(r'^    "([a-z-]+)": ', (ROOT / "benchmarks/run.py").read_text(), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", NAMES)
def test_every_measurement_runs(name: str) -> None:
    """Each runs at a small size, at which it prints figures and judges none of them."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", name],
        cwd=ROOT,
        env={**os.environ, "BENCH_SIZE": "small"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    header, *figures = done.stdout.strip().splitlines()
    assert header == f"== {name}, at a small size: the figures say nothing"
    assert sum(bool(re.fullmatch(r"  .{58} .*\d.*", line)) for line in figures) >= 1
    assert not any(line.endswith((" ok", " MISSED")) for line in figures)


def test_the_measurement_of_batches_sets_an_existing_attribute_of_the_engine(
    benchmarks: Callable[[str], Any],
) -> None:
    """The measurement sets the engine's seconds per task; small runs do not start Spark."""
    (name,) = re.findall(r"spark\.(\w+) = ", benchmarks("batches").TASK_EACH)
    assert getattr(spark, name) > 0


def test_the_list_of_measurements_is_complete(benchmarks: Callable[[str], Any]) -> None:
    """The names used above are those of the table."""
    assert list(benchmarks("run").MEASUREMENTS) == NAMES


def test_no_request_of_the_large_clusters_is_refused(benchmarks: Callable[[str], Any]) -> None:
    """The controller accepts 10,000 partitions per request, and the slices have at most as many."""
    scale = benchmarks("scale")
    (slice_size,) = re.findall(r"^at_once = (.+?)  #", scale.CODE, re.MULTILINE)
    for shape in (scale.SMALL, scale.LARGE, scale.WIDE):
        at_once = eval(slice_size, {"partitions": shape.partitions})
        assert 0 < at_once * shape.partitions <= 10_000
    assert scale.LARGE.topics * scale.LARGE.partitions == 100_000


def test_every_child_of_a_measurement_is_supervised(texts: dict[str, str]) -> None:
    """A file that starts a process itself raises ``MeasurementFailed`` for it."""
    for path, text in texts.items():
        if path == "benchmarks/run.py" or not re.fullmatch(r"benchmarks/.*\.py", path):
            continue
        called = {
            node.func.attr
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if called & {"Popen", "check_call", "check_output"} or "subprocess.run(" in text:
            assert "ended_early(" in text or "require_success(" in text, path
