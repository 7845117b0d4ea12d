"""The report page of an exploration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakekafka.exploration.cluster_steps import Kill, Wait
from fakekafka.exploration.coverage import reachable
from fakekafka.exploration.explorer import ClusterExploration
from fakekafka.exploration.findings import ShortFind
from fakekafka.exploration.history import TARGETS, History
from fakekafka.exploration.invariants.invariant import Violation
from fakekafka.exploration.report_page import write_page
from fakekafka.exploration.settings import Settings

HOSTILE = "<script>alert('&')</script>"


def found(text: str, known: str = "") -> ShortFind:
    history = History(TARGETS["cluster"], "1.1", 7).with_steps([Wait(10), Kill(2)])
    violation = Violation("LogMatching", text, 5.0, known)
    return ShortFind(violation.signature, violation, 3, history, 1, 12)


@pytest.fixture
def exploration() -> ClusterExploration:
    exploration = ClusterExploration(Settings("1.1", 1, 40, None, None))
    exploration.by_target.update({"cluster": 30, "groups": 10})
    return exploration


def page_of(exploration: ClusterExploration, findings: list[ShortFind], folder: Path) -> str:
    path = folder / "report.html"
    write_page(exploration, findings, path)
    return path.read_text(encoding="utf-8")


def test_a_find_is_shown_as_a_story(exploration: ClusterExploration, tmp_path: Path) -> None:
    """A find shows its promise, its steps, its violation and the command that repeats it."""
    finding = found("two logs differ at 5", "KIP-101 (loss)")
    page = page_of(exploration, [finding], tmp_path)
    (story,) = re.findall(r'<article class="known">.*?</article>', page, re.DOTALL)
    for told in (
        "LogMatching", "appends only if", "in 3 runs: two logs differ at 5", "KIP-101 (loss)",
        '<li class="wait">wait 10</li>\n<li class="done">kill 2</li>',
        "1 faults and actions, shortened in 12 runs", "explore replay",
    ):  # fmt: skip
        assert told in story


def test_unreached_items_are_listed(exploration: ClusterExploration, tmp_path: Path) -> None:
    """The page lists unreached items and the runs of each target, even without finds."""
    page = page_of(exploration, [], tmp_path)
    assert "None: every promise was kept." in page
    assert re.search(r"groups</td><td class=.number.>10", page)
    assert "BROKER_ID_NOT_REGISTERED" in page
    reached, *never = sorted(reachable("1.1")["state"])
    exploration.reached.add(f"state: {reached}")
    (row,) = re.findall(r"<td>state</td>.*?</tr>", page_of(exploration, [], tmp_path))
    assert f"<td>1</td><td>{1 + len(never)}</td>" in row
    assert row.endswith(f"</summary>{', '.join(never)}</details></td></tr>")


def test_the_page_loads_and_runs_nothing(exploration: ClusterExploration, tmp_path: Path) -> None:
    """The page escapes violations, loads nothing and adapts to dark screens and phones."""
    page = page_of(exploration, [found(HOSTILE)], tmp_path)
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in page
    assert not re.search(r"<script|<link|<img|src=|href=|url\(", page)
    assert "prefers-color-scheme: dark" in page
    assert "width=device-width" in page
    assert "Nothing known explains it." in page
