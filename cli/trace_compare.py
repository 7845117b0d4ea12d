"""Verbs of ``fakekafka trace`` that compare or write traces: diff, verify, slice, export, story."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ..protocol.errors import UsageError
from ..tracing import queries
from ..tracing.events import Event
from ..tracing.expressions import parse_duration_us
from ..tracing.text import format_event
from .exits import DOES_NOT_HOLD, refuse_overwriting
from .trace_shared import File, Json, app, opened, print_events, print_json


@app.command()
def diff(
    left: File,
    right: Annotated[Path, typer.Argument(help="another .fktrace file")],
    lines: Annotated[int, typer.Option(help="events of each run to align")] = 30,
    as_json: Json = False,
) -> None:
    """Where two runs part: the first differing event, then both aligned; status 1 if different."""
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
            print(f"first difference at {difference.describe()}" if difference else "")
    if not verdict.holds:
        raise typer.Exit(DOES_NOT_HOLD)


@app.command("slice")
def slice_(
    file: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="the smaller trace")],
    actor: Annotated[list[str] | None, typer.Option(help="events at or with it")] = None,
    op: Annotated[int | None, typer.Option(help="events of this client operation")] = None,
    time: Annotated[str | None, typer.Option(help="a span such as 1.5s:2s")] = None,
) -> None:
    """A smaller trace of some events, still valid; seqs stay what they were."""
    from ..tracing.slices import write_slice

    with opened(file) as trace:
        if not actor and op is None and time is None:
            raise UsageError("slice needs --actor, --op or --time")
        refuse_overwriting(out, file, "trace")
        lanes = trace.actors()
        for name in actor or ():
            if name not in lanes:
                raise UsageError(f"no actor {name!r} in this trace; there are {', '.join(lanes)}")
        start_us, stop_us = _span(time)
        source = trace.events() if op is None else iter(queries.of_operation(trace, op))
        chosen = queries.selected(
            source,
            actors=frozenset(actor) if actor else None,
            start_us=start_us,
            stop_us=stop_us,
        )
        words = [f"--actor {name}" for name in actor or ()]
        words += [f"--op {op}"] if op is not None else []
        words += [f"--time {time}"] if time is not None else []
        try:
            count = write_slice(trace, chosen, out, " ".join(words))
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"{count} of {len(trace)} events written to {out}")


def _span(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    first, colon, last = text.partition(":")
    if not colon:
        raise UsageError(f"--time takes a span such as 1.5s:2s, not {text!r}")
    start_us = parse_duration_us(first) if first else None
    stop_us = parse_duration_us(last) if last else None
    if start_us is not None and stop_us is not None and stop_us <= start_us:
        raise UsageError(f"--time {text}: the end must be after the beginning")
    return start_us, stop_us


@app.command()
def export(
    file: File,
    to: Annotated[str, typer.Option("--to", help="text")] = "text",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="default: standard output")
    ] = None,
) -> None:
    """The trace in another form: ``text`` is what golden files hold."""
    with opened(file) as trace:
        if to != "text":
            raise UsageError(f"cannot export to {to!r}; there is: text")
        if out is None:
            print_events(trace.events(), 0, False)
            return
        refuse_overwriting(out, file, "trace")
        try:
            with out.open("w", encoding="utf-8") as stream:
                stream.writelines(format_event(event) + "\n" for event in trace.events())
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"{len(trace)} events written to {out}")


@app.command()
def story(file: File, as_json: Json = False) -> None:
    """Who died, who noticed, who was elected, how long partitions were unavailable."""
    from ..tracing.timeline import timeline

    with opened(file) as trace:
        lines = timeline(trace.events())
        if as_json:
            print_json([{"time_ms": time_ms, "text": text} for time_ms, text in lines])
            return
        for time_ms, text in lines:
            print(f"{time_ms:12.3f} ms  {text}")
