"""The command ``fakekafka debug``: opens a scenario or a trace, and chooses the view."""

from __future__ import annotations

import importlib.util
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...protocol.errors import FakeKafkaError, UsageError
from ..exits import end_with_error

if TYPE_CHECKING:
    from ...debugger.debugger import Debugger


def command(
    target: Annotated[
        str, typer.Argument(metavar="SCENARIO|TRACE", help="a scenario, its name, or a .fktrace")
    ],
    seed: Annotated[int | None, typer.Option(help="seed of a scenario")] = None,
    kafka_version: Annotated[str | None, typer.Option(help="emulated version")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value overriding the file, repeatable")
    ] = None,
    breakpoints: Annotated[
        list[str] | None,
        typer.Option("--break", help="such as 'change broker-1/orders-0/isr'; repeatable"),
    ] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="commands line by line, also on a terminal")
    ] = False,
    web: Annotated[
        bool, typer.Option("--web", help="in a browser on this machine (extra `control`)")
    ] = False,
    port: Annotated[int, typer.Option(help="port of --web; any free one by default")] = 0,
) -> None:
    """Step through a run: forward, back, to breakpoints; look at any actor, inject faults.

    On a terminal it uses the whole screen (extra `debug`); otherwise it reads one command per line.
    """
    logging.getLogger("fakekafka").addHandler(logging.NullHandler())
    try:
        debugger = opened(target, seed, kafka_version, settings or [])
        with debugger:
            warn_of_cut(debugger)
            for text in breakpoints or ():
                debugger.break_on(text)
            if web:
                _serve(debugger, port)
            elif is_full_screen(plain):
                from .view import DebuggerApp

                DebuggerApp(debugger, target).run()
            else:
                from .lines import LineMode

                LineMode(debugger).read(sys.stdin, is_prompting=sys.stdin.isatty())
    except FakeKafkaError as error:
        end_with_error(str(error))


def warn_of_cut(debugger: Debugger) -> None:
    """Print a warning if only the beginning of a recording can be read."""
    if debugger.problem is not None:
        print(f"warning: {debugger.problem}; showing what is whole", file=sys.stderr)


def _serve(debugger: Debugger, port: int) -> None:
    """Serve the page until Ctrl-C."""
    from ...debugger.web_server import WebServer

    server = WebServer(debugger, port)
    try:
        print(f"open {server.url}", flush=True)
        print("Ctrl-C ends it", flush=True)
        server.run()
    finally:
        server.close()


def opened(
    target: str, seed: int | None, kafka_version: str | None, settings: list[str]
) -> Debugger:
    """Return a debugger of a trace or a scenario; a story runs in its newest version by default."""
    from ...debugger.debugger import Debugger
    from ...scenarios.file import load_scenario, with_parameters
    from ..run import parameters_of

    if is_trace(target):
        if seed is not None or kafka_version is not None or settings:
            raise UsageError("a trace has its seed, version and parameters in itself")
        return Debugger.of_trace(target)
    parameters = parameters_of(settings)
    if kafka_version is not None:
        parameters["cluster.kafka_version"] = kafka_version
    spec = load_scenario(target, parameters)
    if spec.story is not None and "cluster.kafka_version" not in parameters:
        spec = with_parameters(spec, {"cluster.kafka_version": spec.story.versions[-1]})
    return Debugger.of_scenario(spec, seed)


def is_trace(target: str) -> bool:
    """Return whether a file is a recording rather than a scenario."""
    path = Path(target)
    if path.suffix == ".fktrace":
        return True
    try:
        with path.open("rb") as file:
            return file.read(7) == b"FKTRACE"
    except OSError:
        return False


def is_full_screen(plain: bool) -> bool:
    """Return whether to use the whole terminal: there is one, and textual is installed."""
    if plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    if importlib.util.find_spec("textual") is None:
        print(
            "the view for the whole terminal needs: pip install 'fakekafka[debug]'", file=sys.stderr
        )
        return False
    return True
