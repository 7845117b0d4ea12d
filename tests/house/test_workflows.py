"""The workflows for GitHub are valid, and run only lines that also run elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fakekafka.tests.support.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7"


def commands(path: Path) -> list[str]:
    """Return the shell commands of a workflow's steps."""
    return re.findall(r"^ *- run: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(400)  # a first run compiles it
def test_actionlint_finds_nothing() -> None:
    """actionlint checks keys, expressions, names of runners and shell lines."""
    command = ["actionlint"] if shutil.which("actionlint") else ["go", "run", ACTIONLINT]
    if not shutil.which(command[0]):
        assert not os.environ.get("FAKEKAFKA_NO_SKIP"), "actionlint needs Go"
        pytest.skip("actionlint needs Go, which is not installed")
    done = subprocess.run(
        [*command, *map(str, WORKFLOWS)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_continuous_integration_here_runs_what_a_workflow_runs(path: Path) -> None:
    """A line that only a workflow runs would fail for the first time at a release."""
    here = set((ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines())
    here = {line.partition(" #")[0].removeprefix("time ").strip() for line in here} | {
        "bash .ci/run"
    }
    text = path.read_text(encoding="utf-8")
    assert text.count("run:") - text.count("  run:\n") == len(commands(path))
    assert set(commands(path)) <= here | {"bash .ci/run"}


def test_a_release_is_published_from_a_tag_without_a_password() -> None:
    """Trusted publishing: the job may request a token, and no workflow names a secret."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert 'tags: ["v*"]' in text
    assert "id-token: write" in text
    assert all("secrets." not in path.read_text(encoding="utf-8") for path in WORKFLOWS)
