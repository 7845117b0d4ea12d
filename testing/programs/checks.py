"""What a program must have done with its input, asked at the end of a run.

A program reports what it does by ``simulation.note("charged", order=41)``. Each check compares such
reports with the records of the input topics, and names what is wrong: the record, where it was, and
the row of the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ...protocol.groups import OffsetCommitRequest
from ..checks import Verdict

if TYPE_CHECKING:
    from ...programs.notes import Note
    from ..simulation import Simulation
    from ..views import ConsumerRecord

Identify = Callable[[Any], object]
"""Gives what identifies a record; what a program notes of it must be equal as text."""


def _value(record: ConsumerRecord) -> object:
    return record.value


def _text(identity: object) -> str:
    return identity.decode(errors="replace") if isinstance(identity, bytes) else str(identity)


class _Work:
    """Input records and reports of one kind of work, by what identifies them."""

    def __init__(
        self, simulation: Simulation, topics: str | Iterable[str], note: str, by: str,
        identify: Identify,
    ) -> None:  # fmt: skip
        self.by = by
        self.simulation = simulation
        self.records: dict[str, list[ConsumerRecord]] = {}
        for topic in [topics] if isinstance(topics, str) else topics:
            for partition in _partitions(simulation, topic):
                for record in simulation.records(topic, partition):
                    self.records.setdefault(_text(identify(record)), []).append(record)
        self.notes: dict[str, list[Note]] = {}
        for report in simulation.notes(note):
            if by not in report.values:
                raise UsageError(
                    f"the note {str(report)!r} of {report.program} has no value {by!r}; its "
                    f"values are {', '.join(report.values) or 'none'}"
                )
            self.notes.setdefault(_text(report.values[by]), []).append(report)

    def shown(self, identity: str) -> str:
        """Return a record in words: ``order 41 (orders-0, offset 7)``."""
        places = [
            f"{record.topic}-{record.partition}, offset {record.offset}"
            for record in self.records.get(identity, ())
        ]
        return f"{self.by} {identity} ({'; '.join(places) or 'no record'})"


def _partitions(simulation: Simulation, topic: str) -> range:
    from ..handles.partitions import Partitions

    return range(Partitions(simulation.running).partition_count(topic))


def _row(note: Note) -> str:
    row = "" if note.event is None else f", #{note.event}"
    return f"by {note.program} at {note.time_ms / 1000:.3f} s{row}"


def every_input_processed(
    simulation: Simulation,
    topics: str | Iterable[str],
    note: str,
    by: str,
    identify: Identify = _value,
    group: str | None = None,
) -> Verdict:
    """Every record of the topics was reported by ``note``; its value ``by`` identifies it.

    ``identify`` gives the same of a record, by default its value. With a ``group`` a problem says
    who committed past the record, if somebody did.
    """
    work = _Work(simulation, topics, note, by, identify)
    commits = [] if group is None else _commits(simulation, group)
    problems = []
    for identity, records in work.records.items():
        if identity not in work.notes:
            passed = next(
                (commit for record in records for commit in commits if commit.covers(record)), None
            )
            where = "" if passed is None else f"; its offset was committed {passed}"
            problems.append(f"{work.shown(identity)} was never {note}{where}")
    return Verdict(len(work.records), tuple(problems))


def none_processed_twice(
    simulation: Simulation,
    topics: str | Iterable[str],
    note: str,
    by: str,
    identify: Identify = _value,
) -> Verdict:
    """No record was reported more than once."""
    work = _Work(simulation, topics, note, by, identify)
    problems = [
        f"{work.shown(identity)} was {note} {len(notes)} times: {', then '.join(map(_row, notes))}"
        for identity, notes in work.notes.items()
        if len(notes) > 1
    ]
    return Verdict(len(work.notes), tuple(problems))


def none_invented(
    simulation: Simulation,
    topics: str | Iterable[str],
    note: str,
    by: str,
    identify: Identify = _value,
) -> Verdict:
    """Nothing was reported that is in no record."""
    work = _Work(simulation, topics, note, by, identify)
    problems = [
        f"{by} {identity} was {note} {_row(notes[0])}, and no record has it"
        for identity, notes in work.notes.items()
        if identity not in work.records
    ]
    return Verdict(len(work.notes), tuple(problems))


def order_by_key_kept(
    simulation: Simulation,
    topics: str | Iterable[str],
    note: str,
    by: str,
    identify: Identify = _value,
) -> Verdict:
    """Records of one key were first reported in the order in which they are in their partition."""
    work = _Work(simulation, topics, note, by, identify)
    first = {identity: notes[0] for identity, notes in work.notes.items()}
    orders = {identity: place for place, identity in enumerate(first)}
    by_key: dict[tuple[str, int, bytes | None], list[tuple[int, str]]] = {}
    for identity, records in work.records.items():
        if identity in first:
            record = records[0]
            key = (record.topic, record.partition, record.key)
            by_key.setdefault(key, []).append((record.offset, identity))
    problems = []
    for where, places in by_key.items():
        places.sort()
        for (_, earlier), (_, later) in pairwise(places):
            if orders[later] < orders[earlier]:
                problems.append(
                    f"of key {where[2]!r} {work.shown(later)} was {note} "
                    f"{_row(first[later])}, before {work.shown(earlier)} {_row(first[earlier])}"
                )
    return Verdict(len(first), tuple(problems))


def committed_after_work(
    simulation: Simulation,
    topics: str | Iterable[str],
    group: str,
    note: str,
    by: str,
    identify: Identify = _value,
) -> Verdict:
    """No offset of the group was committed before the record in front of it was reported.

    The simulation must be recorded, and commits not be part of transactions.
    """
    work = _Work(simulation, topics, note, by, identify)
    commits = _commits(simulation, group)
    problems = []
    for identity, records in work.records.items():
        for record in records:
            commit = next((commit for commit in commits if commit.covers(record)), None)
            if commit is None:
                continue
            notes = work.notes.get(identity, ())
            if not any((report.event or 0) < commit.event for report in notes):
                later = f"; it was {note} {_row(notes[0])}" if notes else f"; it was never {note}"
                problems.append(
                    f"the offset of {work.shown(identity)} was committed {commit}{later}"
                )
    return Verdict(len(commits), tuple(problems))


class _Commit:
    """Offsets that a member of a group has asked to commit."""

    def __init__(self, event: Any, offsets: dict[tuple[str, int], int]) -> None:
        self.event: int = event.seq
        self._program = event.actor
        self._time_s = event.time_us / 1e6
        self._offsets = offsets

    def covers(self, record: ConsumerRecord) -> bool:
        """Return whether it says that a record is done with."""
        offset = self._offsets.get((record.topic, record.partition))
        return offset is not None and offset > record.offset

    def __str__(self) -> str:
        return f"by {self._program} at {self._time_s:.3f} s, #{self.event}"


def _commits(simulation: Simulation, group: str) -> list[_Commit]:
    found = []
    for event in simulation.events:
        if event.kind == "send" and event.type == OffsetCommitRequest.__name__:
            fields = event.fields
            if fields.get("group_id") == group:
                offsets = {
                    _place(one["topic_partition"]): one["offset"] for one in fields["partitions"]
                }
                found.append(_Commit(event, offsets))
    return found


def _place(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)
