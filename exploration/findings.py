"""The report of an exploration: its finds, with shortened histories, and its coverage."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .coverage import RUNS_PER_SAMPLE, SAMPLED_KINDS, summarize
from .explorer import ClusterExploration, Exploration, Find
from .history import History, Repeatable
from .invariants.invariant import Violation
from .known import KNOWN
from .shrinking import RUNS_MAX, WALL_S_MAX, shorten

_NEVER_SHOWN = 12
"""Maximum number of never-reached items shown in a line on the terminal."""


class ShortFind(NamedTuple):
    """A find with the shortest history known to reproduce it."""

    signature: str
    violation: Violation
    runs: int
    """Number of runs with a violation of this signature."""
    history: Repeatable
    steps: int
    """Number of faults and client actions in the history, without waits."""
    shrink_runs: int
    """Number of runs that were needed to shorten the history; 0 if it was not shortened."""

    @property
    def name(self) -> str:
        """Name for files."""
        known = self.violation.known or "unknown"
        return re.sub(r"[^a-z0-9]+", "-", f"{self.violation.promise} {known}".lower()).strip("-")


def finding_of(exploration: Exploration, signature: str, *, shrinks: bool) -> ShortFind:
    """Return a find with the history of its first run, shortened if ``shrinks``."""
    find: Find = exploration.finds[signature]
    history = exploration.history(find)
    violation, shrink_runs = find.violation, 0
    if shrinks:
        outcome = history.run()
        shorter = shorten(outcome, signature, RUNS_MAX, WALL_S_MAX)
        shrink_runs = shorter.runs + 1
        found = shorter.outcome
        history = history.with_steps(found.history.steps or found.taken)
        of_kind = [v for v in shorter.outcome.violations if v.signature == signature]
        violation = of_kind[0] if of_kind else violation
    steps = sum(step.verb != "wait" for step in history.steps or ())
    return ShortFind(
        signature, violation, exploration.counts[signature], history, steps, shrink_runs
    )


def write_finding(finding: ShortFind, folder: Path) -> list[Path]:
    """Write the history and the trace of a find; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.name}.txt"
    about = " ".join(f"{finding.violation.promise}: {finding.violation.text}".split())
    assert isinstance(finding.history, History)
    path.write_text(finding.history.written(about), encoding="utf-8")
    trace = path.with_suffix(".fktrace")
    finding.history.run(str(trace))
    return [path, trace]


def summary(exploration: ClusterExploration) -> Iterator[str]:
    """Yield lines about the runs and their figures."""
    settings = exploration.settings
    parts = ", ".join(f"{n} of {name}" for name, n in sorted(exploration.by_target.items()))
    hours = exploration.virtual_ms / 3_600_000
    yield (
        f"{len(exploration.done)} of {settings.runs} runs of Kafka {settings.kafka_version} from "
        f"seed {settings.seed} ({parts}), {hours:.1f} hours of virtual time"
    )
    figures = ", ".join(f"{count} {name}" for name, count in sorted(exploration.figures.items()))
    if figures:
        yield f"clients: {figures}"


def coverage_lines(
    exploration: ClusterExploration, never_shown: int = _NEVER_SHOWN
) -> Iterator[str]:
    """Yield a line about the coverage of each kind of item."""
    for reached in summarize(exploration.reached, exploration.settings.kafka_version):
        of = "" if reached.total is None else f" of {reached.total}"
        never = reached.unreached[:never_shown]
        more = len(reached.unreached) - len(never)
        told = f"; never {', '.join(never)}{f' and {more} more' if more else ''}" if never else ""
        where = f" (one run in {RUNS_PER_SAMPLE} alone)" if reached.kind in SAMPLED_KINDS else ""
        yield f"{reached.kind}{where}: {reached.reached}{of}{told}"


def known_defect(violation: Violation) -> str:
    """Describe the defect of Kafka that explains a violation; empty if no known defect does."""
    if not violation.known:
        return ""
    description = KNOWN.get(violation.known)
    name = f"a known defect of Kafka: {violation.known}"
    return f"{name}, {description}" if description else name


def shortening(shrink_runs: int) -> str:
    """Return the words that follow a number of steps, about how they were shortened, if so."""
    return f", shortened in {shrink_runs} runs" if shrink_runs else ""


def finding_lines(finding: ShortFind) -> Iterator[str]:
    """Yield lines about a find: what was seen, how often, and the command that repeats it."""
    violation = finding.violation
    yield f"{violation.promise}, in {finding.runs} runs: {violation.text}"
    yield f"  {known_defect(violation) or 'not a known defect of Kafka'}"
    yield f"  {finding.steps} faults and actions{shortening(finding.shrink_runs)}"
    yield f"  {finding.history.command}"


def write_report(
    exploration: ClusterExploration,
    findings: list[ShortFind],
    path: Path,
    tell: Callable[[str], object],
) -> None:
    """Write a Markdown page with all finds, and all items that were or were not reached."""
    lines = ["# Fault exploration", "", *summary(exploration), "", "## Finds", ""]
    if not findings:
        lines += ["None: every promise was kept.", ""]
    for finding in findings:
        lines += [f"### {finding.signature}", "", "```text"]
        lines += [*finding_lines(finding), "```", ""]
    lines += ["## What was reached", ""]
    lines += [f"- {line}" for line in coverage_lines(exploration, never_shown=1000)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tell(str(path))
