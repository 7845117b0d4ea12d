"""Common parts of the verbs of ``fakekafka trace``: the application, opening the file, printing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ..protocol.errors import FakeKafkaError
from ..tracing.events import Event, TraceError
from ..tracing.reading.soundness import first_malformation
from ..tracing.text import format_event
from ..tracing.trace import no_cyclic_collection
from ..tracing.trace_file import TraceReader
from .exits import end_with_error

app: typer.Typer = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Ask questions about a recorded run. Events have numbers (#1234); times are virtual.",
)

File = Annotated[Path, typer.Argument(help="a .fktrace file")]
Seq = Annotated[
    str,
    typer.Argument(
        help="an event such as 1234 or #1234, a time such as 9.5s, or a breakpoint: "
        "'last change broker-1/orders-0/isr', 'kind == expire'"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="-v whole payload, -vv state changes")
]


_READER_ERRORS = (
    TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
"""Errors that a reader raises on a file that is not a trace."""


@contextmanager
def opened(file: Path) -> Iterator[TraceReader]:
    """Open the trace in a file. An error in the file or in the query exits with status 2.

    The cyclic collector is off meanwhile: a command ends soon, and the data it reads has no cycles.
    """
    try:
        with no_cyclic_collection(), TraceReader(file) as trace:
            if trace.problem is not None:
                print(f"warning: {trace.problem}; showing what is whole", file=sys.stderr)
            try:
                yield trace
            except _READER_ERRORS as error:
                malformation = first_malformation(trace)
                if malformation is None:
                    raise
                raise TraceError(
                    f"{file}: damaged, or not written by fakekafka: {malformation}"
                ) from error
    except FakeKafkaError as error:
        end_with_error(str(error))


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))


def print_events(events: Iterable[Event], verbose: int, as_json: bool) -> int:
    count = 0
    for event in events:
        count += 1
        if as_json:
            print_json(event.as_dict())
        else:
            print(format_event(event, verbose))
    return count
