"""Text: one line for each event."""

from __future__ import annotations

from typing import BinaryIO

from ..text import format_event
from ..trace import StoredTrace


def write(trace: StoredTrace, stream: BinaryIO) -> None:
    for event in trace.events():
        stream.write(format_event(event).encode() + b"\n")
