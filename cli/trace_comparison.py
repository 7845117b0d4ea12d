"""Verbs of ``fakekafka trace`` that compare runs: diff, verify."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..tracing.events import Event
from ..tracing.text import format_event
from .exits import DOES_NOT_HOLD
from .trace_app import File, Json, app, opened, print_json


@app.command()
def diff(
    left: File,
    right: Annotated[Path, typer.Argument(help="another .fktrace file")],
    lines: Annotated[int, typer.Option(help="events of each run to align")] = 30,
    structure: Annotated[
        bool,
        typer.Option("--structure", help="compare what each actor did, not ids and times"),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the first event that differs, then both runs side by side; status 1 if they differ."""
    if structure:
        _diff_structure(left, right, as_json)
        return
    from ..tracing.diff import aligned, first_difference

    with opened(left) as a, opened(right) as b:
        difference = first_difference(a, b)
        if difference is None:
            a.check()
            b.check()
        if as_json:
            print_json(
                {
                    "different": difference is not None,
                    "seq": difference.seq if difference else None,
                    "columns": list(difference.columns) if difference else [],
                    "left": _maybe(difference.left if difference else None),
                    "right": _maybe(difference.right if difference else None),
                }
            )
        elif difference is None:
            print(f"the same {len(a)} events")
        else:
            print(f"first difference at {difference.describe()}")
            for line in aligned(a, b, difference.seq, lines):
                if line.left is not None:
                    print(f"{line.mark if line.mark != '~' else '<'} {format_event(line.left)}")
                if line.right is not None and line.mark in "+~":
                    print(f"{line.mark if line.mark != '~' else '>'} {format_event(line.right)}")
    if difference is not None:
        raise typer.Exit(DOES_NOT_HOLD)


def _diff_structure(left: Path, right: Path, as_json: bool) -> None:
    from ..tracing.reading.structure import structural_differences

    with opened(left) as a, opened(right) as b:
        found = structural_differences(a, b)
        if as_json:
            print_json(
                [
                    {
                        "actor": lane.actor,
                        "left": _maybe(lane.left),
                        "right": _maybe(lane.right),
                        "more": lane.more,
                    }
                    for lane in found
                ]
            )
        elif not found:
            print(f"the same structure: {len(a)} and {len(b)} events")
        for lane in () if as_json else found:
            print(f"{lane.actor} differs, from here on {lane.more} events")
            for mark, event in (("<", lane.left), (">", lane.right)):
                print(f"{mark} {'nothing more' if event is None else format_event(event)}")
    if found:
        raise typer.Exit(DOES_NOT_HOLD)


def _maybe(event: Event | None) -> dict[str, Any] | None:
    return None if event is None else event.as_dict()


def _runner() -> Callable[[dict[str, Any], Any], object]:
    from ..testing.scenarios.run import run_from_header

    return run_from_header


@app.command()
def verify(file: File, as_json: Json = False) -> None:
    """Run the scenario of a trace again and compare fingerprints; status 1 if they differ."""
    from ..tracing.verify import verify as run_again

    with opened(file) as trace:
        verdict = run_again(trace, lambda header, recorder: _runner()(header, recorder))
        difference = verdict.difference
        if as_json:
            print_json(
                {
                    "holds": verdict.holds,
                    "recorded": verdict.recorded,
                    "replayed": verdict.replayed,
                    "events": verdict.events,
                    "first_difference": difference.describe() if difference else None,
                }
            )
        elif verdict.holds:
            print(f"verified: {verdict.events} events, fingerprint {verdict.recorded}")
        else:
            print(f"the run came out otherwise: {verdict.recorded} in the file,")
            print(f"{verdict.replayed} now ({verdict.events} events)")
            print(
                f"first difference at {difference.describe()}"
                if difference
                else "every event is the same: the fingerprint in the file is damaged"
            )
    if not verdict.holds:
        raise typer.Exit(DOES_NOT_HOLD)
