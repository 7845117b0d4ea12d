"""Stored histories that reach rare items still reach them and keep every promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakekafka.exploration.history import read_history, run
from fakekafka.tests.histories import corpus

FILES = sorted(corpus.FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_rare_history_still_reaches_the_item_it_is_kept_for(path: Path) -> None:
    """A change of the emulation that makes a rare item unreachable fails here."""
    about, history = read_history(path)
    outcome = run(history, covers=True)
    assert outcome.violations == ()
    assert corpus.items_of(about) - outcome.reached == set()


def test_a_history_is_made_of_a_run_that_reached_something_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rare history has only the steps it needs; runs that broke a promise are skipped."""
    monkeypatch.setattr(corpus, "FOLDER", tmp_path)
    death = "transition: partition OnlinePartition to OfflinePartition"
    steps = ["wait 500", "latency 20 broker-1 broker-2", "kill 1", "wait 12000"]
    new = ["fault: kill", death]
    line = {"target": "cluster", "seed": 4, "taken": steps, "new": new, "violations": []}
    lines = [{**line, "violations": [["IsrWhole", "", 1.0, ""]]}, line]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    corpus.main([str(tmp_path), "--kafka-version", "2.8", "--after", "0"])
    assert capsys.readouterr().out.endswith(": kill 1\n")
    (path,) = tmp_path.glob("*.txt")
    about, history = read_history(path)
    assert about == f"Reaches {death}."
    assert list(map(str, history.steps or ())) == ["kill 1"]
