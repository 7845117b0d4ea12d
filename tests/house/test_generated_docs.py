"""The generated pages of docs/reference are current, and the generator parses citations
correctly.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fakekafka.docs import citations, draw_rooms, draw_states
from fakekafka.statemachines.machines.transitions import (
    PARTITION_PREDECESSORS,
    REPLICA_PREDECESSORS,
)
from fakekafka.tests.support.paths import ROOT


@pytest.mark.slow
@pytest.mark.timeout(600)  # it runs every example of the pages: minutes on a busy machine
def test_the_generated_pages_are_current() -> None:
    """`make docs` would change no page."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"\n{done.stderr}\nTo renew the pages: make docs"


def test_the_pictures_of_the_state_machines_show_their_tables() -> None:
    """There is a box per state with its name, and an arrow head per legal transition."""
    partition, replica = draw_states.pictures().values()
    for picture, states, changes in (
        (partition, list(map(str, PARTITION_PREDECESSORS)), PARTITION_PREDECESSORS.values()),
        (replica, list(map(str, REPLICA_PREDECESSORS)), REPLICA_PREDECESSORS.values()),
    ):
        ElementTree.fromstring(picture)
        assert picture.count("<polygon") == sum(len(sources) for sources in changes)
        assert [picture.count(f">{state}</text>") for state in states] == [1] * len(states)


def test_wrong_usage_of_the_generator_is_refused() -> None:
    """A misspelt option writes nothing."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--chek"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--check" in done.stderr


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("pins CP-12.", [("CP", 12)]),
        ("CP-1..3, and DP-7", [("CP", 1), ("CP", 2), ("CP", 3), ("DP", 7)]),
        ("DP-5..DP-6", [("DP", 5), ("DP", 6)]),
        ("CP-5..DP-6", [("CP", 5), ("DP", 6)]),
        ("XCP-5, CP-, ACP-1", []),
    ],
)
def test_citations_are_read(text: str, cited: list[object]) -> None:
    """A citation is a number or a range, with or without a repeated prefix."""
    assert list(citations.cited_in(text)) == cited


EXAMPLE = '''"""A table of cases: DP-1."""

CASES = ["DP-2"]


# CP-5: the comment belongs to the test below
@pytest.mark.parametrize("case", ["CP-6"])
def test_one(case):
    """Behaves as CP-7..8 say."""


class TestGroup:
    async def test_two(self):
        pass  # CP-7


def helper():
    """CP-9"""
'''


BEHAVIOURS = """
[CP-1]
says = "A broker stops."
kafka.ServerTest = ["testStop", "testStopTwice"]
page = "brokers.md"
not_applicable = "it is a gauge"

[CP-2]
says = "It starts | again."
page = "brokers.md#start"

