"""The generated pages of docs/reference are current, and the generator reads citations right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def citations(docs_script: Callable[[str], ModuleType]) -> ModuleType:
    return docs_script("citations")


@pytest.mark.slow
def test_the_generated_pages_are_current() -> None:
    """Code, tests and pages change together: `make docs` renews the pages."""
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, f"\n{done.stderr}\nTo renew the pages: make docs"


def test_wrong_usage_of_the_generator_is_refused() -> None:
    """A misspelt option must not write anything."""
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
def test_citations_are_read(citations: ModuleType, text: str, cited: list[object]) -> None:
    """Single numbers and ranges, with or without the prefix repeated."""
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


def test_a_citation_belongs_to_the_test_around_it(citations: ModuleType) -> None:
    """Docstrings, comments above, decorators and bodies count; the rest is the file's."""
    found = citations.read_citations([("tests/a.py", EXAMPLE)])
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


def test_a_number_that_does_not_exist_is_reported(citations: ModuleType) -> None:
    """CP ends at 203 and DP at 136."""
    found = citations.read_citations([("tests/a.py", "# CP-203..204, DP-137\n")])
    assert set(found.tests) == {"CP-203"}
    assert found.problems == [
        "tests/a.py:1: CP-204, but CP ends at 203",
        "tests/a.py:1: DP-137, but DP ends at 136",
    ]


def test_gaps_need_a_reason_and_stand_once(citations: ModuleType) -> None:
    """The hand-written list is checked as it is read."""
    gaps, problems = citations.read_gaps(
        '[[gap]]\nbehaviours = ["CP-1..2"]\nreason = "a gauge"\n'
        '[[gap]]\nbehaviours = ["CP-2"]\nreason = " "\n'
    )
    assert gaps == {"CP-1": "a gauge", "CP-2": ""}
    assert problems == ["CP-2: no reason given", "CP-2: listed twice"]


def test_a_gap_that_a_test_covers_is_reported(citations: ModuleType, tmp_path: Path) -> None:
    """The list of gaps cannot outlive the gap."""
    (tmp_path / "tests" / "wire").mkdir(parents=True)
    (tmp_path / "docs" / "reference").mkdir(parents=True)
    (tmp_path / "tests" / "wire" / "test_a.py").write_text("# CP-3\n")
    gap_file = tmp_path / "docs" / "reference" / "not_applicable.toml"
    gap_file.write_text('[[gap]]\nbehaviours = ["CP-3"]\nreason = "a gauge"\n')
    _, _, problems = citations.collect(tmp_path)
    assert problems == ["not_applicable.toml: CP-3 is tested by tests/wire/test_a.py"]


def test_the_page_lists_every_behaviour_once(citations: ModuleType) -> None:
    """All 203 and 136 have a row: tested, excused, or open."""
    found = citations.read_citations([("tests/a.py", EXAMPLE)])
    page = citations.coverage_page(found, {"CP-1": "a gauge"})
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith(("| CP", "| DP"))]
    assert rows == [f"| CP-{n}" for n in range(1, 204)] + [f"| DP-{n}" for n in range(1, 137)]
    assert "| control plane | 203 | 5 | 1 | 197 |" in page
    assert "| CP-1 | not applicable: a gauge |" in page
    assert "| CP-2 | **none yet** |" in page
    assert "| CP-7 | `tests/a.py::test_one`<br>`tests/a.py::test_two` |" in page
