"""Verbs of ``fakekafka trace`` that write files: slice, export, html."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ..protocol.errors import UsageError, nearest_names
from ..tracing.exports.forms import FORMS, export_file, writer_of
from ..tracing.expressions import parse_duration_us
from ..tracing.reading import queries
from .exits import refuse_overwriting
from .trace_app import File, app, opened


@app.command("slice")
def slice_(
    file: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="the smaller trace")],
    actor: Annotated[
        list[str] | None,
        typer.Option(help="only events that this actor handles, sends or receives; repeatable"),
    ] = None,
    time: Annotated[str | None, typer.Option(help="a span such as 1.5s:2s")] = None,
) -> None:
    """Write some events to a smaller trace. Events keep their numbers."""
    from ..tracing.slices import write_slice

    with opened(file) as trace:
        if not actor and time is None:
            raise UsageError("slice needs --actor or --time")
        refuse_overwriting(out, file, "trace")
        lanes = trace.actors()
        for name in actor or ():
            if name not in lanes:
                raise UsageError(f"no actor {name!r} in this trace{nearest_names(name, lanes)}")
        start_us, stop_us = _span(time)
        chosen = queries.selected(
            trace.events(),
            actors=frozenset(actor) if actor else None,
            start_us=start_us,
            stop_us=stop_us,
        )
        words = [f"--actor {name}" for name in actor or ()]
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
    to: Annotated[str, typer.Option("--to", help=f"the format: {', '.join(FORMS)}")] = "text",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="default: standard output")
    ] = None,
) -> None:
    """Write the trace in another format. ``text`` has one line for each event."""
    with opened(file) as trace:
        write = writer_of(to)
        if out is None:
            if not FORMS[to].is_text:
                raise UsageError(f"{to} is no text; name a file with -o")
            sys.stdout.flush()
            write(trace, sys.stdout.buffer)
            return
        refuse_overwriting(out, file, "trace")
        try:
            export_file(trace, to, out)
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"a trace of {len(trace)} events, written to {out} as {to}")


@app.command("html")
def html_(
    file: File,
    out: Annotated[Path, typer.Option("-o", "--out", help="the page, such as run.html")],
    compare: Annotated[
        Path | None, typer.Option(help="another .fktrace file to show beside it")
    ] = None,
) -> None:
    """Write the trace as a web page: one file that opens in any browser, without a network."""
    from ..tracing.web.page import write_page

    with opened(file) as trace, opened(compare) if compare else nullcontext() as other:
        for path in (file, compare):
            if path is not None:
                refuse_overwriting(out, path, "trace")
        try:
            size = write_page(trace, out, other)
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
        print(f"{len(trace)} events written to {out} ({size / 1e6:.1f} MB)")
