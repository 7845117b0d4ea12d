"""Two runs compared by what happened in them, whatever ids were drawn and when it was.

Each actor's events are compared in their order: what two actors do at once may come in either order
in one run and in the other. Times, numbers of messages and the bytes of records do not count; ids
that are drawn (of sessions, producers, topics) count as the first, the second and so on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..events import Event, Truncated
from ..trace import StoredTrace

_DRAWN = frozenset(
    {
        "session_id", "connection_id", "password", "producer_id", "topic_id", "cluster_id",
        "directory_id",
        "member_id", "broker_epoch", "zxid", "last_zxid", "czxid", "mzxid", "pzxid",
        "ephemeral_owner", "xid", "correlation_id", "session_epoch",
    }
)  # fmt: skip
_TIMES = frozenset(
    {
        "timestamp", "timestamp_ms", "log_append_time", "ctime", "mtime", "time_ms", "now_ms",
        "first_timestamp", "max_timestamp", "base_timestamp", "deadline_ms", "max_wait_ms",
    }
)  # fmt: skip
_TIME_IN_TEXT = re.compile(r'"timestamp"\s*:\s*"?\d+"?')
_ID_IN_TEXT = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{22}(?![\w-])")
"""Kafka's ids of clusters, topics and directories are 22 letters and digits."""
_NUMBER_IN_TEXT = re.compile(r"0x[0-9a-f]+|seed \d+|\d+(\.\d+)? ?(ms|s)\b")


@dataclass(frozen=True, slots=True)
class LaneDifference:
    """The first event in which one actor's events differ; None where it does nothing more."""

    actor: str
    left: Event | None
    right: Event | None
    more: int
    """Events of the longer side from there on."""

    @property
    def time_us(self) -> int:
        """When it is, in the run that has it first."""
        return min(event.time_us for event in (self.left, self.right) if event is not None)


def structural_differences(left: StoredTrace, right: StoredTrace) -> list[LaneDifference]:
    """The first difference of every actor, in order of time; empty for runs of one structure."""
    ours, theirs = _lanes(left), _lanes(right)
    found = []
    for actor in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(actor, []), theirs.get(actor, [])
        if [shape for shape, _ in a] == [shape for shape, _ in b]:
            continue
        place = next(
            (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x[0] != y[0]),
            min(len(a), len(b)),
        )
        found.append(
            LaneDifference(
                actor,
                left.event(a[place][1]) if place < len(a) else None,
                right.event(b[place][1]) if place < len(b) else None,
                max(len(a), len(b)) - place,
            )
        )
    return sorted(found, key=lambda difference: difference.time_us)


def _lanes(trace: StoredTrace) -> dict[str, list[tuple[str, int]]]:
    """What each actor did: a word for each event, and its number."""
    ids: dict[Any, str] = {}
    lanes: dict[str, list[tuple[str, int]]] = {}
    for event in trace.events():
        lanes.setdefault(event.actor, []).append((_shape(event, ids), event.seq))
    return lanes


def _shape(event: Event, ids: dict[Any, str]) -> str:
    why = None if event.why is None else _text(event.why)
    fields = _plain("", event.fields, ids)
    delta = [
        (_text(path), _plain(path.rpartition("/")[2], new, ids)) for path, _, new in event.delta
    ]
    return repr((event.kind, event.peer, event.type, why, fields, delta))


def _plain(name: str, value: Any, ids: dict[Any, str]) -> Any:
    """A value without what is drawn and what is a time."""
    if name in _TIMES:
        return None
    if isinstance(value, dict):
        return {key: _plain(key, item, ids) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, Truncated):
        return [_plain(name, item, ids) for item in value]
    if name in _DRAWN and value not in (None, 0, -1, "", b""):
        return ids.setdefault((name, value), f"{name} {len(ids)}")
    if isinstance(value, bytes):
        is_json = value[:1] == b"{"
        return _text(value.decode(errors="replace")) if is_json else len(value)
    if isinstance(value, Truncated):
        return value.length
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """A text without ids and times in it."""
    if len(text) >= 22:
        text = _ID_IN_TEXT.sub("#", _TIME_IN_TEXT.sub("", text))
    return _NUMBER_IN_TEXT.sub("#", text)
