"""``fakekafka bench``: listing and running suites, as text and JSON, with exit status 0, 1 or 2."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fakekafka.cli import bench as bench_command
from fakekafka.cli.main import main
from fakekafka.spark_bench.planning.suite import SUITES, find_source, load_suite
from fakekafka.tests.spark_bench.suites_for_tests import SCENARIO, SMALL, written
from fakekafka.tests.support.terminal import press_ctrl_c, run_at_terminal
from rich.console import Console

QUICK = ["--engine", "serial", "--no-matrix", "--set", "session_timeout_ms=6000",
         "--set", "rate_per_s=20"]  # fmt: skip
BREAKS = '"""Breaks"""\ndef scenario(run): raise RuntimeError("the run broke")\n'


def bench(*arguments: str) -> object:
    """Return the exit status of ``fakekafka bench ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    return ended.value.code


def test_list_names_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("list") == 0
    output = capsys.readouterr().out
    for name in SUITES:
        about = load_suite(find_source(name)).about
        assert name in output
        assert " ".join(about.split()) in " ".join(output.split())


def test_list_prints_one_line_per_suite_if_the_output_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(SUITES)


def test_list_as_json_is_an_object_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {name: load_suite(find_source(name)).about for name in SUITES}


def test_show_prints_parameters_matrix_and_measures(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("show", "failover") == 0
    output = capsys.readouterr().out
    assert "varies session_timeout_ms = 18000, 6000" in output
    assert "  brokers = 3" in output
    assert "  full_isr_ms: from the crash until" in output


def test_run_prints_percentiles_and_writes_tables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench("run", "failover", "--runs", "2", "--out", str(tmp_path), *QUICK) == 0
    captured = capsys.readouterr()
    assert "2 of 2 runs kept every promise" in captured.out
    assert "unavailable_ms" in captured.out
    assert "failover: 2 of 2 runs" in captured.err
    assert (tmp_path / "runs" / "runs.parquet").is_file()


def test_run_as_json_says_the_same_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("run", "failover", "--runs", "2", "--json", *QUICK) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["runs"], found["ok"]) == (2, 2)
    assert (found["suite"], found["engine"], found["broken"]) == ("failover", "serial", [])
    (configuration,) = found["configurations"]
    assert configuration["parameters"]["session_timeout_ms"] == 6000
    metrics = configuration["metrics"]
    assert list(metrics)[:2] == ["unavailable_ms", "before_ms"]
    for metric in metrics.values():
        assert list(metric) == ["over", "count", "p50", "p90", "p99", "max", "more_than",
                                "incomplete"]  # fmt: skip
        assert (metric["more_than"], metric["incomplete"]) == ([], "")
        known = [value for name in ("p50", "p90", "p99", "max")
                 if (value := metric[name]) is not None]  # fmt: skip
        assert known == sorted(known)
        # Two runs are too few for their worst tenth; the many records are not.
        assert (metric["p90"] is None) == (metric["count"] < 10)
        assert (metric["p99"] is None) == (metric["count"] < 100)
    assert metrics["full_isr_ms"]["over"] == "runs"
    assert metrics["full_isr_ms"]["count"] == 2
    assert metrics["service_ms"]["over"] == "records"
    assert captured.err == ""


