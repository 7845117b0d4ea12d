"""``fakekafka bench``: list and run, in words and as JSON, exit status 0, 1 or 2."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest
from fakekafka.cli import bench as bench_command
from fakekafka.cli.main import main
from fakekafka.spark_bench.suites.catalogue import SUITES, Suite
from fakekafka.spark_bench.suites.failover import FailoverParameters
from rich.console import Console

SMALL = ["--engine", "serial", "--set", "session_timeout_ms=6000", "--set", "rate_per_s=20"]


def bench(*arguments: str) -> object:
    """Exit status of ``fakekafka bench ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    return ended.value.code


def test_list_names_the_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("list") == 0
    output = capsys.readouterr().out
    for name, (_, _, about) in SUITES.items():
        assert name in output
        assert " ".join(about.split()) in " ".join(output.split())


def test_list_as_json_is_an_object_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("list", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found == {name: about for name, (_, _, about) in SUITES.items()}


@pytest.mark.slow
def test_run_prints_percentiles_and_writes_tables(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert bench("run", "failover", "--runs", "2", "--out", str(tmp_path), *SMALL) == 0
    captured = capsys.readouterr()
    assert "2 of 2 runs kept every promise" in captured.out
    assert "unavailability" in captured.out
    assert "failover: 2 of 2 runs" in captured.err
    assert (tmp_path / "runs" / "runs.parquet").is_file()


@pytest.mark.slow
def test_run_as_json_says_the_same_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("run", "failover", "--runs", "2", "--json", *SMALL) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert (found["runs"], found["ok"]) == (2, 2)
    assert (found["suite"], found["engine"], found["broken"]) == ("failover", "serial", [])
    assert list(found["metrics"]) == [
        "unavailable_ms", "detect_ms", "elect_ms", "client_ms", "full_isr_ms", "service_ms",
        "response_ms",
    ]  # fmt: skip
    for metric in found["metrics"].values():
        assert list(metric) == ["over", "count", "p50", "p90", "p99", "max"]
        assert 0 < metric["p50"] <= metric["p90"] <= metric["p99"] <= metric["max"]
    assert found["metrics"]["full_isr_ms"]["over"] == "runs"
    assert found["metrics"]["full_isr_ms"]["count"] == 2
    assert found["metrics"]["service_ms"]["over"] == "records"
    assert captured.err == ""


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["20", "40", "80", "200"])
def test_no_terminal_is_so_narrow_that_numbers_are_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """Names of metrics wrap, numbers stand whole in one line each."""
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(bench_command, "console", Console())  # it looks when it is made
    assert bench("run", "failover", "--runs", "1", "--set", "rate_per_s=20", *SMALL[:2]) == 0
    output = capsys.readouterr().out
    assert "…" not in output
    assert all(len(line) <= max(int(columns), 75) for line in output.splitlines())
    numbers = [re.findall(r"│ +([0-9,]+\.[0-9]) +(?=│)", line) for line in output.splitlines()]
    assert [len(found) for found in numbers if found] == [4] * 7


@pytest.fixture
def breaking_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite ``breaks``, of which no run comes to its end."""

    def breaks(_seed: int, _parameters: Any) -> dict[str, Any]:
        raise RuntimeError("the run broke")

    monkeypatch.setitem(SUITES, "breaks", Suite(FailoverParameters, breaks, "breaks"))


@pytest.mark.usefixtures("breaking_suite")
def test_broken_runs_are_in_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench("run", "breaks", "--runs", "1", "--seed", "8", "--engine", "serial", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["ok"], found["metrics"]) == (1, 0, {})
    (broken,) = found["broken"]
    assert (broken["seed"], broken["problems"]) == (8, "RuntimeError: the run broke")
    assert broken["reproduce"].startswith("fakekafka bench run breaks --runs 1 --seed 8")


@pytest.mark.slow
def test_a_version_that_looks_like_a_number_stays_what_was_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0.10 is a version of Kafka, and no way to write a tenth."""
    assert bench("run", "failover", "--runs", "1", *SMALL, "--set", "kafka_version=0.10") == 0
    assert "1 of 1 runs" in capsys.readouterr().out


@pytest.mark.usefixtures("breaking_suite")
def test_a_broken_promise_gives_status_1_and_the_command_that_repeats_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert bench("run", "breaks", "--runs", "1", "--seed", "8", "--engine", "serial") == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "0 of 1 runs kept every promise" in output
    assert "seed 8: RuntimeError: the run broke" in output
    assert "fakekafka bench run breaks --runs 1 --seed 8 --engine serial" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["failovr"], "did you mean 'failover'"),
        (["failover", "--engine", "abacus"], "there is no engine 'abacus'"),
        (["failover", "--runs", "0"], "runs must be at least 1"),
        (["failover", "--set", "brokers"], "--set takes name=value, not 'brokers'"),
        (["failover", "--set", "broker=3"], "failover has no parameter 'broker'"),
        (["failover", "--set", "brokers=many"], "brokers must be int, not 'many'"),
        (["failover", "--set", "kafka_version=9"], "kafka_version '9' is not emulated"),
        (["failover", "--engine", "process", "--workers", "0"], "workers must be at least 1"),
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
    assert bench("run", "failover", "--runs", "1", "--out", str(taken), *SMALL) == 2
    assert str(taken) in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["serial", "process"])
def test_ctrl_c_at_a_terminal_ends_a_batch_in_one_line(engine: str, tmp_path: Path) -> None:
    """The exit status is that of an interrupt, nothing is left behind, and no traceback is seen."""
    out = tmp_path / "new"
    command = ["bench", "run", "failover", "--runs", "100000", "--workers", "1", "--out", str(out)]
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fakekafka.cli.main", *command, "--engine", engine],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(terminal)
    shown = b""
    is_interrupted = False
    with contextlib.suppress(OSError):  # the terminal of nobody
        while part := os.read(screen, 65536):
            shown += part
            if not is_interrupted and b"/100000" in shown:  # a run was done
                is_interrupted = os.write(screen, b"\x03") == 1
    os.close(screen)
    assert process.wait(60) == 130
    text = shown.decode()
    assert re.search(r"failover: ended after \d+ of 100000 runs", text), text
    assert "Traceback" not in text
    assert (out / "runs" / "runs.parquet").is_file()
