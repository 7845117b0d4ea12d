"""The commands in the sentences of the tutorial work on the file that its programs wrote."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from fakekafka.cli.main import main
from fakekafka.tests.support.paths import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`fakekafka ([^`]+)`")


def test_the_commands_of_the_tutorial_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, _, virtual = PAGE.read_text(encoding="utf-8").partition("## The same in virtual time")
    monkeypatch.chdir(tmp_path)
    exec("".join(BLOCK.findall(virtual)), {})
    commands = COMMAND.findall(virtual)
    assert len(commands) == 3
    for command in commands:
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(command))
        captured = capsys.readouterr()
        assert (ended.value.code, captured.err) == (0, ""), command
        assert captured.out, command