@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_no_terminal_is_so_narrow_that_numbers_are_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """In a narrow terminal names of metrics wrap, and numbers stay whole on one line."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(bench_command, "console", Console())  # reads the width when it is created
    assert bench("run", "failover", "--runs", "1", "--set", "rate_per_s=20", *QUICK[:3]) == 0
    output = capsys.readouterr().out
    assert "…" not in output
    assert all(len(line) <= max(int(columns), 75) for line in output.splitlines())
    cells = r"│ +([0-9,]+\.[0-9]|unknown) +(?=│)"
    numbers = [re.findall(cells, line) for line in output.splitlines()]
    assert [len(found) for found in numbers if found] == [4] * 17


def test_broken_runs_are_in_the_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    suite = written(tmp_path, BREAKS, "breaks.py")
    assert bench("run", suite, "--runs", "1", "--seed", "8", "--engine", "serial", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["ok"], found["statuses"]) == (1, 0, {"error": 1})
    (broken,) = found["broken"]
    assert (broken["seed"], broken["problems"]) == (8, "RuntimeError: the run broke")
    assert broken["reproduce"].startswith(f"fakekafka bench run {suite} --seed 8 --runs 1")


def test_a_version_that_looks_like_a_number_is_parsed_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """``kafka_version=0.10`` is parsed as a version, not as a number."""
    assert bench("run", "failover", "--runs", "1", *QUICK, "--set", "kafka_version=0.10") == 0
    assert "1 of 1 runs" in capsys.readouterr().out


def test_a_broken_promise_gives_status_1_and_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    suite = written(tmp_path, BREAKS, "breaks.py")
    assert bench("run", suite, "--runs", "1", "--seed", "8", "--engine", "serial") == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "0 of 1 runs kept every promise" in output
    assert "seed 8, error: RuntimeError: the run broke" in output
    assert f"fakekafka bench run {suite} --seed 8 --runs 1 --no-matrix" in output


def test_any_file_can_be_a_suite_and_options_choose_its_matrix(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each configuration of a matrix has a table, and values are parsed as the parameter's type."""
    suite = written(tmp_path, SMALL, "small.py")
    options = ["--runs", "1", "--engine", "serial", "--matrix", "records=1,3", "--set", "fast=no"]
    assert bench("run", suite, *options) == 2
    assert "fast must be bool, not 'no'" in capsys.readouterr().err
    assert bench("run", suite, *options[:-1], "fast=false") == 0
    output = capsys.readouterr().out
    assert "small: records=1, 1 runs" in output
    assert "small: records=3, 1 runs" in output


def test_a_run_of_a_scenario_file_can_be_recorded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    suite = written(tmp_path, SCENARIO, "dies.toml")
    out = tmp_path / "run.fktrace"
    options = ["--seed", "3", "--set", "cluster.brokers=2", "-o", str(out)]
    assert bench("trace", suite, *options) == 0
    assert f"fakekafka trace story {out}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["trace", "story", str(out)])
    assert ended.value.code == 0
    assert "orders-0 accepts records again" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["failovr"], "did you mean 'failover'"),
        (["failover", "--engine", "abacus"], "there is no engine 'abacus'"),
        (["failover", "--runs", "0"], "runs must be at least 1"),
        (["failover", "--samples", "-2"], "samples must be at least 0, not -2"),
        (["failover", "--set", "brokers"], "--set takes name=value, not 'brokers'"),
        (["failover", "--set", "broker=3"], "failover has no parameter 'broker'"),
        (["failover", "--set", "brokers=many"], "brokers must be int, not 'many'"),
        (["failover", "--set", "kafka_version=9"], "kafka_version must be one of"),
        (["failover", "--engine", "process", "--workers", "0"], "workers must be at least 1"),
        (["failover", "--matrix", "brokers"], "--matrix takes name=value,value, not 'brokers'"),
        (["failover", "--matrix", "brokers=3", "--no-matrix"], "cannot be combined"),
        (["failover", "--budget", "wall_s=long"], "--budget takes kind=number, not 'wall_s=long'"),
        (["failover", "--budget", "wall=5"], "there is no budget 'wall'"),
        (["failover", "--resume"], "name it with --out"),
        (["failover", "--engine", "serial", "--conf", "a=b"], "belong to the engine spark"),
    ],
)
def test_wrong_usage_gives_status_2_and_a_message(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench("run", *arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert captured.out == ""


def test_a_table_cannot_go_where_a_file_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    assert bench("run", "failover", "--runs", "1", "--out", str(taken), *QUICK) == 2
    assert str(taken) in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "process"])
def test_ctrl_c_at_a_terminal_ends_a_batch_in_one_line(engine: str, tmp_path: Path) -> None:
    """Ctrl-C ends a batch with status 130 and one line without traceback, and keeps its parts."""
    command = ["bench", "run", "failover", "--runs", "100000", "--no-matrix", "--workers", "1",
               "--out", str(tmp_path / "new"), "--engine", engine]  # fmt: skip
    program = [sys.executable, "-m", "fakekafka.cli.main", *command]
    status, text = run_at_terminal(program, b" of 100000 runs", press_ctrl_c)
    assert status == 130, text
    assert re.search(r"failover: ended after \d+ of 100000 runs", text), text
    assert "Traceback" not in text
    assert list((tmp_path / "new" / "runs").glob("part-*.parquet"))
