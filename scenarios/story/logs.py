"""The notation of a log in stories: ``[m0/0 m1/0]``, the value and leader epoch of each record.

``r0..r9/0`` stands for the values r0 to r9, and ``0..9/0`` for records with any value at offsets 0
to 9. A pattern is parsed once and compared with the records of a replica.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...testing.parameters.kinds import STRING, BadArgument, Context, Kind, list_of

_SHORTEST_RUN = 3
_RECORD = re.compile(r"([^\s/\[\]]+)/(\d+)")
_RANGE = re.compile(r"(\D*?)(\d+)\.\.(\D*?)(\d+)")
_NUMBERED = re.compile(r"(.*?)(\d+)")


class LogRecord(NamedTuple):
    """The parts of a record that stories compare."""

    value: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LogPattern:
    """The expected contents of a log: (value, epoch) per offset from 0 on; a value of None matches
    any value."""

    text: str
    records: tuple[tuple[str | None, int], ...]

    def matches(self, records: Sequence[LogRecord]) -> bool:
        return len(records) == len(self.records) and all(
            wanted in (None, record.value) and epoch == record.epoch
            for (wanted, epoch), record in zip(self.records, records, strict=True)
        )


def value_range(text: str) -> list[str]:
    """Expand a range: ``r0..r3`` to r0, r1, r2, r3; other texts are returned as they are.

    Raises ``ValueError`` for an invalid range.
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        return [text]
    prefix, first, last = match[1], int(match[2]), int(match[4])
    if match[3] != prefix or last < first:
        raise ValueError(f"{text!r} is not a range; write it like 'r0..r9'")
    return [f"{prefix}{number}" for number in range(first, last + 1)]


def read_pattern(text: str) -> LogPattern:
    """Parse a pattern; raise ``ValueError`` with the problem if it is invalid."""
    if not (text.startswith("[") and text.endswith("]")):
        raise ValueError(f"{text!r} is not a log; write it like '[m0/0 m1/0]'")
    records: list[tuple[str | None, int]] = []
    for part in text[1:-1].split():
        match = _RECORD.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not a record; write its value and epoch, like 'm0/0'")
        values, epoch = value_range(match[1]), int(match[2])
        if values[0].isdigit() and len(values) > 1:
            if int(values[0]) != len(records):
                raise ValueError(f"{part!r} stands at offset {len(records)}, not {values[0]}")
            records += [(None, epoch)] * len(values)
        else:
            records += [(value, epoch) for value in values]
    return LogPattern(text, tuple(records))


def _convert_log(value: Any, context: Context) -> LogPattern:
    try:
        return read_pattern(STRING.convert(value, context))
    except ValueError as error:
        raise BadArgument(str(error)) from None


LOG = Kind("a log", {"type": "string"}, _convert_log, "[m0/0 m1/0]", parse_text=str)


def _convert_values(value: Any, context: Context) -> list[str]:
    try:
        return [one for text in _TEXTS.convert(value, context) for one in value_range(text)]
    except ValueError as error:
        raise BadArgument(str(error)) from None


_TEXTS = list_of(STRING, "values of records", ["m1", "r0..r9"], least=1, takes_one=True)
VALUES = Kind(_TEXTS.words, {"type": ["string", "array"]}, _convert_values, _TEXTS.example)


def runs_of(records: Sequence[LogRecord]) -> list[list[LogRecord]]:
    """Group the records into runs of consecutive numbers with the same prefix and epoch."""
    groups: list[list[LogRecord]] = []
    for record in records:
        if groups and _follows(groups[-1][-1], record):
            groups[-1].append(record)
        else:
            groups.append([record])
    return groups


def _follows(before: LogRecord, record: LogRecord) -> bool:
    first, second = _NUMBERED.fullmatch(before.value), _NUMBERED.fullmatch(record.value)
    return (
        first is not None
        and second is not None
        and before.epoch == record.epoch
        and first[1] == second[1]
        and int(first[2]) + 1 == int(second[2])
    )


def format_log(records: Sequence[LogRecord]) -> str:
    """Format records as a pattern; runs of three or more become a range."""
    parts: list[str] = []
    for run in runs_of(records):
        if len(run) >= _SHORTEST_RUN:
            parts.append(f"{run[0].value}..{run[-1].value}/{run[0].epoch}")
        else:
            parts += [f"{record.value}/{record.epoch}" for record in run]
    return f"[{' '.join(parts)}]"


def format_epochs(epochs: Sequence[tuple[int, int]]) -> str:
    """Format a leader-epoch cache as ``0@0 2@12`` (epoch@start offset)."""
    return " ".join(f"{epoch}@{start}" for epoch, start in epochs)
