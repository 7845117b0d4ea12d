"""Positions in a trace: an event's number, the event itself, or a time such as ``9.5s``."""

from __future__ import annotations

import re

from ...protocol.errors import UsageError
from ..events import Event, TraceError
from ..expressions import parse_duration_us
from ..text import format_time
from ..trace import StoredTrace

Position = int | str | Event
"""``1234``, ``"1234"``, ``"#1234"``, an event, or a time (``"9.5s"``, ``"200ms"``)."""

_POSITION = re.compile(r"#?(?P<number>\d+)|(?P<time>(?:\d+(?:\.\d+)?|\.\d+)(?:us|ms|s|m|min))")


def number_or_time(text: str) -> tuple[int | None, int | None]:
    """Parse a text as an event's number or as a time in microseconds.

    Returns (number, None), (None, time), or (None, None) if the text is neither.
    """
    match = _POSITION.fullmatch(text)
    if match is None:
        return None, None
    if match["number"] is not None:
        return int(match["number"]), None
    return None, parse_duration_us(match["time"])


def seq_at(trace: StoredTrace, position: Position) -> int:
    """Return the number of the event at a position; for a time, the last event at or before it.

    Raises ``UsageError`` for a value that is not a position, and ``TraceError`` for a time without
    such an event.
    """
    if isinstance(position, Event):
        return position.seq
    if isinstance(position, bool):
        raise _no_position(position)
    if isinstance(position, int):
        return position
    if not isinstance(position, str):
        raise _no_position(position)
    number, time_us = number_or_time(position.strip())
    if number is not None:
        return number
    if time_us is None:
        raise _no_position(position)
    return last_seq_by(trace, time_us)


def _no_position(position: object) -> UsageError:
    return UsageError(
        f"{position!r} is not an event; write its number, such as 1234 or #1234, or a time "
        "such as 9.5s"
    )


def first_seq_at(trace: StoredTrace, time_us: int) -> int:
    """Return the number of the first event at or after a time; one past the last if none is."""
    index = trace.chunk_at(time_us)
    if index is None:
        return trace.last_seq + 1
    return next(e.seq for e in trace.chunk_events(index) if e.time_us >= time_us)


def last_seq_by(trace: StoredTrace, time_us: int) -> int:
    """Return the number of the last event at or before a time; raise ``TraceError`` if none is."""
    if not trace.chunks:
        raise TraceError("the trace is empty")
    first_us = trace.chunks[0].time_first_us
    if time_us < first_us:
        raise TraceError(
            f"there is no event at or before {format_time(time_us)} s: the trace begins at "
            f"{format_time(first_us)} s"
        )
    index = trace.chunk_at(time_us + 1)
    if index is None:
        return trace.last_seq
    earlier = [e.seq for e in trace.chunk_events(index) if e.time_us <= time_us]
    return earlier[-1] if earlier else trace.chunks[index - 1].last_seq
