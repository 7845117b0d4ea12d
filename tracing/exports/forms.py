"""The formats to which a trace can be exported.

The module of a format has ``write(trace, stream)``, which writes event by event to a binary stream.
The library that it needs is imported only when the format is used.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ...protocol.errors import UsageError
from ..trace import StoredTrace

Write = Callable[[StoredTrace, BinaryIO], None]


class Form(NamedTuple):
    """A format: the module that writes it, and whether a terminal can show it."""

    module: str
    is_text: bool
    what: str


FORMS = {
    "text": Form("text_lines", True, "one line for each event"),
    "jsonl": Form("json_lines", True, "one JSON object for each event"),
    "mermaid": Form("mermaid", True, "a sequence diagram for Markdown pages"),
    "shiviz": Form("shiviz", True, "a log for ShiViz, with vector clocks"),
    "otlp": Form("otlp", True, "OpenTelemetry traces as lines of JSON"),
    "perfetto": Form("perfetto_proto", False, "a trace for ui.perfetto.dev"),
    "parquet": Form("parquet", False, "a table with a row for each event"),
}


def writer_of(name: str) -> Write:
    """Return the function that writes a format.

    Raises ``UsageError`` if there is no such format or its library is not installed.
    """
    form = FORMS.get(name)
    if form is None:
        raise UsageError(f"cannot export to {name!r}; forms are {', '.join(FORMS)}")
    try:
        module = importlib.import_module(f".{form.module}", __package__)
    except ImportError as error:
        raise UsageError(
            f"export to {name} needs {error.name}; install it with pip install 'fakekafka[export]'"
        ) from None
    write: Write = module.write
    return write


def export_file(trace: StoredTrace, name: str, path: Path) -> None:
    """Write a trace to a file; a failed export leaves no file behind."""
    write = writer_of(name)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as stream:
            write(trace, stream)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
