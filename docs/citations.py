"""Finds the tests that pin each numbered behaviour of Kafka, from citations in the tests.

The behaviours are listed in docs/kafka/behaviours.toml. A test cites one by writing ``CP-12``
(control plane) or ``DP-87`` (data plane) in its docstring, a comment above it, or a parameter;
``CP-1..22`` cites a range. A citation outside any test function counts for the whole file, as does
one in the opening comment of a golden transcript.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

BEHAVIOURS = "docs/kafka/behaviours.toml"

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
"""(first number, topic) of each section of the behaviours, by prefix."""

_CITATION = re.compile(r"\b(CP|DP)-(\d+)(?:\.\.(?:\1-)?(\d+))?")


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A numbered behaviour of Kafka from behaviours.toml."""

    says: str
    """The behaviour in one sentence."""
    page: str
    """Page of docs/kafka and heading that explain the behaviour: ``isr.md#shrinking``."""
    kafka: tuple[str, ...] = ()
    """Kafka's own tests of the behaviour, each as ``Class.method``."""
    not_applicable: str = ""
    """The reason why no test of this project can pin the behaviour; empty if one can."""


@dataclass(slots=True)
class Citations:
    """The behaviours that are cited, and problems with the citations."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    """Tests that cite each behaviour, as ``path::name`` in order of path and line, by number."""
    problems: list[str] = field(default_factory=list)

    def add(self, behaviour: str, test: str) -> None:
        citing = self.tests.setdefault(behaviour, [])
        if test not in citing:
            citing.append(test)


def cited_in(text: str) -> Iterator[tuple[str, int]]:
    """Yield every (prefix, number) that a text cites, with ranges expanded."""
    for prefix, first, last in _CITATION.findall(text):
        for number in range(int(first), int(last or first) + 1):
            yield prefix, number


def test_spans(text: str) -> list[tuple[int, int, str]]:
    """Return (first line, last line, name) of each test function, including its decorators and the
    comments above it."""
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


def read_citations(files: Iterable[tuple[str, str]], behaviours: dict[str, Behaviour]) -> Citations:
    """Return the citations in test files given as (path, text)."""
    found = Citations()
    for path, text in files:
        spans = test_spans(text) if path.endswith(".py") else []
        for line_number, line in enumerate(text.splitlines(), 1):
            for prefix, number in cited_in(line):
                behaviour = f"{prefix}-{number}"
                if behaviour not in behaviours:
                    found.problems.append(f"{path}:{line_number}: there is no {behaviour}")
                    continue
                names = [name for first, last, name in spans if first <= line_number <= last]
                found.add(behaviour, f"{path}::{names[-1]}" if names else path)
    return found


def read_behaviours(text: str) -> tuple[dict[str, Behaviour], list[str]]:
    """Return the behaviours by number, in order, and problems with the list."""
    found: dict[str, Behaviour] = {}
    problems = []
    numbers = dict.fromkeys(SECTIONS, 0)
    for name, entry in tomllib.loads(text).items():
        prefix, _, digits = name.partition("-")
        if prefix not in numbers or digits != str(numbers[prefix] + 1):
            problems.append(f"{name}: numbers count up from CP-1 and from DP-1")
            continue
        numbers[prefix] += 1
        unknown = sorted(set(entry) - {"says", "page", "kafka", "not_applicable"})
        problems += [f"{name}: unknown key {key}" for key in unknown]
        problems += [f"{name}: {key} is missing" for key in ("says", "page") if not entry.get(key)]
        if entry.get("not_applicable", "a reason").strip() == "":
            problems.append(f"{name}: not applicable without a reason")
        tests = entry.get("kafka", {}).items()
        found[name] = Behaviour(
            says=entry.get("says", ""),
            page=entry.get("page", ""),
            kafka=tuple(f"{test}.{method}" for test, methods in tests for method in methods),
            not_applicable=entry.get("not_applicable", "").strip(),
        )
    return found, problems


def coverage_page(citations: Citations, behaviours: dict[str, Behaviour]) -> str:
    """Return the page: a summary, then every behaviour with its tests, or the reason why there are
    none, or a mark that they are missing."""
    parts = [_INTRODUCTION, _summary(citations, behaviours)]
    for prefix, title in _TITLES.items():
        parts.append(f"## {title}\n")
        for first, last, topic in _sections(prefix, behaviours):
            parts.append(f"### {topic} ({prefix}-{first} to {prefix}-{last})\n")
            parts.append("| behaviour | what Kafka does | tests |\n|---|---|---|")
            for number in range(first, last + 1):
                parts.append(_row(f"{prefix}-{number}", citations, behaviours))
            parts.append("")
    return "\n".join(parts)


def _sections(prefix: str, behaviours: dict[str, Behaviour]) -> Iterator[tuple[int, int, str]]:
    sections = SECTIONS[prefix]
    ends = [first - 1 for first, _ in sections[1:]] + [len(_names(prefix, behaviours))]
    for (first, topic), last in zip(sections, ends, strict=True):
        yield first, last, topic


def _names(prefix: str, behaviours: dict[str, Behaviour]) -> list[str]:
    return [name for name in behaviours if name.startswith(f"{prefix}-")]


def _row(name: str, citations: Citations, behaviours: dict[str, Behaviour]) -> str:
    behaviour = behaviours[name]
    says = behaviour.says.replace("|", "\\|")
    cell = "**none yet**"
    if name in citations.tests:
        cell = "<br>".join(f"`{test}`" for test in citations.tests[name])
    elif behaviour.not_applicable:
        cell = f"not applicable: {behaviour.not_applicable}"
    return f"| {name} | {says} [Page](../kafka/{behaviour.page}) | {cell} |"


def _summary(citations: Citations, behaviours: dict[str, Behaviour]) -> str:
    rows = ["| | behaviours | tested | not applicable | none yet |", "|---|---|---|---|---|"]
    for prefix, title in _TITLES.items():
        names = _names(prefix, behaviours)
        tested = sum(name in citations.tests for name in names)
        excused = sum(
            bool(behaviours[name].not_applicable) and name not in citations.tests for name in names
        )
        missing = len(names) - tested - excused
        rows.append(f"| {title.lower()} | {len(names)} | {tested} | {excused} | {missing} |")
    return "\n".join(rows) + "\n"


_TITLES = {"CP": "Control plane", "DP": "Data plane"}

_INTRODUCTION = """\
<!-- Generated by docs/generate.py from the tests; run `make docs` to renew it. -->

# Coverage of Kafka's behaviours

Kafka's own tests pin behaviours of the control plane (CP) and of the data plane (DP). Each has a
number here; a test of this project that pins the same behaviour cites the number. The sentences,
and the names of Kafka's tests, are in `docs/kafka/behaviours.toml`.
[How Kafka behaves](../kafka/index.md) explains them.
"""


def collect(root: Path) -> tuple[Citations, dict[str, Behaviour], list[str]]:
    """Return the citations and behaviours of the project at ``root``, and problems with both."""
    behaviours, problems = read_behaviours((root / BEHAVIOURS).read_text(encoding="utf-8"))
    tests = root / "tests"
    files = [
        (path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted([*tests.rglob("test_*.py"), *tests.rglob("scenarios/*.txt")])
        if "house" not in path.relative_to(root).parts
    ]
    citations = read_citations(files, behaviours)
    problems += [
        f"{name}: not applicable, but tested by {citations.tests[name][0]}"
        for name, behaviour in behaviours.items()
        if behaviour.not_applicable and name in citations.tests
    ]
    return citations, behaviours, citations.problems + problems
