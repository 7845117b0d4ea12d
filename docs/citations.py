"""Which tests pin which numbered behaviour of the reference: reads citations out of the tests.

A test cites a behaviour by writing ``CP-12`` (control plane, 1 to 203) or ``DP-87`` (data plane,
1 to 136) in its docstring, a comment above it, or a parameter; ``CP-1..22`` cites a range. Text
outside any test function cites for the file as a whole, and so does the opening comment of a
golden transcript.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

LAST = {"CP": 203, "DP": 136}

SECTIONS: dict[str, tuple[tuple[int, str], ...]] = {
    "CP": (
        (1, "Partition state machine"),
        (23, "Replica state machine"),
        (37, "Election algorithms"),
        (50, "Controller context"),
        (59, "Controller event queue"),
        (67, "Controller election and fencing"),
        (82, "Topic creation and expansion"),
        (96, "Replica assignment"),
        (109, "Broker failure and start"),
        (115, "Unclean election"),
        (120, "Preferred election and rebalancing"),
        (132, "Controlled shutdown"),
        (138, "Reassignment"),
        (151, "Topic deletion"),
        (166, "Control request batches"),
        (177, "StopReplica at the broker"),
        (181, "ISR changes"),
        (191, "Log directories, ids, ZooKeeper client"),
    ),
    "DP": (
        (1, "Partition and replica"),
        (31, "Replica manager"),
        (51, "Replica fetchers"),
        (72, "Fetch and fetch sessions"),
        (88, "Offsets and leader epochs"),
        (100, "Purgatory, timers, checkpoints"),
        (108, "Log, validation, producer state"),
        (122, "Requests, administration, clients"),
    ),
}
"""Prefix to (first number, topic) of each section of the behaviours."""

_CITATION = re.compile(r"\b(CP|DP)-(\d+)(?:\.\.(?:\1-)?(\d+))?")


@dataclass(slots=True)
class Citations:
    """Behaviours cited, and what is wrong with the citations found."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    """``CP-12`` to the tests that cite it, each as ``path::name``, in order of path and line."""
    problems: list[str] = field(default_factory=list)

    def add(self, behaviour: str, test: str) -> None:
        citing = self.tests.setdefault(behaviour, [])
        if test not in citing:
            citing.append(test)


def cited_in(text: str) -> Iterator[tuple[str, int]]:
    """Every (prefix, number) that a text cites, ranges spelled out."""
    for prefix, first, last in _CITATION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield prefix, number


def test_spans(text: str) -> list[tuple[int, int, str]]:
    """(first line, last line, name) of each test function, decorators and comments above it in."""
    lines = text.splitlines()
    spans = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if not node.name.startswith("test_"):
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1
        spans.append((first, node.end_lineno or node.lineno, node.name))
    return sorted(spans)


def read_citations(files: Iterable[tuple[str, str]]) -> Citations:
    """The citations in test files given as (path, text)."""
    found = Citations()
    for path, text in files:
        spans = test_spans(text) if path.endswith(".py") else []
        for line_number, line in enumerate(text.splitlines(), 1):
            for prefix, number in cited_in(line):
                if not 1 <= number <= LAST[prefix]:
                    found.problems.append(
                        f"{path}:{line_number}: {prefix}-{number}, but {prefix} ends at "
                        f"{LAST[prefix]}"
                    )
                    continue
                names = [name for first, last, name in spans if first <= line_number <= last]
                test = f"{path}::{names[-1]}" if names else path
                found.add(f"{prefix}-{number}", test)
    return found


def read_gaps(text: str) -> tuple[dict[str, str], list[str]]:
    """Behaviour to the reason why no test cites it, and what is wrong with the list."""
    gaps: dict[str, str] = {}
    problems = []
    for entry in tomllib.loads(text).get("gap", []):
        for item in entry["behaviours"]:
            for prefix, number in cited_in(item):
                behaviour = f"{prefix}-{number}"
                if not entry["reason"].strip():
                    problems.append(f"{behaviour}: no reason given")
                if behaviour in gaps:
                    problems.append(f"{behaviour}: listed twice")
                gaps[behaviour] = entry["reason"].strip()
    return gaps, problems


def coverage_page(citations: Citations, gaps: dict[str, str]) -> str:
    """The page: a summary, then every behaviour with its tests, its reason, or a gap mark."""
    parts = [_INTRODUCTION, _summary(citations, gaps)]
    for prefix, title in (("CP", "Control plane"), ("DP", "Data plane")):
        parts.append(f"## {title}\n")
        for first, last, topic in _sections(prefix):
            parts.append(f"### {topic} ({prefix}-{first} to {prefix}-{last})\n")
            parts.append("| behaviour | tests |\n|---|---|")
            for number in range(first, last + 1):
                behaviour = f"{prefix}-{number}"
                parts.append(f"| {behaviour} | {_cell(behaviour, citations, gaps)} |")
            parts.append("")
    return "\n".join(parts)


def _sections(prefix: str) -> Iterator[tuple[int, int, str]]:
    sections = SECTIONS[prefix]
    ends = [first - 1 for first, _ in sections[1:]] + [LAST[prefix]]
    for (first, topic), last in zip(sections, ends, strict=True):
        yield first, last, topic


def _cell(behaviour: str, citations: Citations, gaps: dict[str, str]) -> str:
    if behaviour in citations.tests:
        return "<br>".join(f"`{test}`" for test in citations.tests[behaviour])
    if behaviour in gaps:
        return f"not applicable: {gaps[behaviour]}"
    return "**none yet**"


def _summary(citations: Citations, gaps: dict[str, str]) -> str:
    rows = ["| | behaviours | tested | not applicable | none yet |", "|---|---|---|---|---|"]
    for prefix, title in (("CP", "control plane"), ("DP", "data plane")):
        names = [f"{prefix}-{number}" for number in range(1, LAST[prefix] + 1)]
        tested = sum(name in citations.tests for name in names)
        excused = sum(name in gaps and name not in citations.tests for name in names)
        missing = len(names) - tested - excused
        rows.append(f"| {title} | {len(names)} | {tested} | {excused} | {missing} |")
    return "\n".join(rows) + "\n"


_INTRODUCTION = """\
<!-- Generated by docs/generate.py from the tests; run `make docs` to renew it. -->

# Coverage of the reference behaviours

Kafka's own tests pin behaviours of the control plane (CP) and of the data plane (DP). Each has a
number here; a test of this project that pins the same behaviour cites the number. Behaviours that
make no sense for an in-process cluster are listed with the reason in `not_applicable.toml`.
"""


def collect(root: Path) -> tuple[Citations, dict[str, str], list[str]]:
    """Citations and gaps of the project at ``root``, and every problem found in either."""
    tests = root / "tests"
    files = [
        (path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted([*tests.rglob("test_*.py"), *tests.rglob("scenarios/*.txt")])
        if "house" not in path.relative_to(root).parts
    ]
    citations = read_citations(files)
    gap_file = root / "docs" / "reference" / "not_applicable.toml"
    gaps, problems = read_gaps(gap_file.read_text(encoding="utf-8"))
    problems += [
        f"not_applicable.toml: {behaviour} is tested by {citations.tests[behaviour][0]}"
        for behaviour in gaps
        if behaviour in citations.tests
    ]
    return citations, gaps, citations.problems + problems
