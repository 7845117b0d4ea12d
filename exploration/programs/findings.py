"""The report of the exploration of a test: its finds, made short, and how each is repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..findings import finding_of
from ..history import Outcome
from .exploration import ProgramExploration
from .explored_test import explored_test
from .found_test import timed, written_test
from .history import FaultHistory

_NAME_MAX = 60


class ProgramFind(NamedTuple):
    """A way in which a test fails, with the least that makes it do so."""

    signature: str
    runs: int
    """The number of runs that fail in this way."""
    history: FaultHistory
    text: str
    """The words of the test, as the recorded run gives them."""
    told: str
    """The text of pytest about it."""
    outcome: Outcome
    shrink_runs: int
    """0: it was not made shorter."""

    @property
    def name(self) -> str:
        """For files."""
        words = re.sub(r"[^a-z]+", "-", self.signature.partition("; ")[0].lower()).strip("-")
        return words[:_NAME_MAX].strip("-")


def find_of(exploration: ProgramExploration, signature: str, *, shrinks: bool) -> ProgramFind:
    """Repeat the first run of a find, leave out what it does not need, and record the rest."""
    short = finding_of(exploration, signature, shrinks=shrinks)
    assert isinstance(short.history, FaultHistory)
    outcome, failure = short.history.outcome(records=True)
    text, told = short.violation.text, ""
    if failure is not None:
        text, told = failure.text, failure.told
    return ProgramFind(signature, short.runs, short.history, text, told, outcome, short.shrink_runs)


def write_find(find: ProgramFind, folder: Path) -> list[Path]:
    """Write a test that can be pasted, and the trace of the run; returns their paths."""
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
    """Return the place of the test that can be pasted."""
    return folder / f"{find.name}.py"


def summary(exploration: ProgramExploration) -> Iterator[str]:
    """Lines about the runs."""
    settings = exploration.settings
    hours = exploration.virtual_ms / 3_600_000
    figures = ", ".join(f"{count} {name}" for name, count in exploration.figures.items())
    yield (
        f"{len(exploration.done)} of {settings.runs} runs of {settings.test} from seed "
        f"{settings.seed}, {hours:.1f} hours of virtual time: {figures or 'no faults'}"
    )


def find_lines(find: ProgramFind) -> Iterator[str]:
    """Tell how a test fails, how often, and how that is repeated."""
    yield f"fails in {find.runs} {'run' if find.runs == 1 else 'runs'}: {find.text}"
    steps = timed(find.history.steps or ())[:-1]
    made = f", made short in {find.shrink_runs} runs" if find.shrink_runs else ""
    yield f"  {len(steps)} {'fault' if len(steps) == 1 else 'faults'}{made}:"
    yield from (f"  {line}" for line in find.outcome.told if "  wait " not in line)
    yield f"  {find.history.command}"


def write_report(
    exploration: ProgramExploration,
    finds: Sequence[ProgramFind],
    path: Path,
    tell: Callable[[str], object],
) -> None:
    """Write a page of Markdown with everything, also the test that can be pasted."""
    lines = ["# Fault exploration of a test", "", *summary(exploration), "", "## Finds", ""]
    if not finds:
        lines += ["None: the test passes in every run.", ""]
    for find in finds:
        lines += [f"### {find.signature}", "", "```text", *find_lines(find), "```", ""]
        pasted = pasted_path(find, path.parent / "finds")
        if pasted.exists():
            lines += ["```python", pasted.read_text(encoding="utf-8").rstrip(), "```", ""]
        lines += ["What pytest tells:", "", "```text", find.told.rstrip(), "```", ""]
    faults = exploration.reached_of("fault")
    lines += ["## What was tried", "", *(f"- {name}" for name in faults)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tell(str(path))
