"""Compares what happened in two runs, regardless of random ids and times.

The events of each actor are compared in their order, as concurrent events of two actors may be
ordered differently in the two runs. Times, message numbers and the bytes of records are ignored;
random ids (of sessions, producers, topics) are replaced by numbers in order of appearance.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from operator import eq
from typing import Any

from ..alignment import stretches
from ..events import Event, Truncated
from ..trace import StoredTrace

_RANDOM_ID_FIELDS = frozenset(
    {
        "session_id", "connection_id", "password", "producer_id", "topic_id", "cluster_id",
        "directory_id",
        "member_id", "broker_epoch", "zxid", "last_zxid", "czxid", "mzxid", "pzxid",
        "ephemeral_owner", "xid", "correlation_id", "session_epoch",
    }
)  # fmt: skip
_TIME_FIELDS = frozenset(
    {
        "timestamp", "timestamp_ms", "log_append_time", "ctime", "mtime", "time_ms", "now_ms",
        "first_timestamp", "max_timestamp", "base_timestamp", "deadline_ms", "max_wait_ms",
    }
)  # fmt: skip
_TIME_IN_TEXT = re.compile(r'"timestamp"\s*:\s*"?\d+"?')
_ID_IN_TEXT = re.compile(r"(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Z])(?=[\w-]*[a-z])[\w-]{22}(?![\w-])")
"""Matches Kafka's ids of clusters, topics and directories, which have 22 characters."""
_NUMBER_IN_TEXT = re.compile(r"0x[0-9a-f]+|seed \d+|\d+(\.\d+)? ?(ms|s)\b")


_OFFSET_IN_TEXT = re.compile(r"offset \d+")
_SUBJECT_FIELDS = ("topic_partition", "name", "topic", "group_id", "transactional_id")
_KEY_EVENT_KINDS = frozenset({"crash", "restart", "fault", "expire"})
_KEY_PATH_ENDINGS = ("/role", "/isr", "/leader", "/state")
"""Endings of the paths whose changes matter most to a reader who compares two runs."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place where one actor's events in two runs diverge, up to where they match again."""

    left: Event | None
    """The first event that only the left run has; None if there is none."""
    right: Event | None
    left_count: int
    """Number of events that only the left run has here."""
    right_count: int

    @property
    def time_us(self) -> int:
        return min(event.time_us for event in (self.left, self.right) if event is not None)


@dataclass(frozen=True, slots=True)
class LaneDifference:
    """The differences between one actor's events in two runs."""

    actor: str
    left: Event | None
    """The first differing event of the left run; None if the actor has no further events there."""
    right: Event | None
    more: int
    """Number of events from there on, in the run with more of them."""
    equal: int
    """Number of events that are equal in both runs."""
    changed: int
    """Number of events of the same kind about the same subject, with different values."""
    places: tuple[Place, ...]
    """The places where only one run has an event, in order."""

    @property
    def time_us(self) -> int:
        """Time of the first difference in microseconds, in the run that has it first."""
        return min(event.time_us for event in (self.left, self.right) if event is not None)

    @property
    def only_left(self) -> int:
        return sum(place.left_count for place in self.places)

    @property
    def only_right(self) -> int:
        return sum(place.right_count for place in self.places)


class _Lane:
    """One actor's events in a run: of each its number, a hash of all that is compared, and a hash
    of its kind and subject."""

    __slots__ = ("contents", "key_events", "kinds", "numbers")

    def __init__(self) -> None:
        self.numbers = array("q")
        self.contents = array("q")
        self.kinds = array("q")
        self.key_events: list[int] = []  # numbers of faults and of changes of role, leader or ISR

    def add(self, event: Event, ids: dict[Any, str]) -> None:
        self.numbers.append(event.seq)
        self.contents.append(hash(_shape(event, ids)))
        self.kinds.append(hash(_kind_and_subjects(event)))
        if _is_key_event(event):
            self.key_events.append(event.seq)


@dataclass(frozen=True, slots=True)
class StructuralComparison:
    """The result of comparing two runs actor by actor."""

    differences: list[LaneDifference]
    """Differences of the actors whose events are not all equal, ordered by the first time."""
    only_left: list[Event]
    """Faults, and changes of leaders, roles and ISRs, that only the left run has."""
    only_right: list[Event]
    events: tuple[int, int]
    """Number of events of the left run and of the right run."""

    @property
    def shared(self) -> int:
        """Number of events that both runs have, perhaps with different values."""
        only = sum(lane.only_left for lane in self.differences)
        return self.events[0] - only


