"""Scenarios in ``scenarios/*.txt`` produce the recorded output."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from fakekafka.tests.support.transcripts import run_transcript

SCENARIOS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_matches_its_transcript(path: Path) -> None:
    """Golden transcripts; ``FAKEKAFKA_REWRITE=1`` rewrites them. CP numbers are in the files."""
    text = path.read_text()
    now = run_transcript(text)
    if os.environ.get("FAKEKAFKA_REWRITE") == "1":
        path.write_text(now)
    assert path.read_text() == now


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_cites_the_behaviours_that_it_pins(path: Path) -> None:
    """Every file opens with a comment that cites behaviours of the reference."""
    opening = path.read_text().split("\n\n", maxsplit=1)[0]
    assert opening.startswith("#")
    assert re.search(r"\bCP-\d+", opening)


def test_an_unknown_command_is_refused() -> None:
    """A misspelt command is an error, not a silent comment."""
    with pytest.raises(ValueError, match="unknown command 'shwo'"):
        run_transcript("shwo t-0\n")
