"""Compares two runs: where they diverge, and what differs from there on.

Equal runs have equal chunks, so comparing the digests of chunks finds the place without decoding
equal chunks.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from .events import Event, jsonable
from .trace import StoredTrace

COMPARED = (
    "time_us", "kind", "actor", "peer", "type", "message_id", "cause", "epochs", "fields",
    "delta", "why",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two traces differ."""

    seq: int
    left: Event | None
    """None where the left trace has ended."""
    right: Event | None
    columns: tuple[str, ...]
    """Columns that differ; payload fields as ``fields.name``."""

    def describe(self) -> str:
        if self.left is None or self.right is None:
            side = "first" if self.left is None else "second"
            return f"#{self.seq}: the {side} trace has ended"
        pairs = []
        for column in self.columns:
            left, right = (_column(event, column) for event in (self.left, self.right))
            pairs.append(f"{column}: {jsonable(left)!r} / {jsonable(right)!r}")
        return f"#{self.seq}: " + "; ".join(pairs)


def _column(event: Event, column: str) -> Any:
    if column.startswith("fields."):
        return event.fields.get(column[7:])
    return getattr(event, column)


def differing_columns(left: Event, right: Event) -> tuple[str, ...]:
    """Return the columns in which two events differ, except their seqs."""
    columns: list[str] = []
    for column in COMPARED:
        if column == "fields":
            names = dict.fromkeys((*left.fields, *right.fields))
            columns += [
                f"fields.{name}"
                for name in names
                if left.fields.get(name) != right.fields.get(name)
            ]
        elif getattr(left, column) != getattr(right, column):
            columns.append(column)
    return tuple(columns)


def first_difference(left: StoredTrace, right: StoredTrace) -> Difference | None:
    """Return the first event in which two traces differ; None if they hold the same events."""
    start = _equal_until(left, right)
    for a, b in zip_longest(left.events(start), right.events(start)):
        if a is None or b is None:
            return Difference((a or b).seq, a, b, ())
        if a.seq != b.seq:
            return Difference(min(a.seq, b.seq), a, b, ("seq", *differing_columns(a, b)))
        columns = differing_columns(a, b)
        if columns:
            return Difference(a.seq, a, b, columns)
    return None


def _equal_until(left: StoredTrace, right: StoredTrace) -> int:
    """Return the seq before which all chunks of both traces are equal."""
    start = 0
    for a, b in zip(left.chunks, right.chunks, strict=False):
        if a.digest != b.digest or a.first_seq != b.first_seq:
            return a.first_seq if a.first_seq <= b.first_seq else b.first_seq
        start = a.last_seq + 1
    return start


@dataclass(frozen=True, slots=True)
class AlignedLine:
    """A line of an aligned comparison, marked `` `` if both events are equal, ``~`` if they differ,
    ``-`` if only the left trace has it, ``+`` if only the right one has it."""

    mark: str
    left: Event | None
    right: Event | None


def _shape(event: Event) -> tuple[Any, ...]:
    return event.kind, event.actor, event.peer, event.type


def aligned(
    left: StoredTrace, right: StoredTrace, start: int, window: int = 400, context: int = 2
) -> list[AlignedLine]:
    """Align two traces from ``context`` events before ``start`` on, by kind, actor, peer and type.

    ``~`` marks events that match in these but differ in time or content. At most ``window`` events
    of each trace are compared.
    """
    first = max(start - context, 0)
    a = list(islice(left.events(first), window))
    b = list(islice(right.events(first), window))
    matcher = difflib.SequenceMatcher(
        None, [_shape(event) for event in a], [_shape(event) for event in b], autojunk=False
    )
    lines: list[AlignedLine] = []
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(a[a1:a2], b[b1:b2], strict=True):
                mark = "~" if differing_columns(one, other) else " "
                lines.append(AlignedLine(mark, one, other))
            continue
        lines += [AlignedLine("-", event, None) for event in a[a1:a2]]
        lines += [AlignedLine("+", None, event) for event in b[b1:b2]]
    return lines
