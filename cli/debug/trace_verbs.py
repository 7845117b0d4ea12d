"""Verbs of ``fakekafka trace`` that need the debugger: ``tui`` and ``shrink``."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...protocol.errors import FakeKafkaError, UsageError
from ...tracing.verify import refusal
from ..exits import end_with_error
from ..trace_app import File, app, opened
from .command import is_trace, warn_of_cut


@app.command()
def shrink(
    target: Annotated[
        str, typer.Argument(metavar="FILE|SCENARIO", help="a .fktrace, or a scenario")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="the smaller scenario")],
    seed: Annotated[int | None, typer.Option(help="seed of a scenario")] = None,
) -> None:
    """Leave out faults and clients as long as the promise stays broken; write the scenario."""
    from ...debugger.shrink import shrink as made_smaller
    from ...scenarios.file import load_scenario

    try:
        if is_trace(target):
            with opened(Path(target)) as trace:
                reason = refusal(trace)
                if reason is not None:
                    raise UsageError(f"{target} cannot be run again: {reason}")
                head = trace.header
                text, parameters = head["scenario"], head.get("parameters")
                used = head["seed"] if seed is None else seed
        else:
            spec = load_scenario(target)
            text, parameters = spec.text, spec.parameters
            used = spec.seed if seed is None else seed
        result = made_smaller(text, parameters, used, lambda what: print(f"  without {what}"))
        try:
            out.write_text(result.text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{out}: cannot be written: {error.strerror}") from None
    except FakeKafkaError as error:
        end_with_error(str(error))
    print(f"still broken: {result.problem}")
    print(f"{len(result.dropped)} things left out in {result.runs} runs", file=sys.stderr)
    print(f"again: fakekafka run {shlex.quote(str(out))}")


@app.command()
def tui(file: File) -> None:
    """Browse a trace on the whole terminal: lanes, events, state, payload, causes."""
    from ...debugger.debugger import Debugger

    try:
        if importlib.util.find_spec("textual") is None:
            raise UsageError("this view needs textual: pip install 'fakekafka[debug]'")
        from .view import DebuggerApp

        with Debugger.of_trace(file) as debugger:
            warn_of_cut(debugger)
            DebuggerApp(debugger, file.name).run()
    except FakeKafkaError as error:
        end_with_error(str(error))
