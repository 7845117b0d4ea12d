"""Places in a trace, given by a change of state or by a condition on the event.

change broker-1/orders-0/isr                        the first change of that path
change broker-*/orders-0/role if new == 'leader'    the first such change
last change broker-1/orders-0/isr                   the last one
kind == expire and peer == 'controller-2'           the first event that satisfies it
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from ...protocol.errors import UsageError
from ..events import KINDS, Event, TraceError
from ..trace import StoredTrace
from .positions import Position, seq_at
from .queries import compile_event_expression, compile_filter, grep
from .state_history import StateChange, changes

_PLACE = re.compile(r"(?:(?P<which>first|last)\s+)?(?P<what>.*)", re.DOTALL)
_CHANGE = re.compile(r"change\s+(?P<path>\S+)(?:\s+if\s+(?P<condition>.+))?", re.DOTALL)
_DESCRIBES_EVENT = re.compile(r"^(first|last|change)\b|[=<>(]|\bin\b")


def seq_of(trace: StoredTrace, position: Position) -> int:
    """Return the number of the event at a position; a text may also describe the event.

    Raises ``UsageError`` for a text that is neither, and ``TraceError`` if no event matches.
    """
    if not isinstance(position, str) or not _DESCRIBES_EVENT.search(position.strip()):
        return seq_at(trace, position)
    match = _PLACE.fullmatch(position.strip())
    assert match is not None
    found = _events(trace, match["what"], position)
    if match["which"] == "last":
        found = iter(deque(found, 1))
    event = next(found, None)
    if event is None:
        raise TraceError(f"nothing in this trace is {position!r}")
    return event.seq


def _events(trace: StoredTrace, what: str, position: str) -> Iterator[Event]:
    if not what.startswith("change"):
        return grep(trace, compile_filter(what, trace))
    match = _CHANGE.fullmatch(what)
    if match is None:
        raise UsageError(
            f"{position!r}: write it like change broker-1/orders-0/isr if new == [1, 2]"
        )
    found = changes(trace, match["path"])
    if match["condition"] is None:
        return (change.event for change in found)
    expression = compile_event_expression(
        match["condition"],
        of_event=lambda change: change.event,
        fields=(),
        words=(*KINDS, *trace.used_types()),
        more={"path": _path, "old": _old, "new": _new},
        functions={},
    )
    return (change.event for change in found if expression.holds(change))


def _path(change: StateChange) -> str:
    return change.path


def _old(change: StateChange) -> object:
    return change.old


def _new(change: StateChange) -> object:
    return change.new
