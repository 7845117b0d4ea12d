"""The report of the exploration of a test as a single HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...spark_bench.reports.page_parts import escaped, table
from ..findings import shortening
from ..report_page import page
from .exploration import ProgramExploration
from .findings import ProgramFind, pasted_path, summary
from .found_test import timed

_TRIED = (
    ("fault", "Faults"),
    ("restart", "Errors after which a program was started again"),
    ("note", "What programs noted, numbers left out"),
)
"""(kind of reached items, heading) pairs."""


def write_page(
    exploration: ProgramExploration, finds: Sequence[ProgramFind], path: Path, finds_folder: Path
) -> None:
    """Write the content of ``findings.write_report``, with the steps of each find."""
    parts = [*_counts(exploration, finds), *_finds(finds, finds_folder), *_tried(exploration)]
    title = f"Fault exploration of {exploration.settings.test}"
    path.write_text(page(title, summary(exploration), parts), encoding="utf-8")


def _counts(exploration: ProgramExploration, finds: Sequence[ProgramFind]) -> Iterator[str]:
    failed = sum(find.runs for find in finds)
    yield from table(
        (),
        (
            ("runs", f"{len(exploration.done):,} of {exploration.settings.runs:,}"),
            ("runs in which the test fails", f"{failed:,}"),
            ("ways to fail", f"{len(finds):,}"),
            ("runs that reached something new", f"{len(exploration.pool):,}"),
        ),
        9,
    )


def _finds(finds: Sequence[ProgramFind], folder: Path) -> Iterator[str]:
    yield "<h2>Finds</h2>"
    if not finds:
        yield "<p>None: the test passes in every run.</p>"
    for find in finds:
        yield from _find(find, folder)


def _find(find: ProgramFind, folder: Path) -> Iterator[str]:
    """Yield HTML about a find: the failure of the test, the faults, and how to repeat it."""
    runs = f"{find.runs:,} {'run' if find.runs == 1 else 'runs'}"
    yield '<article class="unknown">'
    yield f"<h3>{escaped(find.signature)}</h3>"
    yield f"<p><b>Fails</b> in {runs}: {escaped(find.text)}</p>"
    *faults, (ends_at_ms, _) = timed(find.history.steps or ())
    yield f"<p><b>Faults</b>: {len(faults)}{shortening(find.shrink_runs)}</p><ol>"
    for at_ms, step in faults:
        yield f'<li class="done">{at_ms / 1000:.3f} s: {escaped(step)}</li>'
    yield f'<li class="wait">{ends_at_ms / 1000:.3f} s: every fault ends</li>'
    yield f"</ol><pre>{escaped(find.history.command)}</pre>"
    pasted = pasted_path(find, folder)
    if pasted.exists():
        yield from _folded("A test to paste", pasted.read_text(encoding="utf-8"))
    yield from _folded("What pytest tells", find.report)
    yield "</article>"


def _folded(about: str, text: str) -> Iterator[str]:
    yield f"<details><summary>{about}</summary><pre>{escaped(text.rstrip())}</pre></details>"


def _tried(exploration: ProgramExploration) -> Iterator[str]:
    yield "<h2>What was tried</h2>"
    for kind, heading in _TRIED:
        names = exploration.reached_of(kind)
        if names:
            yield f"<h3>{heading}: {len(names)}</h3><p>{escaped('; '.join(names))}</p>"
