"""Readers of what suites write: steps of our own programs, pytest's report and go's."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from .suite import Outcome, Outcomes, Result

_REASON_LENGTH_MAX = 300
_JEST_RESULTS = {"passed": Result.PASSED, "failed": Result.FAILED}
_UNFINISHED = Outcome(Result.FAILED, "it did not end in time")


def _short(text: str) -> str:
    return " ".join(text.split())[:_REASON_LENGTH_MAX]


def steps(output: str) -> Outcomes:
    """Read ``ok NAME``, ``failed NAME: reason`` and, as the last line, ``end``."""
    found: dict[str, Outcome] = {}
    has_ended = False
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "ok":
            found[rest] = Outcome(Result.PASSED)
        elif word == "failed":
            name, _, reason = rest.partition(": ")
            found[name] = Outcome(Result.FAILED, _short(reason))
        elif line == "end":
            has_ended = True
    if not has_ended:
        found["the program's end"] = Outcome(Result.FAILED, _short(output[-_REASON_LENGTH_MAX:]))
    return found


def junit(report: Path) -> Outcomes:
    """Read pytest's report; a test whose fixture failed at its end has failed, too."""
    found: dict[str, Outcome] = {}
    if not report.exists():
        return found
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace("test.integration.", "")
        name = f"{file}::{case.get('name')}"
        outcome = Outcome(Result.PASSED)
        for child in case:
            if child.tag in ("failure", "error"):
                outcome = Outcome(Result.FAILED, _short(child.get("message", "")))
            elif child.tag == "skipped":
                outcome = Outcome(Result.SKIPPED)
        if name not in found or found[name].result is not Result.FAILED:
            found[name] = outcome
    return found


def with_reruns(found: Outcomes, output: str) -> Outcomes:
    """Mark the tests of which pytest says ``RERUN FILE::NAME``: its report keeps the last run."""
    repeated = set()
    for line in output.splitlines():
        word, _, test = line.partition(" ")
        if word == "RERUN":
            file, *names = test.split("::")
            repeated.add("::".join([".".join([Path(file).stem, *names[:-1]]), names[-1]]))
    return {
        name: replace(outcome, is_repeated=True) if name in repeated else outcome
        for name, outcome in found.items()
    }


def jest(report: Path, root: Path) -> Outcomes:
    """Read jest's report; a test is named by its file and its full name."""
    found: dict[str, Outcome] = {}
    if not report.exists():
        return found
    for file in json.loads(report.read_text())["testResults"]:
        path = Path(file["name"]).relative_to(root).as_posix()
        for test in file["assertionResults"]:
            result = _JEST_RESULTS.get(test["status"], Result.SKIPPED)
            outcome = Outcome(result, _short(" ".join(test["failureMessages"] or ())))
            name = f"{path}::{test['fullName']}"
            while name in found:  # two tests of a file may have one name
                name += " again"
            found[name] = outcome
        if file["status"] == "failed" and not file["assertionResults"]:
            found[path] = Outcome(Result.FAILED, _short(file["message"]))
    return found


def go_tests(output: str) -> Outcomes:
    """Read ``test2json``'s lines: only whole tests count, not their subtests."""
    found: dict[str, Outcome] = {}
    said: dict[str, list[str]] = {}
    for event in _events(output.splitlines()):
        test, action = event.get("Test", ""), event.get("Action")
        top = test.partition("/")[0]
        if not top:
            continue
        if action == "run" and test == top:
            found[top] = _UNFINISHED
        elif action == "output":
            said.setdefault(top, []).append(event.get("Output", ""))
        elif test == top and action in ("pass", "skip"):
            found[top] = Outcome(Result.PASSED if action == "pass" else Result.SKIPPED)
        elif test == top and action == "fail":
            lines = [line for line in said.get(top, []) if not line.startswith(("===", "---"))]
            found[top] = Outcome(Result.FAILED, _short(" ".join(lines)))
    return found


def _events(lines: Iterable[str]) -> Iterable[dict[str, str]]:
    for line in lines:
        if line.startswith("{"):
            yield json.loads(line)
