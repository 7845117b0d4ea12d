"""Verbs of ``fakekafka trace`` that compare runs: diff, verify."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..tracing.events import Event
from ..tracing.text import format_event
from .exits import DOES_NOT_HOLD
from .trace_app import File, Json, app, opened, print_json

if TYPE_CHECKING:
    from ..tracing.reading.structure import LaneDifference, StructuralComparison

_PLACES_SHOWN = 3
"""Number of places shown for each actor."""


@app.command()
def diff(
    left: File,
    right: Annotated[Path, typer.Argument(help="another .fktrace file")],
    lines: Annotated[int, typer.Option(help="events of each run to show")] = 30,
    structure: Annotated[
        bool, typer.Option("--structure", help="compare what each actor did, not ids and times")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the first event that differs, then both runs side by side; status 1 if they differ."""
    if structure:
        _diff_structure(left, right, lines, as_json)
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


def _diff_structure(left: Path, right: Path, lines: int, as_json: bool) -> None:
    from ..tracing.reading.structure import compare_structure

    with opened(left) as a, opened(right) as b:
        compared = compare_structure(a, b)
        found = compared.differences
        if as_json:
            print_json([_lane_dict(lane) for lane in found])
        elif not found:
            print(f"the same structure: {len(a)} and {len(b)} events")
        else:
            _print_comparison(compared, lines)
    if found:
        raise typer.Exit(DOES_NOT_HOLD)


def _lane_dict(lane: LaneDifference) -> dict[str, Any]:
    return {
        "actor": lane.actor,
        "left": _maybe(lane.left),
        "right": _maybe(lane.right),
        "more": lane.more,
        "equal": lane.equal,
        "changed": lane.changed,
        "only_left": lane.only_left,
        "only_right": lane.only_right,
        "places": [
            {
                "left": None if place.left is None else place.left.seq,
                "left_count": place.left_count,
                "right": None if place.right is None else place.right.seq,
                "right_count": place.right_count,
            }
            for place in lane.places
        ],
    }


def _print_comparison(compared: StructuralComparison, lines: int) -> None:
    """Print the turning points that only one run has, then each actor's first differences."""
    ours, theirs = compared.events
    print(f"{compared.shared} events of {ours} and {theirs} belong together")
    for side, mark, events in (
        ("first", "<", compared.only_left),
        ("second", ">", compared.only_right),
    ):
        if events:
            print(f"only the {side} run has these faults and changes:")
        for event in events[:lines]:
            print(f"{mark} {format_event(event)}")
        if len(events) > lines:
            print(f"  and {len(events) - lines} more (--lines {len(events)} shows them)")
    for lane in compared.differences:
        print(
            f"{lane.actor}: {lane.equal} events equal, {lane.changed} with other values, "
            f"{lane.only_left} only in the first run, {lane.only_right} only in the second"
        )
        if not lane.places:
            _print_pair(lane.left, lane.right)
        for place in lane.places[:_PLACES_SHOWN]:
            _print_pair(place.left, place.right)
        if len(lane.places) > _PLACES_SHOWN:
            print(f"  and in {len(lane.places) - _PLACES_SHOWN} more places")


def _print_pair(left: Event | None, right: Event | None) -> None:
    for mark, event in (("<", left), (">", right)):
        if event is not None:
            print(f"{mark} {format_event(event)}")


def _maybe(event: Event | None) -> dict[str, Any] | None:
    return None if event is None else event.as_dict()


def _runner() -> Callable[[dict[str, Any], Any], object]:
    from ..scenarios.run import run_from_header

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
            print(f"the run differs: fingerprint {verdict.recorded} in the file,")
            print(f"{verdict.replayed} now ({verdict.events} events)")
            print(
                f"first difference at {difference.describe()}"
                if difference
                else "every event is the same: the fingerprint in the file is damaged"
            )
    if not verdict.holds:
        raise typer.Exit(DOES_NOT_HOLD)
