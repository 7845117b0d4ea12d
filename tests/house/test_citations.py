"""House rules of citations: a reader of the repository can follow each one.

Code, tests and documents cite a numbered behaviour (``CP-12``), a page of the documents with a
heading (``docs/kafka/isr.md#shrinking``), a KIP or KAFKA number, or a class and method of Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest
from fakekafka.docs import citations
from fakekafka.tests.support.documents import anchors

SUFFIXES = (".py", ".md", ".toml", ".txt", ".yml", ".cfg")
EXEMPT = tuple(
    f"tests/house/{name}.py" for name in ("test_citations", "test_generated_docs", "test_tidy_docs")
)
"""Files that contain bad citations as examples."""

_PAGE = re.compile(r"\b(docs/[\w./-]+?\.md)(?:#([\w-]+))?")
_UNKNOWN = re.compile(
    r"(?<!benchmarks\.)\b(?:control|data)_plane\b(?! import|\.py)"
    r"|\b[Ss]ections? \d+(?:\.\d+)*\b"
    r"|§|\b(?:TRAP|QUIRK)\b|\b[Aa]rticles? 0\d\d\b"
    r"|\b(?:wire|trace|bench|reference) (?:section )?\d+(?:[.-]\d+)+\b"
    r'|"""(?:[4-9]|1\d)\.\d+[:,]|\((?:[4-9]|1\d)\.\d+(?:, \d+\.\d+)*\)\.?"""'
)


def page_findings(path: str, text: str, files: dict[str, str]) -> list[str]:
    """Return citations of pages that do not exist or lack the cited heading."""
    if path.endswith(".md"):
        return []  # links of documents are checked as links
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for page, heading in _PAGE.findall(line):
            if page not in files:
                found.append(f"{path}:{number}: there is no {page}")
            elif heading and heading not in anchors(files[page]):
                found.append(f"{path}:{number}: {page} has no heading #{heading}")
    return found


def number_findings(path: str, text: str, behaviours: Collection[str]) -> list[str]:
    """Return citations of behaviours that are not in behaviours.toml."""
    return [
        f"{path}:{number}: there is no {prefix}-{behaviour}"
        for number, line in enumerate(text.splitlines(), 1)
        for prefix, behaviour in citations.cited_in(line)
        if f"{prefix}-{behaviour}" not in behaviours
    ]


def form_findings(path: str, text: str) -> list[str]:
    """Return citations of documents outside of the repository."""
    return [
        f"{path}:{number}: {match.group(0)}: cite a page, a KIP, or a method of Kafka"
        for number, line in enumerate(text.splitlines(), 1)
        for match in _UNKNOWN.finditer(line)
    ]


def _cited(texts: dict[str, str]) -> dict[str, str]:
    return {
        path: text for path, text in texts.items() if path.endswith(SUFFIXES) and path not in EXEMPT
    }


def test_cited_pages_exist(texts: dict[str, str]) -> None:
    """Every cited page exists and has the cited heading."""
    found = [line for item in _cited(texts).items() for line in page_findings(*item, texts)]
    assert found == [], "\n" + "\n".join(found)


def test_cited_behaviours_exist(texts: dict[str, str]) -> None:
    """Every cited number is in behaviours.toml."""
    behaviours, _ = citations.read_behaviours(texts[citations.BEHAVIOURS])
    found = [line for item in _cited(texts).items() for line in number_findings(*item, behaviours)]
    assert found == [], "\n" + "\n".join(found)


def test_no_citation_leads_out_of_the_repository(texts: dict[str, str]) -> None:
    """No citation names a section of a document that readers do not have."""
    found = [line for item in _cited(texts).items() for line in form_findings(*item)]
    assert found == [], "\n" + "\n".join(found)


def test_behaviours_lead_to_a_page(texts: dict[str, str]) -> None:
    """Every behaviour is explained on a page of docs/kafka."""
    behaviours, _ = citations.read_behaviours(texts[citations.BEHAVIOURS])
    lines = "\n".join(f"docs/kafka/{behaviour.page}" for behaviour in behaviours.values())
    assert page_findings(citations.BEHAVIOURS, lines, texts) == []


def test_pages_on_kafka_name_their_sources(texts: dict[str, str]) -> None:
    """A reader can check every page against Kafka's source."""
    pages = [path for path in texts if path.startswith("docs/kafka/") and path.endswith(".md")]
    without = [path for path in pages if "\n## Sources\n" not in texts[path]]
    assert without == ["docs/kafka/index.md"]


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("docs/kafka/isr.md", 0),
        ("docs/kafka/isr.md#shrinking.", 0),
        ("(docs/kafka/isr.md#expanding)", 1),
        ("docs/kafka/ISR.md", 1),
    ],
)
def test_dead_citations_of_pages_are_found(line: str, count: int) -> None:
    """Both the page and the heading are checked."""
    assert len(page_findings("a.py", line, {"docs/kafka/isr.md": "# A\n## Shrinking\n"})) == count


@pytest.mark.parametrize(("line", "count"), [("CP-1", 0), ("CP-1..3", 2), ("DP-9", 1)])
def test_unknown_behaviours_are_found(line: str, count: int) -> None:
    """Every number of a range is checked."""
    assert len(number_findings("a.py", line, {"CP-1"})) == count


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("KIP-101, KAFKA-7128, Kafka's `Partition.makeLeader`", 0),
        ("from benchmarks.cost_model import virtual_s", 0),
        ("benchmarks/cost_model.py", 0),
        ("the sections below", 0),
        ("control_plane 4.2", 1),
        ("data_plane section 12", 2),
        ("Section 6.6: the answer", 1),
        ("sections 4 and 5", 1),
        ("CP § 3", 1),
        ("wire 1-3", 1),
        ("Section 8.4 QUIRK: a broker", 2),
        ('"""6.4: an older epoch', 1),
        ('"""Stop sending (3.2)."""', 0),
        ('"""Elect where leaders were lost (8.4)."""', 1),
    ],
)
def test_citations_of_unknown_form_are_found(line: str, count: int) -> None:
    """A citation of a document outside of the repository is found."""
    assert len(form_findings("a.py", line)) == count
