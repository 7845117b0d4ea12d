"""``fakekafka explore``: runs, finds, coverage, and replay of a history."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from fakekafka.cli.main import main
from fakekafka.tests.support.paths import ROOT
from fakekafka.tests.support.terminal import press_ctrl_c, run_at_terminal

KEPT = ROOT / "tests" / "histories" / "kept"


def explore(*arguments: str) -> object:
    """Return the exit status of ``fakekafka explore ARGUMENTS``."""
    with pytest.raises(SystemExit) as ended:
        main(["explore", *arguments])
    return ended.value.code


@pytest.mark.slow
def test_an_exploration_reports_its_runs_and_coverage(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without a broken promise the status is 0, and the report lists what was never reached."""
    out = tmp_path / "out"
    assert explore("--runs", "6", "--engine", "serial", "--out", str(out)) == 0
    told = capsys.readouterr()
    assert "6 of 6 runs of Kafka 3.9 from seed 1" in told.out
    assert "4 of cluster, 1 of consumer-groups, 1 of exactly-once" in told.out
    assert "every promise was kept" in told.out
    assert re.search(r"state: \d+ of 24; never ", told.out)
    assert "6 of 6 runs" in told.err
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "None: every promise was kept." in report
    assert "BROKER_ID_NOT_REGISTERED" in report
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "None: every promise was kept." in page
    assert "BROKER_ID_NOT_REGISTERED" in page
    assert len((out / "runs.jsonl").read_text().splitlines()) == 6


@pytest.mark.slow
def test_a_resumed_exploration_has_the_results_of_an_uninterrupted_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A resumed exploration, even after a truncated line, has the same results as one in one go."""
    options = ["--engine", "serial", "--target", "groups", "--invariants", "TypeOk,CommitsStay"]
    parts, whole = tmp_path / "parts", tmp_path / "whole"
    assert explore("--runs", "2", *options, "--out", str(parts)) == 0
    with (parts / "runs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"run":2,"target"')
    assert explore("--runs", "4", *options, "--out", str(parts), "--resume") == 0
    assert explore("--runs", "4", *options, "--out", str(whole)) == 0
    assert (parts / "runs.jsonl").read_text() == (whole / "runs.jsonl").read_text()
    assert (parts / "report.md").read_text() == (whole / "report.md").read_text()
    assert capsys.readouterr().out.count("4 of 4 runs") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--runs", "0"], "--runs must be at least 1"),
        (["--budget", "soon"], "--budget takes 90s, 10m or 2h, not 'soon'"),
        (["--resume"], "name it with --out"),
        (["--kafka-version", "9.9"], "9.9"),
        (["--target", "moon"], "no target is called 'moon'"),
        (["--invariants", "TypeOK"], "there is no invariant 'TypeOK'"),
        (["--engine", "steam", "--runs", "1"], "there is no engine 'steam'"),
        (["replay", "--steps", "explode 2"], "no step is called 'explode'"),
    ],
)
def test_wrong_input_is_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong input is refused with status 2 and a message about the correct form."""
    assert explore(*arguments) == 2
    assert told in capsys.readouterr().err


def test_a_directory_keeps_one_exploration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A directory's exploration is neither overwritten nor resumed with other settings."""
    out = str(tmp_path / "out")
    quick = ["--runs", "1", "--engine", "serial", "--target", "groups", "--out"]
    assert explore(*quick, out, "--resume") == 2
    assert "there is no exploration in" in capsys.readouterr().err
    assert explore(*quick, out) == 0
    assert explore(*quick, out) == 2
    assert "continue it with --resume" in capsys.readouterr().err
    assert explore(*quick, out, "--resume", "--seed", "7") == 2
    assert "contains an exploration with other settings" in capsys.readouterr().err


def test_a_budget_ends_an_exploration(capsys: pytest.CaptureFixture[str]) -> None:
    """A budget ends an exploration after the run that exhausts it."""
    assert explore("--runs", "500", "--budget", "0.1s", "--engine", "serial") == 0
    assert re.search(r"^\d of 500 runs", capsys.readouterr().out)


def test_a_history_that_was_kept_is_run_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A replay prints steps with times and broken promises, with status 1."""
    trace = tmp_path / "run.fktrace"
    path = str(KEPT / "two_quick_elections.txt")
    assert explore("replay", path, "--trace", str(trace)) == 1
    told = capsys.readouterr().out
    assert "ms  freeze 3\n" in told
    assert "LogMatching [KIP-279], at " in told
    assert trace.stat().st_size > 1000


def test_a_replay_prints_each_step_and_marks_impossible_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A replay marks steps that are not possible, and has status 0 if every promise was kept."""
    assert explore("replay", "--seed", "1", "--steps", "kill 1; kill 1; wait 5") == 0
    told = capsys.readouterr().out
    assert "ms  kill 1\n" in told
    assert "ms  kill 1 (not possible)\n" in told
    assert "every promise was kept" in told


def test_explore_promises_lists_every_promise(capsys: pytest.CaptureFixture[str]) -> None:
    """``explore promises`` lists every promise with its meaning."""
    assert explore("promises") == 0
    told = capsys.readouterr().out
    assert "LeaderInIsr (all along): The stored leader of a partition" in told
    assert "ReplicasIdentical (in the end): All replicas of a partition hold" in told


@pytest.mark.slow
def test_a_known_defect_of_an_old_release_is_found_shortened_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A find is written as history and trace; a known defect of Kafka gives status 0."""
    out = tmp_path / "out"
    options = ["--kafka-version", "0.10.1", "--target", "cluster", "--invariants", "StrongIsr"]
    status = explore("--runs", "12", *options, "--seed", "1", "--engine", "serial", "-o", str(out))
    assert status == 0
    told = capsys.readouterr().out
    assert "a known defect of Kafka: KIP-101 (loss)" in told
    (path,) = (out / "finds").glob("*.txt")
    assert path.name == "strongisr-kip-101-loss.txt"
    assert path.with_suffix(".fktrace").exists()
    assert explore("replay", str(path)) == 1
    again = capsys.readouterr().out
    assert "StrongIsr [KIP-101 (loss)]" in again
    assert len([line for line in path.read_text().splitlines()[2:] if "wait" not in line]) <= 8


@pytest.mark.slow
def test_engines_find_the_same(tmp_path: Path) -> None:
    """All engines write the same lines, in whatever order their runs end."""
    lines = {}
    for engine in ("serial", "process"):
        out = tmp_path / engine
        arguments = ["--runs", "24", "--kafka-version", "0.10.1", "--engine", engine]
        explore(*arguments, "--no-shrink", "--jobs", "2", "--out", str(out))
        lines[engine] = (out / "runs.jsonl").read_text(encoding="utf-8")
    assert lines["serial"] == lines["process"]
    violations = [json.loads(line)["violations"] for line in lines["serial"].splitlines()]
    assert any(violations)


@pytest.mark.slow
def test_ctrl_c_ends_an_exploration_with_the_report_so_far(tmp_path: Path) -> None:
    """Ctrl-C ends an exploration with status 130, and the report so far is written."""
    out = tmp_path / "out"
    command = ["explore", "--runs", "3000", "--engine", "process", "--out", str(out)]
    program = [sys.executable, "-m", "fakekafka.cli.main", *command]
    status, told = run_at_terminal(program, b" of 3000 runs", press_ctrl_c)
    assert status == 130, told
    assert re.search(r"ended after \d+ of 3000 runs", told), told
    assert "runs of Kafka 3.9 from seed 1" in " ".join(told.split())
    assert "Traceback" not in told
    assert (out / "report.md").exists()
