"""The commands ``trace shrink`` and ``trace diff --structure``."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakekafka.cli import trace as command
from fakekafka.tests.support.traces import write_failover
from typer.testing import CliRunner, Result

BROKEN = """
name = "broken"
[cluster]
brokers = 1
[[faults]]
at_ms = 10
action = "note"
text = "here"
[stop]
at_ms = 20
settle = false
[[expect]]
that = "not alive(1)"
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command.app, [str(argument) for argument in arguments])


def test_a_scenario_is_shrunk(tmp_path: Path) -> None:
    """``trace shrink`` lists what it removed and writes the scenario; it refuses a story."""
    (tmp_path / "broken.toml").write_text(BROKEN, encoding="utf-8")
    result = run("shrink", tmp_path / "broken.toml", "-o", tmp_path / "small.toml")
    assert result.exit_code == 0, result.output
    assert "without faults: note at_ms=10" in result.output
    assert "not alive(1) does not hold" in result.output
    small = (tmp_path / "small.toml").read_text(encoding="utf-8")
    assert "note" not in small
    assert "not alive(1)" in small
    refused = run("shrink", "min_isr", "-o", tmp_path / "x.toml")
    assert refused.exit_code == 2
    assert "ordered script" in refused.output


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_runs_of_one_structure(tmp_path: Path, form: tuple[str, ...]) -> None:
    """Traces of equal structure give status 0 and no difference."""
    for name in "ab":
        write_failover(tmp_path / f"{name}.fktrace")
    result = run("diff", "--structure", tmp_path / "a.fktrace", tmp_path / "b.fktrace", *form)
    assert result.exit_code == 0
    assert result.stdout in ("the same structure: 22 and 22 events\n", "[]\n")