[DP-1]
says = "A record is kept."
page = "log.md"
"""


@pytest.fixture(scope="module")
def behaviours() -> Any:
    text = (ROOT / citations.BEHAVIOURS).read_text(encoding="utf-8")
    found, problems = citations.read_behaviours(text)
    assert problems == []
    return found


def test_a_citation_belongs_to_the_test_around_it(behaviours: Any) -> None:
    """Citations in docstrings, comments above, decorators and bodies belong to the test, and others
    to the file.
    """
    found = citations.read_citations([("tests/a.py", EXAMPLE)], behaviours)
    assert found.problems == []
    assert found.tests == {
        "DP-1": ["tests/a.py"],
        "DP-2": ["tests/a.py"],
        "CP-5": ["tests/a.py::test_one"],
        "CP-6": ["tests/a.py::test_one"],
        "CP-7": ["tests/a.py::test_one", "tests/a.py::test_two"],
        "CP-8": ["tests/a.py::test_one"],
        "CP-9": ["tests/a.py"],
    }


def test_a_number_that_does_not_exist_is_reported(behaviours: Any) -> None:
    """CP ends at 205 and DP at 136."""
    found = citations.read_citations([("tests/a.py", "# CP-205..206, DP-137\n")], behaviours)
    assert set(found.tests) == {"CP-205"}
    assert found.problems == [
        "tests/a.py:1: there is no CP-206",
        "tests/a.py:1: there is no DP-137",
    ]


def test_behaviours_are_read() -> None:
    """A behaviour has a sentence, a page, Kafka's tests by class, and an optional reason."""
    found, problems = citations.read_behaviours(BEHAVIOURS)
    assert problems == []
    assert list(found) == ["CP-1", "CP-2", "DP-1"]
    assert found["CP-1"] == citations.Behaviour(
        says="A broker stops.",
        page="brokers.md",
        kafka=("ServerTest.testStop", "ServerTest.testStopTwice"),
        not_applicable="it is a gauge",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[CP-2]\nsays = "A."\npage = "a.md"', "CP-2: numbers count up from CP-1 and from DP-1"),
        ('[XP-1]\nsays = "A."\npage = "a.md"', "XP-1: numbers count up from CP-1 and from DP-1"),
        ('[CP-1]\npage = "a.md"', "CP-1: says is missing"),
        ('[DP-1]\nsays = "A."', "DP-1: page is missing"),
        ('[DP-1]\nsays = "A."\npage = "a.md"\npages = ""', "DP-1: unknown key pages"),
        (
            '[DP-1]\nsays = "A."\npage = "a.md"\nnot_applicable = " "',
            "DP-1: not applicable without a reason",
        ),
    ],
)
def test_behaviours_are_validated_when_read(text: str, problem: str) -> None:
    """Numbers have no gaps, and each has a sentence and a page."""
    assert citations.read_behaviours(text)[1] == [problem]


def test_an_excused_behaviour_that_a_test_covers_is_reported(tmp_path: Path) -> None:
    """A reason for a missing test is an error once there is a test."""
    (tmp_path / "tests" / "wire").mkdir(parents=True)
    (tmp_path / "docs" / "kafka").mkdir(parents=True)
    (tmp_path / "tests" / "wire" / "test_a.py").write_text("# CP-1\n")
    (tmp_path / citations.BEHAVIOURS).write_text(BEHAVIOURS)
    _, _, problems = citations.collect(tmp_path)
    assert problems == ["CP-1: not applicable, but tested by tests/wire/test_a.py"]


def test_the_page_lists_every_behaviour_once(behaviours: Any) -> None:
    """All 205 and 136 behaviours have a row with the sentence and a state: tested, excused, or
    open.
    """
    found = citations.read_citations([("tests/a.py", EXAMPLE)], behaviours)
    page = citations.coverage_page(found, behaviours)
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith(("| CP", "| DP"))]
    assert rows == [f"| CP-{n}" for n in range(1, 206)] + [f"| DP-{n}" for n in range(1, 137)]
    assert "| control plane | 205 | 5 | 0 | 200 |" in page
    one = "`tests/a.py::test_one`"
    assert (
        "| CP-6 | A partition stays New if its state node exists already. "
        f"[Page](../kafka/partition-states.md#initialisation) | {one} |" in page
    )
    assert f"| {one}<br>`tests/a.py::test_two` |" in page
    assert "| **none yet** |" in page
    excused = replace(behaviours["CP-1"], not_applicable="Nobody has one.")
    page = citations.coverage_page(found, {**behaviours, "CP-1": excused})
    assert "| not applicable: Nobody has one. |" in page


def test_the_picture_of_the_rooms_is_drawn_from_imports() -> None:
    """Inner folders are named, and only imports between folders are dots."""
    texts = {
        "wire/kafka/registry.py": "from ...protocol import values\nfrom . import apis",
        "wire/kafka/apis.py": "",
        "protocol/values.py": "",
    }
    assert draw_rooms.uses(texts) == {("wire", "protocol")}
    assert draw_rooms.rooms(texts)["wire"] == ["kafka"]
    assert draw_rooms.draw(texts).count("<circle") == 1