def compare_structure(left: StoredTrace, right: StoredTrace) -> StructuralComparison:
    """Compare the events of each actor; after a difference the two runs are aligned again."""
    ours, theirs = _lanes(left), _lanes(right)
    found = []
    key_events: tuple[list[int], list[int]] = [], []
    for actor in dict.fromkeys((*ours, *theirs)):
        a, b = ours.get(actor) or _Lane(), theirs.get(actor) or _Lane()
        if a.contents != b.contents:
            found.append(_compare(actor, left, right, a, b, key_events))
    found.sort(key=lambda difference: difference.time_us)
    return StructuralComparison(
        found,
        [left.event(seq) for seq in sorted(key_events[0])],
        [right.event(seq) for seq in sorted(key_events[1])],
        (sum(len(lane.numbers) for lane in ours.values()),
         sum(len(lane.numbers) for lane in theirs.values())),
    )  # fmt: skip


def _compare(
    actor: str,
    left: StoredTrace,
    right: StoredTrace,
    a: _Lane,
    b: _Lane,
    key_events: tuple[list[int], list[int]],
) -> LaneDifference:
    first = next(
        (n for n, (x, y) in enumerate(zip(a.contents, b.contents, strict=False)) if x != y),
        min(len(a.contents), len(b.contents)),
    )
    equal = changed = 0
    places: list[Place] = []
    unmatched: tuple[set[int], set[int]] = set(), set()
    for i, j, left_count, right_count, is_shared in stretches(a.kinds, b.kinds):
        ours, theirs = slice(i, i + left_count), slice(j, j + right_count)
        if is_shared:
            same = sum(map(eq, a.contents[ours], b.contents[theirs]))
            equal, changed = equal + same, changed + left_count - same
            continue
        unmatched[0].update(a.numbers[ours])
        unmatched[1].update(b.numbers[theirs])
        event = left.event(a.numbers[i]) if left_count else None
        other = right.event(b.numbers[j]) if right_count else None
        places.append(Place(event, other, left_count, right_count))
    key_events[0].extend(seq for seq in a.key_events if seq in unmatched[0])
    key_events[1].extend(seq for seq in b.key_events if seq in unmatched[1])
    return LaneDifference(
        actor,
        left.event(a.numbers[first]) if first < len(a.numbers) else None,
        right.event(b.numbers[first]) if first < len(b.numbers) else None,
        max(len(a.numbers), len(b.numbers)) - first,
        equal,
        changed,
        tuple(places),
    )


def _lanes(trace: StoredTrace) -> dict[str, _Lane]:
    ids: dict[Any, str] = {}
    lanes: dict[str, _Lane] = {}
    for event in trace.events():
        lane = lanes.get(event.actor)
        if lane is None:
            lane = lanes[event.actor] = _Lane()
        lane.add(event, ids)
    return lanes


def _is_key_event(event: Event) -> bool:
    if event.kind in _KEY_EVENT_KINDS:
        return True
    return event.kind not in ("spawn", "stop") and any(
        path.endswith(_KEY_PATH_ENDINGS) and "/znodes/" not in path for path, _, _ in event.delta
    )


def _kind_and_subjects(event: Event) -> str:
    """Return an event's kind and subject, without any values except errors."""
    why = None if event.why is None else _OFFSET_IN_TEXT.sub("offset", _text(event.why))
    subjects = sorted(set(_subjects(event.fields)))
    paths = [_text(path) for path, _, _ in event.delta] if event.kind == "state" else None
    return repr((event.kind, event.peer, event.type, why, subjects, paths))


def _subjects(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name in _SUBJECT_FIELDS and isinstance(item, str):
                yield _text(item)
            elif name == "error" and item not in (None, "", 0, "NONE"):
                yield str(item)
            else:
                yield from _subjects(item)
    elif isinstance(value, (list, tuple)) and not isinstance(value, Truncated):
        for item in value:
            yield from _subjects(item)


def _shape(event: Event, ids: dict[Any, str]) -> str:
    why = None if event.why is None else _text(event.why)
    fields = _comparable("", event.fields, ids)
    delta = [
        (_text(path), _comparable(path.rpartition("/")[2], new, ids))
        for path, _, new in event.delta
    ]
    return repr((event.kind, event.peer, event.type, why, fields, delta))


def _comparable(name: str, value: Any, ids: dict[Any, str]) -> Any:
    """Return a value with times left out and random ids replaced by numbers."""
    if name in _TIME_FIELDS:
        return None
    if isinstance(value, dict):
        return {key: _comparable(key, item, ids) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not isinstance(value, Truncated):
        return [_comparable(name, item, ids) for item in value]
    if name in _RANDOM_ID_FIELDS and value not in (None, 0, -1, "", b""):
        return ids.setdefault((name, value), f"{name} {len(ids)}")
    if isinstance(value, bytes):
        is_json = value[:1] == b"{"
        return _text(value.decode(errors="replace")) if is_json else len(value)
    if isinstance(value, Truncated):
        return value.length
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    """Return a text with ids and times replaced by ``#``."""
    if len(text) >= 22:
        text = _ID_IN_TEXT.sub("#", _TIME_IN_TEXT.sub("", text))
    return _NUMBER_IN_TEXT.sub("#", text)
