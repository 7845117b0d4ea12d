"""``fakekafka explore PATH::TEST``: injects faults into a user's test, its cluster and programs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ...protocol.errors import UsageError
from ..exits import DOES_NOT_HOLD, ended_by_sigterm
from .shown import be_silent, carry_out, check_extent, leave, print_line, seconds, steps_of

if TYPE_CHECKING:
    from ...exploration.programs.exploration import ProgramExploration
    from ...exploration.programs.history import FaultHistory

_ENGINES = ("auto", "process", "serial", "spark")


def explore_test(
    test: str = typer.Argument(..., help="as pytest names it: tests/test_orders.py::test_charged"),
    runs: int = typer.Option(1000, help="number of runs"),
    budget: str | None = typer.Option(None, help="maximum time: 90s, 10m, 2h"),
    seed: int = typer.Option(1, help="seed of the first run; the others count up"),
    engine: str = typer.Option("auto", help="auto, spark, process or serial"),
    jobs: int | None = typer.Option(None, "--jobs", "-j", help="parallel runs; default all cores"),
    out: Path | None = typer.Option(None, "--out", "-o", help="directory for runs and finds"),
    resume: bool = typer.Option(False, "--resume", help="continue the exploration in --out"),
    shrink: bool = typer.Option(True, help="shorten each find as far as possible"),
    kafka_version: str | None = typer.Option(None, hidden=True),
    target: str | None = typer.Option(None, hidden=True),
    invariants: str | None = typer.Option(None, hidden=True),
) -> None:
    """Attack one of your tests repeatedly with faults on its cluster and on its programs.

    The exit status is 1 if the test fails in any run.
    """
    from ...exploration import directory
    from ...exploration.programs.exploration import ProgramExploration, SettingsOfTest
    from ...exploration.programs.explored_test import closing_explored_tests
    from ...exploration.programs.history import bounds_of

    foreign = {"--kafka-version": kafka_version, "--target": target, "--invariants": invariants}
    if given := [name for name, value in foreign.items() if value is not None]:
        raise UsageError(
            f"{' and '.join(given)} shape the clusters that explore draws; the cluster of a test "
            "is shaped by its mark kafka, and it has its own assertions"
        )
    if engine not in _ENGINES:
        raise UsageError(f"tests run on {', '.join(_ENGINES)}, not on {engine!r}")
    check_extent(runs, out, resume)
    budget_s = None if budget is None else seconds(budget)
    _prepare()
    with ended_by_sigterm(), closing_explored_tests():
        settings = SettingsOfTest(test, seed, runs)
        exploration = ProgramExploration(settings, bounds_of(test, seed))
        if out is not None:
            directory.begin(out, settings, resume=resume)
        ended = carry_out(exploration, engine, jobs, out, budget_s)
        has_found = _tell(exploration, out, shrinks=shrink and ended is None)
    leave(exploration, ended, not has_found)


def _prepare() -> None:
    """Make runs in this process reproducible by pinning the hash seed, and suppress warnings."""
    from ...testing.recording import hash_seed

    be_silent()
    if hash_seed.pinned() is None:
        hash_seed.pin_hash_seed()


def _tell(exploration: ProgramExploration, out: Path | None, *, shrinks: bool) -> bool:
    """Print the ways in which the test fails, and write each; return whether there are any."""
    from ...exploration.programs.findings import (
        find_lines,
        find_of,
        summary,
        write_find,
        write_report,
    )
    from ...exploration.programs.report_page import write_page

    _print_all(summary(exploration))
    finds = []
    for signature in exploration.finds:
        find = find_of(exploration, signature, shrinks=shrinks)
        finds.append(find)
        _print_all(find_lines(find))
        if out is not None:
            _print_all(f"  {path}" for path in write_find(find, out / "finds"))
    if not finds:
        print_line("the test passes in every run")
    if out is not None:
        write_report(exploration, finds, out / "report.md", print_line)
        write_page(exploration, finds, out / "report.html", out / "finds")
        print_line(str(out / "report.html"))
    return bool(finds)


def _print_all(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def replay_test(test: str, seed: int, steps: str | None, trace: Path | None, shrink: bool) -> None:
    """Run a test once under a seed, with the given faults, or with those that the seed draws."""
    from ...exploration.programs.explored_test import closing_explored_tests
    from ...exploration.programs.history import FaultHistory

    _prepare()
    history = FaultHistory(test, seed, steps_of(steps))
    with closing_explored_tests():
        failed = _replay(history, None if trace is None else str(trace), shrinks=shrink)
    raise typer.Exit(DOES_NOT_HOLD if failed else 0)


def _replay(history: FaultHistory, trace: str | None, *, shrinks: bool) -> bool:
    """Run a history and print what happens; return whether the test fails."""
    from ...exploration.shrinking import shorten

    outcome, failure = history.outcome(trace, records=True)
    if shrinks and outcome.violations:
        found = shorten(outcome, outcome.violations[0].signature)
        shorter = found.outcome.resolved
        print_line(f"shortened in {found.runs} runs: {shorter.command}")
        outcome, failure = history.with_steps(shorter.steps or ()).outcome(trace, records=True)
    _print_all(outcome.step_log)
    print_line("the test passes" if failure is None else f"the test fails: {failure.text}")
    return failure is not None
