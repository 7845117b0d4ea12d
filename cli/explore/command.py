"""``fakekafka explore``: random faults on random clusters, watched by invariants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from ...protocol.errors import UsageError
from ..exits import DOES_NOT_HOLD, ended_by_sigterm
from .shown import be_silent, carry_out, check_extent, leave, print_line, seconds, steps_of
from .test import explore_test, replay_test

if TYPE_CHECKING:
    from ...exploration.explorer import ClusterExploration
    from ...exploration.findings import ShortFind


class ExploreGroup(TyperGroup):
    """Accepts ``explore PATH::TEST`` as short for ``explore test PATH::TEST``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and any(map(is_test, args)):
            args = ["test", *args]
        return super().parse_args(ctx, args)


def is_test(argument: str) -> bool:
    """Return whether an argument is a pytest node id, or a file with tests."""
    return "::" in argument or argument.endswith(".py")


app: typer.Typer = typer.Typer(cls=ExploreGroup, add_completion=False, invoke_without_command=True)
app.command("test")(explore_test)
_VERSION = "3.9"


@app.callback()
def explore(
    context: typer.Context,
    runs: int = typer.Option(1000, help="number of runs"),
    budget: str | None = typer.Option(None, help="maximum time: 90s, 10m, 2h"),
    kafka_version: str = typer.Option(_VERSION, help="emulated version"),
    seed: int = typer.Option(1, help="seed of the first run; the others count up"),
    target: str | None = typer.Option(
        None, help="attack only: cluster, groups, consumer-groups or exactly-once"
    ),
    invariants: str | None = typer.Option(None, help="check only these promises: TypeOk,StrongIsr"),
    engine: str = typer.Option("auto", help="auto, spark, process or serial"),
    jobs: int | None = typer.Option(None, "--jobs", "-j", help="parallel runs; default all cores"),
    out: Path | None = typer.Option(None, "--out", "-o", help="directory for runs and finds"),
    resume: bool = typer.Option(False, "--resume", help="continue the exploration in --out"),
    shrink: bool = typer.Option(True, help="shorten each find as far as possible"),
) -> None:
    """Look for broken promises: random clusters, clients and faults in virtual time.

    The exit status is 1 if a promise was broken that no known behaviour of Kafka explains.
    """
    if context.invoked_subcommand is not None:
        return
    from ...exploration import directory
    from ...exploration.explorer import ClusterExploration
    from ...exploration.settings import Settings
    from ...protocol.versions import behaviour

    be_silent()
    behaviour(kafka_version)  # raises for a version that is not emulated
    check_extent(runs, out, resume)
    only = None if invariants is None else _promises(invariants)
    settings = Settings(kafka_version, seed, runs, only, _target(target))
    budget_s = None if budget is None else seconds(budget)
    if out is not None:
        directory.begin(out, settings, resume=resume)
    with ended_by_sigterm():
        found = ClusterExploration(settings)
        ended = carry_out(found, engine, jobs, out, budget_s)
        findings = _tell(found, out, shrinks=shrink and ended is None)
    leave(found, ended, all(finding.violation.known for finding in findings))


def _tell(found: ClusterExploration, out: Path | None, *, shrinks: bool) -> list[ShortFind]:
    """Print what was found, shrink each find, and write it to the directory."""
    from ...exploration.findings import (
        coverage_lines,
        finding_lines,
        finding_of,
        summary,
        write_finding,
        write_report,
    )
    from ...exploration.report_page import write_page

    for line in summary(found):
        print_line(line)
    findings = []
    for signature in sorted(found.finds, key=lambda name: bool(found.finds[name].violation.known)):
        finding = finding_of(found, signature, shrinks=shrinks)
        findings.append(finding)
        for line in finding_lines(finding):
            print_line(line)
        if out is not None:
            for path in write_finding(finding, out / "finds"):
                print_line(f"  {path}")
    if not findings:
        print_line("every promise was kept")
    for line in coverage_lines(found):
        print_line(line)
    if out is not None:
        write_report(found, findings, out / "report.md", print_line)
        write_page(found, findings, out / "report.html")
        print_line(str(out / "report.html"))
    return findings


@app.command("replay")
def replay(
    file: str | None = typer.Argument(None, help="a saved history, or a test"),
    target: str = typer.Option("cluster", help="the part that is attacked"),
    kafka_version: str = typer.Option(_VERSION, help="emulated version"),
    seed: int = typer.Option(1, help="determines the cluster, and the steps unless given"),
    steps: str | None = typer.Option(None, help="the steps, separated by semicolons"),
    trace: Path | None = typer.Option(None, help="record the run to this file"),
    shrink: bool = typer.Option(False, help="remove steps that the first violation does not need"),
) -> None:
    """Run one history and report what happens in it.

    The exit status is 1 if a promise was broken, whether as a known behaviour of Kafka or not.
    """
    from ...exploration.history import History, read_history, run
    from ...exploration.shrinking import shorten

    be_silent()
    if file is not None and is_test(file):
        replay_test(file, seed, steps, trace, shrink)
    if file is not None:
        _, history = read_history(Path(file))
    else:
        history = History(_target_class(target), kafka_version, seed, steps_of(steps))
    outcome = run(history, None if trace is None else str(trace))
    if shrink and outcome.violations:
        found = shorten(outcome, outcome.violations[0].signature)
        outcome = found.outcome
        print_line(f"shortened in {found.runs} runs: {outcome.history.command}")
    for line in outcome.step_log:
        print_line(line)
    for violation in outcome.violations:
        print_line(str(violation))
    if not outcome.violations:
        print_line("every promise was kept")
    raise typer.Exit(DOES_NOT_HOLD if outcome.violations else 0)


@app.command("promises")
def promises() -> None:
    """List the promises that are watched, and what each means."""
    from ...exploration.history import TARGETS

    shown: dict[str, Any] = {}
    for kind in TARGETS.values():
        for promise in kind.promises:
            shown.setdefault(promise.name(), promise)
    for name, promise in shown.items():
        text = " ".join((promise.__doc__ or "").partition("\n\n")[0].split())
        print_line(f"{name} ({'in the end' if promise.is_validation else 'all along'}): {text}")


def _target(name: str | None) -> str | None:
    return None if name is None else _target_class(name).name


def _target_class(name: str) -> Any:
    from ...exploration.history import TARGETS

    if name not in TARGETS:
        raise UsageError(f"no target is called {name!r}; there are {', '.join(TARGETS)}")
    return TARGETS[name]


def _promises(text: str) -> frozenset[str]:
    from ...exploration.history import TARGETS

    known = {one.name() for kind in TARGETS.values() for one in kind.promises}
    chosen = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := sorted(chosen - known):
        raise UsageError(
            f"there is no invariant {unknown[0]!r}; `fakekafka explore promises` lists them"
        )
    return frozenset(chosen)
