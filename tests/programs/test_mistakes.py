"""The mistakes of the examples: each wrong version is found by its report, and each right one
passes.

This command runs all seeds: ``python examples/programs/mistakes/run.py --seeds 2000 --jobs 2``.
"""

from __future__ import annotations

import ast
import difflib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT

FOLDER = ROOT / "examples" / "programs" / "mistakes"
PAGE = ROOT / "docs" / "guides" / "mistakes.md"
SEEDS_OF_THE_RIGHT = 6
LINES = 10
"""Maximum number of lines of a test, without its first."""

QUICK = ("--engine", "process", "--jobs", "2")
"""Options of an exploration of a wrong version."""

ROW = r"at \d+\.\d{3} s, #\d+"
REPORTS = {
    "commit_before_processing": rf"was never charged; its offset was committed by worker-\d {ROW}; "
    rf"worker-\d is killed {ROW}",
    "automatic_commit": rf"was never charged; its offset was committed by worker-\d {ROW}; "
    rf"worker-\d is killed {ROW}",
    "retry_without_idempotence": rf"is in orders \d times: at orders-0, offset \d+, by shop {ROW}, "
    rf"then at orders-0, offset \d+, by shop {ROW};.* its producer is not idempotent",
    "ignored_failure": r"is not in invoices;.* noted \"not sent order=\d+ error='\w+'\""
    rf" {ROW}; .*its offset was committed by worker {ROW}",
    "no_flush_on_revocation": rf"was stored \d times: by [\w-]+ {ROW}, then by [\w-]+ {ROW};.* "
    rf"orders-\d was given to [\w-]+ {ROW}, when (nothing|offset \d+) was committed",
    "zombie": rf"was stored by worker-\d {ROW}, after balance \d .*;.* worker-\d goes on {ROW}; "
    rf"balances-\d was given to worker-\d {ROW}, when (nothing|offset \d+) was committed",
    "several_in_flight": rf"is in ledger at ledger-0, offset \d+, by worker {ROW}, before order .*"
    rf"; worker noted \"not sent .* its producer is not idempotent",
    "uncommitted_read": rf"aborted\) was shipped by worker {ROW}; "
    rf"it was written by bookkeeper {ROW}; bookkeeper is killed {ROW}",
}
"""Pattern of the report of each mistake."""


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def functions(mistake: str) -> dict[str, str]:
    """Return the source of each function of a mistake's file."""
    source = (FOLDER / f"test_{mistake}.py").read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(source).body if hasattr(node, "name")]
    return {node.name: ast.get_source_segment(source, node) or "" for node in nodes}


def test_every_file_is_a_mistake_that_is_judged_here() -> None:
    names = {path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py")}
    assert names == set(REPORTS)


@pytest.mark.parametrize("mistake", REPORTS)
def test_a_test_has_ten_lines_and_is_explained(mistake: str) -> None:
    """The page shows the difference between the wrong version and the right one."""
    found = functions(mistake)
    (test,) = (text for name, text in found.items() if name.startswith("test_"))
    assert len(test.splitlines()) <= LINES + 1
    wrong, right = found["wrong"].splitlines()[1:], found["right"].splitlines()[1:]
    lines = [
        line
        for line in difflib.unified_diff(wrong, right, lineterm="", n=2)
        if not line.startswith(("---", "+++", "@@"))
    ]
    assert "```diff\n" + "\n".join(lines) + "\n```" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("mistake", REPORTS)
def test_the_wrong_version_is_found_and_the_right_one_is_not(mistake: str) -> None:
    """The wrong version fails with its own kind of problem within the seeds of the runner."""
    done = run(FOLDER, "run.py", mistake, "--seeds", str(SEEDS_OF_THE_RIGHT))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{mistake}, right: {SEEDS_OF_THE_RIGHT} seeds pass, " in done.stdout
    assert re.search(rf"^seed \d+: .*{REPORTS[mistake]}", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.slow
def test_a_failing_test_shows_its_report(tmp_path: Path) -> None:
    """The output has the problem in full, the kept trace, and the command that repeats the test."""
    shutil.copytree(FOLDER, tmp_path / "mistakes")
    seed = re.search(r"run.py zombie --seed (\d+)", PAGE.read_text(encoding="utf-8"))
    assert seed is not None
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"test_zombie.py::{name_of_test(seed[1])}"],
        cwd=tmp_path / "mistakes",
        env={**os.environ, "PYTHONHASHSEED": "0", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"^E +AssertionError: .*{REPORTS['zombie']}$", done.stdout, re.MULTILINE)
    assert f"seed {seed[1]}; trace kept, open it with" in done.stdout
    assert f"PYTHONHASHSEED=0 pytest 'test_zombie.py::{name_of_test(seed[1])}'" in done.stdout
    assert list((tmp_path / "mistakes" / ".fakekafka-traces").glob("*.fktrace"))


def name_of_test(seed: str) -> str:
    return f"test_the_newest_balance_stands[seed{seed}-wrong]"


@pytest.mark.slow
def test_a_mistake_that_is_not_found_fails_the_run() -> None:
    """A seed that does not show the mistake fails the run."""
    done = run(FOLDER, "run.py", "zombie", "--seed", "1")
    assert (done.returncode, done.stdout.strip()) == (1, "")


@pytest.mark.slow
@pytest.mark.parametrize("mistake", REPORTS)
def test_exploring_finds_the_wrong_version_with_no_hint_but_its_test(
    mistake: str, tmp_path: Path
) -> None:
    """One of the first hundred seeds shows the mistake, and the command of the find repeats it in
    another process with another hash seed; the right version passes where the wrong one fails.
    """
    folder = tmp_path / "mistakes"
    shutil.copytree(FOLDER, folder)
    (name,) = (name for name in functions(mistake) if name.startswith("test_"))
    test = f"test_{mistake}.py::{name}"
    found = explore(folder, "1", f"{test}[wrong]", *QUICK, "--runs", "100")
    assert found.returncode == 1, found.stdout + found.stderr
    text = re.search(r"^fails in \d+ runs?: (.*)$", found.stdout, re.MULTILINE)
    command = re.search(r"^  fakekafka explore (replay .*)$", found.stdout, re.MULTILINE)
    assert text is not None
    assert command is not None
    words = shlex.split(command[1])
    again = explore(folder, "99", *words)
    assert again.returncode == 1, again.stdout + again.stderr
    assert f"the test fails: {text[1]}" in again.stdout
    right = explore(folder, "99", *(word.replace("[wrong]", "[right]") for word in words))
    assert right.returncode == 0, right.stdout + right.stderr


def explore(folder: Path, hash_seed: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``fakekafka explore`` in a folder, in a process with a hash seed."""
    return subprocess.run(
        [sys.executable, "-m", "fakekafka.cli.main", "explore", *words],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
