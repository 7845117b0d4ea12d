"""Queries on a trace: filters, sequences of two events, ranges."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from ...protocol.errors import UsageError, did_you_mean
from ..events import KINDS, Event
from ..expressions import Expression, compile_expression, parse_duration_us
from ..message_types import message_type_names
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
    "op": lambda event: event.op,
    "why": lambda event: event.why,
    "epochs": lambda event: dict(
        zip(("controller", "leader", "zk_version"), event.epochs or (), strict=False)
    ),
    "payload": lambda event: event.fields,
    "delta": lambda event: [path for path, _, _ in event.delta],
}
COLUMNS = tuple(_COLUMNS)
"""Names that an expression over events may use, besides the fields of payloads."""


def _lookup(event: Event, name: str) -> Any:
    column = _COLUMNS.get(name)
    return event.fields.get(name) if column is None else column(event)


def compile_filter(text: str, trace: StoredTrace) -> Expression:
    """Compile an expression over the events of a trace.

    It may use the names in ``COLUMNS`` (``t`` is in seconds) and all fields of payloads. Kinds,
    actors and types of this trace need no quotes if they are plain words.
    """
    fields = {name: None for shapes in trace.schema.types.values() for name, _ in shapes}
    names = [*COLUMNS, *(name for name in fields if name not in _COLUMNS)]
    words = dict.fromkeys((*KINDS, *trace.strings, *trace.schema.types))
    expression = compile_expression(text, _lookup, names, words=words)
    _check_compared(expression.text, trace)
    return expression


def compile_event_expression(
    text: str,
    *,
    of_event: Callable[[Any], Event],
    fields: Collection[str],
    words: Collection[str],
    more: Mapping[str, Callable[[Any], Any]],
    functions: Mapping[str, Callable[..., Any]],
) -> Expression:
    """Compile an expression over a scope with an event, and with ``more`` names besides columns."""

    def lookup(scope: Any, name: str) -> Any:
        own = more.get(name)
        return _lookup(of_event(scope), name) if own is None else own(scope)

    names = dict.fromkeys((*more, *COLUMNS, *fields))
    expression = compile_expression(
        text, lookup, names, words=dict.fromkeys(words), functions=functions
    )
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            if node.left.id == "kind":
                known: Collection[str] = KINDS
            elif node.left.id == "type":
                known = words
            else:
                continue
            for word in _constants(node):
                # Timers have names in lower case, which are unknown until they fire.
                if word not in known and not (node.left.id == "type" and word[:1].islower()):
                    raise _unknown(text, f"{node.left.id} {word!r}", word, known)
    return expression


def _check_compared(text: str, trace: StoredTrace) -> None:
    """Raise ``UsageError`` for a comparison with a type, kind or field that no event can have."""
    types = dict.fromkeys((*message_type_names(), *trace.schema.types))
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            known: Collection[str]
            if node.left.id == "type":
                known = dict.fromkeys((*types, *trace.used_types()))
            elif node.left.id == "kind":
                known = KINDS
            else:
                continue
            for word in _constants(node):
                if word not in known:
                    raise _unknown(text, f"{node.left.id} {word!r}", word, known)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("payload", "epochs")
        ):
            fields: Collection[str] = ("controller", "leader", "zk_version")
            if node.value.id == "payload":
                fields = {name: None for of in trace.schema.types.values() for name, _ in of}
            if node.attr not in fields:
                raise _unknown(text, f"field {node.attr!r}", node.attr, fields)


def _constants(node: ast.Compare) -> Iterator[str]:
    """Yield the texts with which a value is compared for equality or membership."""
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            parts = right.elts if isinstance(right, (ast.Tuple, ast.List)) else [right]
            for part in parts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def _unknown(text: str, what: str, word: str, known: Collection[str]) -> UsageError:
    hint = did_you_mean(word, known, cutoff=0.4)
    return UsageError(f"expression {text!r}: unknown {what}{hint}")


def grep(trace: StoredTrace, expression: Expression, start: int = 0, stop: int | None = None
         ) -> Iterator[Event]:  # fmt: skip
    """Yield the events that satisfy an expression; chunks that cannot have any are skipped."""
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
    """Yield each event that satisfies ``first`` with the next that satisfies ``then``, if that is
    within ``within_us`` microseconds."""
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
    """Parse a range such as ``100:200``, ``#100``, ``1.5s:2s``, ``:50`` or ``-20:``.

    Returns the first seq and the seq after the last. Numbers are seqs, durations are virtual time
    since the run began, and negative numbers count from the end. Raises ``UsageError`` for anything
    else.
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


def selected(
    events: Iterable[Event],
    *,
    actors: frozenset[str] | None = None,
    start_us: int | None = None,
    stop_us: int | None = None,
) -> Iterator[Event]:
    """Yield the events that have one of the actors as actor or peer, within a span of time."""
    for event in events:
        if start_us is not None and event.time_us < start_us:
            continue
        if stop_us is not None and event.time_us >= stop_us:
            return
        if actors is None or event.actor in actors or event.peer in actors:
            yield event
