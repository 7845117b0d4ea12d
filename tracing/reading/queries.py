"""Questions to a trace: filter, sequence, range, cause and effect."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...protocol.errors import UsageError
from ..events import KINDS, MESSAGE_KINDS, Event, TraceError
from ..expressions import Expression, compile_expression, parse_duration_us
from ..trace import StoredTrace
from .positions import first_seq_at

_COLUMNS: dict[str, Callable[[Event], Any]] = {
    "seq": lambda event: event.seq,
    "t": lambda event: event.time_us / 1e6,
    "time_us": lambda event: event.time_us,
    "time_ms": lambda event: event.time_us / 1e3,
    "kind": lambda event: event.kind,
    "actor": lambda event: event.actor,
    "peer": lambda event: event.peer,
    "type": lambda event: event.type,
    "msg": lambda event: event.message_id,
    "message_id": lambda event: event.message_id,
    "cause": lambda event: event.cause,
    "why": lambda event: event.why,
    "epochs": lambda event: dict(
        zip(("controller", "leader", "zk_version"), event.epochs or (), strict=False)
    ),
    "payload": lambda event: event.fields,
    "delta": lambda event: [path for path, _, _ in event.delta],
}
COLUMNS = tuple(_COLUMNS)
"""Names an expression over events may use, beside the payload's own fields."""


def _lookup(event: Event, name: str) -> Any:
    column = _COLUMNS.get(name)
    return event.fields.get(name) if column is None else column(event)


def compile_filter(text: str, trace: StoredTrace) -> Expression:
    """An expression over the events of a trace.

    Columns are those of ``COLUMNS`` (``t`` in seconds); any payload field may be named directly;
    kinds, actors and types of this trace need no quotes where they are plain words.
    """
    fields = {name: None for shapes in trace.schema.types.values() for name, _ in shapes}
    names = [*COLUMNS, *(name for name in fields if name not in _COLUMNS)]
    words = dict.fromkeys((*KINDS, *trace.strings, *trace.schema.types))
    return compile_expression(text, _lookup, names, words=words)


def grep(trace: StoredTrace, expression: Expression, start: int = 0, stop: int | None = None
         ) -> Iterator[Event]:  # fmt: skip
    """Events for which the expression holds; chunks that cannot hold one are skipped."""
    wanted = {name: value for name, value in expression.required.items() if isinstance(value, str)}
    for event in trace.events(start, stop, trace.chunk_filter(wanted)):
        if expression.holds(event):
            yield event


def grep_then(
    trace: StoredTrace,
    first: Expression,
    then: Expression,
    within_us: int | None,
    start: int = 0,
    stop: int | None = None,
) -> Iterator[tuple[Event, Event]]:
    """Pairs: an event of the first kind and the next of the second, within a time."""
    waiting: deque[Event] = deque()
    for event in trace.events(start, stop):
        if within_us is not None:
            while waiting and event.time_us - waiting[0].time_us > within_us:
                waiting.popleft()
        if waiting and then.holds(event):
            while waiting:
                yield waiting.popleft(), event
        if first.holds(event):
            waiting.append(event)


def parse_range(text: str | None, trace: StoredTrace) -> tuple[int, int]:
    """``100:200``, ``#100``, ``1.5s:2s``, ``:50``, ``-20:`` as (first seq, seq after the last).

    Numbers are seqs, durations are virtual time since the run began, a negative first number
    counts from the end. Raises ``UsageError`` for anything else.
    """
    end = trace.last_seq + 1
    if not text:
        return trace.first_seq, end
    first, colon, last = text.replace("#", "").partition(":")
    start = _position(first, trace, text) if first else trace.first_seq
    if not colon:
        stop = start + 1 if re.fullmatch(r"-?\d+", first) else end
    else:
        stop = _position(last, trace, text) if last else end
        if first and last and stop < start:
            raise UsageError(f"range {text!r}: the end is before the beginning")
    return max(start, trace.first_seq), min(stop, end)


def _position(text: str, trace: StoredTrace, whole: str) -> int:
    if re.fullmatch(r"-?\d+", text):
        number = int(text)
        return trace.last_seq + 1 + number if number < 0 else number
    try:
        time_us = parse_duration_us(text)
    except UsageError:
        raise UsageError(
            f"range {whole!r}: write seqs or times, like 100:200, #100, 1.5s:2s, :50 or -20:"
        ) from None
    return first_seq_at(trace, time_us)


# -- cause and effect --------------------------------------------------------------------------


def parent_of(trace: StoredTrace, event: Event) -> Event | None:
    """What this event follows from: a delivery from its sending, anything else from its cause."""
    if event.kind in MESSAGE_KINDS and event.kind != "send" and event.message_id is not None:
        for earlier in trace.backwards(event.seq - 1):
            if earlier.message_id == event.message_id and earlier.kind == "send":
                return earlier
    if event.cause is None or event.cause >= event.seq:
        return None
    try:
        return trace.event(event.cause)
    except TraceError:
        return None  # not in this slice


def why(trace: StoredTrace, seq: int, limit: int | None = None) -> list[Event]:
    """The causal ancestors of an event, itself first, the root last."""
    chain = [trace.event(seq)]
    while limit is None or len(chain) <= limit:
        parent = parent_of(trace, chain[-1])
        if parent is None:
            break
        chain.append(parent)
    return chain


@dataclass(slots=True)
class Effect:
    """An event and what it led to."""

    event: Event
    depth: int
    children: list[Effect] = field(default_factory=list)
    is_whole: bool = True
    """False at the root of a tree that the limit cut short."""


def effects(trace: StoredTrace, seq: int, limit: int = 1000, depth: int | None = None) -> Effect:
    """The tree of causal descendants of an event."""
    root = Effect(trace.event(seq), 0)
    nodes: dict[int, Effect] = {seq: root}
    by_message: dict[int, Effect] = {}
    if root.event.kind == "send" and root.event.message_id is not None:
        by_message[root.event.message_id] = root
    for event in trace.events(seq + 1):
        parent = None
        if event.kind != "send" and event.kind in MESSAGE_KINDS and event.message_id is not None:
            parent = by_message.get(event.message_id)
        if parent is None and event.cause is not None:
            parent = nodes.get(event.cause)
        if parent is None or (depth is not None and parent.depth >= depth):
            continue
        if len(nodes) > limit:
            root.is_whole = False
            return root
        node = nodes[event.seq] = Effect(event, parent.depth + 1)
        parent.children.append(node)
        if event.kind == "send" and event.message_id is not None:
            by_message[event.message_id] = node
    return root


def selected(
    events: Iterable[Event],
    *,
    actors: frozenset[str] | None = None,
    start_us: int | None = None,
    stop_us: int | None = None,
) -> Iterator[Event]:
    """Events at or with any of the actors, within a span of virtual time."""
    for event in events:
        if start_us is not None and event.time_us < start_us:
            continue
        if stop_us is not None and event.time_us >= stop_us:
            return
        if actors is None or event.actor in actors or event.peer in actors:
            yield event
