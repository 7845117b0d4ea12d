"""The report of the exploration of a test: its shortened finds, and how to repeat them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..findings import finding_of, shortening
from ..history import Outcome
from .exploration import ProgramExploration
from .explored_test import explored_test
from .found_test import timed, written_test
from .history import FaultHistory

_NAME_MAX = 60


class ProgramFind(NamedTuple):
    """A way in which a test fails, with the shortest history known to reproduce it."""

    signature: str
    runs: int
    """Number of runs that fail in this way."""
    history: FaultHistory
    text: str
    """Description of the failure in one line, from the recorded run."""
    report: str
    """pytest's report of the failure."""
    outcome: Outcome
    shrink_runs: int
    """Number of runs that were needed to shorten the history; 0 if it was not shortened."""

    @property
    def name(self) -> str:
        """Name for files."""
        words = re.sub(r"[^a-z]+", "-", self.signature.partition("; ")[0].lower()).strip("-")
        return words[:_NAME_MAX].strip("-")


def find_of(exploration: ProgramExploration, signature: str, *, shrinks: bool) -> ProgramFind:
    """Return a find with the history of its first run, shortened if ``shrinks``, and recorded."""
    short = finding_of(exploration, signature, shrinks=shrinks)
    assert isinstance(short.history, FaultHistory)
    outcome, failure = short.history.outcome(records=True)
    text, report = short.violation.text, ""
    if failure is not None:
        text, report = failure.text, failure.report
    return ProgramFind(
        signature, short.runs, short.history, text, report, outcome, short.shrink_runs
    )


def write_find(find: ProgramFind, folder: Path) -> list[Path]:
    """Write a test for the user to paste, and the trace of the run; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    path = pasted_path(find, folder)
    history = find.history
    explored = explored_test(history.test)
    text = written_test(
        history.test, explored.name, history.seed, history.steps or (), find.text, explored.case
    )
    path.write_text(text, encoding="utf-8")
    trace = path.with_suffix(".fktrace")
    history.run(str(trace))
    return [path, trace]


def pasted_path(find: ProgramFind, folder: Path) -> Path:
    """Return the path of the test for the user to paste."""
    return folder / f"{find.name}.py"


def summary(exploration: ProgramExploration) -> Iterator[str]:
    """Yield lines about the runs."""
    settings = exploration.settings
    hours = exploration.virtual_ms / 3_600_000
    figures = ", ".join(f"{count} {name}" for name, count in exploration.figures.items())
    yield (
        f"{len(exploration.done)} of {settings.runs} runs of {settings.test} from seed "
        f"{settings.seed}, {hours:.1f} hours of virtual time: {figures or 'no faults'}"
    )


def find_lines(find: ProgramFind) -> Iterator[str]:
    """Yield lines about a find: how the test fails, how often, and how to repeat the failure."""
    yield f"fails in {find.runs} {'run' if find.runs == 1 else 'runs'}: {find.text}"
    steps = timed(find.history.steps or ())[:-1]
    count = f"{len(steps)} {'fault' if len(steps) == 1 else 'faults'}"
    yield f"  {count}{shortening(find.shrink_runs)}:"
    yield from (f"  {line}" for line in find.outcome.step_log if "  wait " not in line)
    yield f"  {find.history.command}"


def write_report(
    exploration: ProgramExploration,
    finds: Sequence[ProgramFind],
    path: Path,
    tell: Callable[[str], object],
) -> None:
    """Write a Markdown page with all finds, including the tests for the user to paste."""
    lines = ["# Fault exploration of a test", "", *summary(exploration), "", "## Finds", ""]
    if not finds:
        lines += ["None: the test passes in every run.", ""]
    for find in finds:
        lines += [f"### {find.signature}", "", "```text", *find_lines(find), "```", ""]
        pasted = pasted_path(find, path.parent / "finds")
        if pasted.exists():
            lines += ["```python", pasted.read_text(encoding="utf-8").rstrip(), "```", ""]
        lines += ["What pytest tells:", "", "```text", find.report.rstrip(), "```", ""]
    faults = exploration.reached_of("fault")
    lines += ["## What was tried", "", *(f"- {name}" for name in faults)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tell(str(path))
