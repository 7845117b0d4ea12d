"""Checks that a file is a sound trace, as one from an unknown source may only claim to be.

Readers do not check the shape of every event, which would slow them down. When a reader fails, this
module finds what is wrong with the file; if nothing is, the reader itself has a bug.
"""

from __future__ import annotations

from typing import Any

from ..events import Event, jsonable
from ..trace import StoredTrace

_PATH_PARTS = 3  # parts of a change: path, old value, new value


def first_malformation(trace: StoredTrace) -> str | None:
    """Return a description of the first malformed part of a trace; None if the trace is sound."""
    try:
        for number, text in enumerate(trace.strings):
            if not isinstance(text, str):
                return f"name {number} is {_kind_of(text)}"
        for name, shapes in trace.schema.types.items():
            if not isinstance(name, str) or any(not isinstance(n, str) for n, _ in shapes):
                return f"the fields of {name!r} have no names"
        last = -1
        for event in trace.events():
            if isinstance(event.seq, bool) or not isinstance(event.seq, int) or event.seq <= last:
                return f"after event #{last} comes {str(event.seq)[:40]!r}"
            last = event.seq
            problem = _problem_of(event)
            if problem is not None:
                return f"event #{event.seq}: {problem}"
        for index, _ in enumerate(trace.snapshot_seqs):
            trace.snapshot_before(trace.snapshot_seqs[index])
    except RecursionError:
        return "its values are nested too deeply"
    except Exception as error:  # any error that malformed events cause in a reader
        return f"its events are malformed ({type(error).__name__}: {str(error)[:80]})"
    return None


def _problem_of(event: Event) -> str | None:
    numbers = (event.time_us, event.message_id, event.cause, event.op)
    if any(value is not None and not isinstance(value, int) for value in numbers):
        return "a time, message or cause is no number"
    names = (event.kind, event.actor, event.peer, event.type, event.why)
    if any(value is not None and not isinstance(value, str) for value in names):
        return "an actor, type or reason is no text"
    if event.payload is not None and not isinstance(event.payload, (list, tuple, dict)):
        return f"its payload is {_kind_of(event.payload)}"
    if event.epochs is not None and not isinstance(event.epochs, (list, tuple)):
        return f"its epochs are {_kind_of(event.epochs)}"
    for change in event.delta:
        if len(change) != _PATH_PARTS or not isinstance(change[0], str) or "/" not in change[0]:
            return "a change of state has no path"
    jsonable(event.as_dict())
    return None


def _kind_of(value: Any) -> str:
    return f"of type {type(value).__name__}"
