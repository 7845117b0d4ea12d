"""Output to a closed pipe or a full disk, recordings over the input, and ends by a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from fakekafka.cli.exits import ended_by_sigterm, written_output
from fakekafka.cli.main import main
from fakekafka.testing.simulation import Simulation

COMMAND = [sys.executable, "-m", "fakekafka.cli.main"]
SCENARIO = (
    "[cluster]\nbrokers = 1\n[cluster.topics.orders]\nreplication_factor = 1\n"
    "[workload]\nrate_per_s = 10\n[stop]\nat_ms = 100\n"
)
WAIT_S = 60


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace whose listing is larger than a pipe's buffer."""
    with Simulation(3, topics={"orders": 3}) as simulation:
        simulation.run_for(5_000)
        simulation.save(tmp_path / "run.fktrace")
    return tmp_path / "run.fktrace"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path / "small.toml"


def status_of(*arguments: object) -> object:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


@pytest.mark.parametrize("arguments", ["trace show {trace}", "run {scenario}", "--help"])
def test_a_closed_pipe_ends_a_command_quietly(arguments: str, trace: Path, scenario: Path) -> None:
    """The status is that of a program ended by SIGPIPE, and standard error is empty."""
    words = arguments.format(trace=trace, scenario=scenario).split()
    process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", ["trace show {trace}", "run {scenario}", "--version"])
def test_a_full_disk_is_one_line_and_status_2(arguments: str, trace: Path, scenario: Path) -> None:
    words = arguments.format(trace=trace, scenario=scenario).split()
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


def test_an_error_that_is_not_the_outputs_stays_an_error() -> None:
    """Errors other than those of standard output are raised as usual."""
    with pytest.raises(ConnectionRefusedError), written_output():
        raise ConnectionRefusedError
    with pytest.raises(SystemExit) as ended, written_output():
        raise SystemExit(1)
    assert ended.value.code == 1


def test_a_recording_cannot_go_over_a_directory_or_the_scenario(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong output file is refused before the run, with the actual reason."""
    link = tmp_path / "link.fktrace"
    link.symlink_to(scenario)
    for output, words in (
        (tmp_path, "it is a directory; name a file in it"),
        (tmp_path / "none" / "x.fktrace", "its directory must exist"),
        (scenario, "is the scenario itself"),
        (link, "is the scenario itself"),
    ):
        assert status_of("run", scenario, "-o", output) == 2
        captured = capsys.readouterr()
        assert words in captured.err
        assert captured.out == ""
    assert scenario.read_text() == SCENARIO


@pytest.mark.parametrize(
    ("arguments", "suggestion"), [(["serv"], "'serve'"), (["trace", "shw"], "'show'")]
)
def test_a_mistyped_command_gets_a_suggestion(
    arguments: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_of(*arguments) == 2
    assert f"Did you mean {suggestion}?" in capsys.readouterr().err


@pytest.mark.clients
def test_the_demo_checks_its_options_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert status_of("demo", "--runs", "-1") == 2
    captured = capsys.readouterr()
    assert "--runs" in captured.err
    assert captured.out == ""


def test_without_a_client_the_demo_runs_modelled_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fakekafka.cli.demo.find_spec", lambda name: None)
    assert status_of("demo", "--runs", "0") == 0
    shown = capsys.readouterr().out
    assert "no client of Kafka is installed, so modelled clients run in virtual time" in shown
    assert re.search(
        r"killing broker (\d), the leader of orders-0\n.*What happened", shown, re.DOTALL
    )
    assert re.search(r"orders-0 accepts records again .* because broker-\d was killed", shown)
    assert "acknowledged 2000 of 2000 sent, read back 2000: each exactly once" in shown
    assert "9 replicas compared byte by byte: identical" in shown


@pytest.mark.slow
@pytest.mark.clients
def test_the_demo_ends_when_its_output_is_closed() -> None:
    """The demo ends although its producer has thousands of records left to send."""
    process = subprocess.Popen(
        [*COMMAND, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("three brokers at")
        process.stdout.close()
        try:
            assert process.wait(WAIT_S) == 141
        finally:
            process.kill()
        assert process.stderr is not None
        assert process.stderr.read() == ""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_batch_in_processes_quietly(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """The workers and their shared resources are released without warnings, and completed runs are
    in the tables.
    """
    words = ["bench", "run", "failover", "--runs", "60", "--engine", "process", "--workers", "2"]
    words += ["--no-matrix", "-o", str(tmp_path)]
    process = subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in its background without Ctrl-C, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    with process:
        assert process.stderr is not None
        assert re.match(r"failover: \d+ of 60 runs, ", process.stderr.readline())
        process.send_signal(number)
        errors = process.stderr.read()
        assert process.wait(WAIT_S) == status
    assert "Traceback" not in errors
    assert "leaked" not in errors
    done = parquet.read_table(tmp_path / "runs").num_rows
    assert 6 <= done < 60
    assert errors.splitlines()[-1] == f"failover: ended after {done} of 60 runs"
    assert [line for line in errors.splitlines() if "of 60 runs" not in line] == []


def test_sigterm_is_handled_only_within_the_context() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, ended_by_sigterm():
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
