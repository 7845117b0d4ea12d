"""Checks at the end of a run that a program has processed its input correctly.

``Work`` names the input and the sign that a record was processed: a note of the program, such as
``simulation.note("charged", order=41)``, or a record in an output topic. Each check compares input
and signs, and describes each problem: the record, its place, the event of the trace, and its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ...protocol.errors import UsageError
from ..checks import Verdict
from ..handles.partitions import Partitions
from ..views import ConsumerRecord
from .history import ProgramHistory

if TYPE_CHECKING:
    from ...programs.notes import Note
    from ..simulation import Simulation

Identify = Callable[[Any], object]
"""Returns the identity of a record; the value in a program's note must be equal to it as text."""


def _value(record: ConsumerRecord) -> object:
    return record.value


def _text(identity: object) -> str:
    return identity.decode(errors="replace") if isinstance(identity, bytes) else str(identity)


class _Stored(NamedTuple):
    """A record in the log of its partition's leader."""

    record: ConsumerRecord
    has_producer_id: bool
    outcome: str
    """``aborted`` or ``unfinished`` if the record's transaction is; otherwise empty."""

    def __str__(self) -> str:
        record = self.record
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"{record.topic}-{record.partition}, offset {record.offset}{outcome}"


class _Report(NamedTuple):
    """A sign that a record was processed, for the text of a problem."""

    description: str
    """Description of the program or the place, and of the time."""
    program: str
    event: int


class Work:
    """The records of input topics, and the signs that a program has processed them.

    A record's sign is a ``note``, or a record in the topic ``output``. ``by`` is the name of the
    note's value that identifies the record; problems use it, too. ``identify`` returns the identity
    of an input record, by default its value. ``identify_output`` returns that of an output record,
    by default as ``identify`` does.

    With the ``group`` that reads the input, problems say which program committed past a record, and
    which had its partition. Records of aborted and unfinished transactions do not count. Without
    ``topics`` the input is not in Kafka, and only ``none_processed_twice`` can be checked.

    Input and signs are read when the object is created. Raises ``UsageError`` for a note that lacks
    the value, and ``NotThereYet`` for a topic that does not exist or has no leader.
    """

    def __init__(
        self,
        simulation: Simulation,
        topics: str | Iterable[str] = (),
        *,
        by: str,
        note: str | None = None,
        output: str | None = None,
        identify: Identify = _value,
        identify_output: Identify | None = None,
        group: str | None = None,
    ) -> None:
        if (note is None) == (output is None):
            raise UsageError(
                "Work needs a note or an output topic that tells of each record, such as "
                f"note='charged' or output='invoices', not note={note!r}, output={output!r}"
            )
        self._simulation = simulation
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._by = by
        self._note = note
        self._output = output
        self._group = group
        self._input = _by_identity(simulation, self._topics, identify)
        """All input records by identity, including records of aborted transactions."""
        self._expected = {
            identity: valid
            for identity, stored in self._input.items()
            if (valid := [one.record for one in stored if not one.outcome])
        }
        """The input records that count, by identity."""
        self._signs: dict[str, list[Note | _Stored]] = {}
        """Notes or output records, by the identity of the processed record."""
        for identity, sign in self._read_signs(identify_output or identify):
            self._signs.setdefault(identity, []).append(sign)

    def _read_signs(self, identify: Identify) -> Iterator[tuple[str, Note | _Stored]]:
        """Yield the signs in order, each with the identity of the processed record."""
        if self._output is not None:
            for stored in _stored_records(self._simulation, self._output):
                if not stored.outcome:
                    yield _text(identify(stored.record)), stored
            return
        for note in self._simulation.notes(self._note):
            if self._by not in note.values:
                raise UsageError(
                    f"the note {str(note)!r} of {note.program} has no value {self._by!r}; its "
                    f"values are {', '.join(note.values) or 'none'}"
                )
            yield _text(note.values[self._by]), note

    @cached_property
    def _history(self) -> ProgramHistory:
        return ProgramHistory(self._simulation, self._group)

    # -- in words ------------------------------------------------------------------------------

    def _describe(self, identity: str) -> str:
        """Describe a record: ``order 41 (orders-0, offset 7)``."""
        if not self._topics:
            return f"{self._by} {identity}"
        places = "; ".join(map(str, self._input.get(identity, ())))
        return f"{self._by} {identity} ({places or 'no record'})"

    def _verb(self, adverb: str = "") -> str:
        """Return the verb of a problem: ``was charged``, ``is in invoices``."""
        if self._output is None:
            return f"was{adverb} {self._note}"
        return f"is{adverb.replace('never', 'not')} in {self._output}"

    def _report(self, sign: Note | _Stored) -> _Report:
        if not isinstance(sign, _Stored):
            row = "" if sign.event is None else f", #{sign.event}"
            description = f"by {sign.program} at {sign.time_ms / 1000:.3f} s{row}"
            return _Report(description, sign.program, sign.event or 0)
        append = self._history.append_of(sign.record)
        if append is None:
            return _Report(f"at {sign}", "", 0)
        moment = append.moment
        return _Report(f"at {sign}, {moment}", moment.program, moment.event)

    def _other_notes(self, identity: str) -> list[str]:
        """Describe the other notes about a record."""
        return [
            f"{note.program} noted {str(note)!r} at {note.time_ms / 1000:.3f} s"
            + ("" if note.event is None else f", #{note.event}")
            for note in self._simulation.notes()
            if note.text != self._note and _text(note.values.get(self._by)) == identity
        ]

    def _other_owner(self, report: _Report, identity: str, since: int) -> list[str]:
        """Describe which program had been assigned the partition of a reported record, and from
        which offset it read; empty if that was the reporting program, not after event ``since``."""
        if self._group is None or not report.event:
            return []
        sentences = []
        for record in self._expected.get(identity, ()):
            owner = self._history.owner(record, report.event)
            if owner is not None and (owner.program != report.program or owner.event > since):
                offset = self._history.committed_before(record, owner.event)
                sentences.append(
                    f"{record.topic}-{record.partition} was given to {owner.program} {owner.at}, "
                    + ("when nothing" if offset is None else f"when offset {offset}")
                    + " was committed"
                )
        return sentences

    def _describe_commit(self, records: list[ConsumerRecord]) -> list[str]:
        """Describe who committed past a record, and what happened to that program."""
        history = self._history
        commit = next(filter(None, map(history.committed, records)), None)
        if commit is None:
            return ["its offset was never committed"]
        moment = commit.moment
        sentences = [f"its offset was committed {moment}"]
        if self._output is not None:
            sentences[:0] = self._faults([], 0, moment.event)[-1:]
        return sentences + list(map(str, history.between({moment.program}, moment.event)[:1]))

    def _describe_writer(self, stored: _Stored) -> list[str]:
        """Describe who wrote a record of an uncommitted transaction, and the fault after that."""
        append = self._history.append_of(stored.record)
        if append is None:
            return []
        machines = {append.moment.program, append.broker}
        faults = self._history.between(machines, append.moment.event)
        return [f"it was written {append.moment}", *map(str, faults[:1])]

    def _faults(self, reports: list[_Report], after: int, before: int) -> list[str]:
        machines = {report.program for report in reports}
        if self._output is not None:
            machines.update(process.name for process in self._simulation.running.processes.values())
        return [str(moment) for moment in self._history.between(machines, after, before)]

    # -- checks --------------------------------------------------------------------------------

    def every_input_processed(self) -> Verdict:
        """Check that every input record was processed."""
        problems = []
        for identity, records in self._expected.items():
            if identity in self._signs:
                continue
            causes = self._other_notes(identity)
            if self._group is not None and self._simulation.recorder is not None:
                causes += self._describe_commit(records)
            problems.append(_problem(f"{self._describe(identity)} {self._verb(' never')}", causes))
        return Verdict(len(self._expected), tuple(problems))

    def none_processed_twice(self) -> Verdict:
        """Check that no record was processed more than once."""
        problems = []
        for identity, signs in self._signs.items():
            if len(signs) < 2:
                continue
            reports = [self._report(sign) for sign in signs]
            description = ", then ".join(report.description for report in reports)
            rows = [report.event for report in reports]
            causes = self._other_notes(identity) + self._faults(reports, min(rows), max(rows))
            for report in reports[1:]:
                causes += self._other_owner(report, identity, 0)
            causes += _idempotence(signs)
            what = f"{self._describe(identity)} {self._verb()} {len(signs)} times: {description}"
            problems.append(_problem(what, causes))
        return Verdict(len(self._signs), tuple(problems))

    def none_invented(self) -> Verdict:
        """Check that nothing was processed that is missing from the input, or was aborted there."""
        problems = []
        for identity, signs in self._signs.items():
            if identity in self._expected:
                continue
            description = f"{self._verb()} {self._report(signs[0]).description}"
            aborted = self._input.get(identity, ())
            if not aborted:
                problems.append(f"{self._by} {identity} {description}, and no record has it")
            for stored in aborted[:1]:
                what = f"{self._describe(identity)} {description}"
                problems.append(_problem(what, self._describe_writer(stored)))
        return Verdict(len(self._signs), tuple(problems))

    def order_by_key_kept(self) -> Verdict:
        """Check that records with the same key were first processed in the order of their
        partition."""
        first = {identity: signs[0] for identity, signs in self._signs.items()}
        orders = {identity: place for place, identity in enumerate(first)}
        problems = []
        for (_, _, key), identities in self._by_key().items():
            for earlier, later in pairwise(identities):
                if orders[later] < orders[earlier]:
                    reports = [self._report(first[later]), self._report(first[earlier])]
                    what = (
                        f"of key {key!r} {self._describe(later)} {self._verb()} "
                        f"{reports[0].description}, "
                        f"before {self._describe(earlier)} {reports[1].description}"
                    )
                    rows = [report.event for report in reports]
                    causes = self._other_notes(earlier) + self._faults(reports, 0, max(rows))
                    causes += self._other_owner(reports[1], earlier, min(rows))
                    causes += _idempotence([first[later], first[earlier]])
                    problems.append(_problem(what, causes))
        return Verdict(len(first), tuple(problems))

    def newest_by_key_stands(self) -> Verdict:
        """Check that the newest record of each key was processed last, whatever came before."""
        latest: dict[str, int] = {}
        signs_by_time = [
            (sign, identity) for identity, signs in self._signs.items() for sign in signs
        ]
        signs_by_time.sort(key=lambda pair: _sort_key(pair[0]))
        for place, (_, identity) in enumerate(signs_by_time):
            latest[identity] = place
        problems = []
        for (_, _, key), identities in self._by_key().items():
            newest, last_processed = identities[-1], max(identities, key=latest.__getitem__)
            if last_processed != newest:
                reports = [
                    self._report(self._signs[which][-1]) for which in (last_processed, newest)
                ]
                what = (
                    f"of key {key!r} {self._describe(last_processed)} {self._verb()} "
                    f"{reports[0].description}, "
                    f"after {self._describe(newest)} {reports[1].description}"
                )
                rows = [report.event for report in reports]
                causes = self._other_notes(last_processed) + self._faults(reports[:1], 0, max(rows))
                causes += self._other_owner(reports[0], last_processed, max(rows))
                problems.append(_problem(what, causes))
        return Verdict(len(latest), tuple(problems))

    def committed_after_work(self) -> Verdict:
        """Check that the group committed no offset before the record in front of it was processed.

        The simulation must be recorded, and the commits must not be part of transactions.
        """
        if self._group is None:
            raise UsageError("Work needs the group whose commits are judged: group='payments'")
        problems = []
        for identity, records in self._expected.items():
            reports = [self._report(sign) for sign in self._signs.get(identity, ())]
            for commit in filter(None, map(self._history.committed, records)):
                if not any(report.event < commit.moment.event for report in reports):
                    done = (
                        f"{self._verb()} {reports[0].description}"
                        if reports
                        else self._verb(" never")
                    )
                    problems.append(
                        f"the offset of {self._describe(identity)} was committed {commit.moment}; "
                        f"it {done}"
                    )
        return Verdict(len(self._history.commits), tuple(problems))

    def _by_key(self) -> dict[tuple[str, int, bytes | None], list[str]]:
        """Return the identities of the processed records of each key, in partition order."""
        places = sorted(
            (records[0].topic, records[0].partition, records[0].offset, identity)
            for identity, records in self._expected.items()
            if identity in self._signs
        )
        found: dict[tuple[str, int, bytes | None], list[str]] = {}
        for topic, partition, _, identity in places:
            key = (topic, partition, self._expected[identity][0].key)
            found.setdefault(key, []).append(identity)
        return found


def require(*verdicts: Verdict) -> None:
    """Raise ``AssertionError`` with all problems of these verdicts, if there are any."""
    __tracebackhide__ = True
    problems = [problem for verdict in verdicts for problem in verdict.problems]
    if problems:
        raise AssertionError("\n".join(problems))


def _problem(begin: str, causes: Iterable[str]) -> str:
    return "; ".join([begin, *dict.fromkeys(causes)])


def _idempotence(signs: Iterable[Note | _Stored]) -> list[str]:
    """Describe a producer that was not idempotent, so that brokers could not detect duplicates."""
    if all(sign.has_producer_id for sign in signs if isinstance(sign, _Stored)):
        return []
    return ["its producer is not idempotent"]


def _sort_key(sign: Note | _Stored) -> tuple[Any, ...]:
    """Return the sort key of a sign: the time of a note, the partition and offset of a record."""
    if isinstance(sign, _Stored):
        return sign.record[:3]
    return (sign.time_ms, sign.event)


def _by_identity(
    simulation: Simulation, topics: Iterable[str], identify: Identify
) -> dict[str, list[_Stored]]:
    found: dict[str, list[_Stored]] = {}
    for topic in topics:
        for stored in _stored_records(simulation, topic):
            found.setdefault(_text(identify(stored.record)), []).append(stored)
    return found


def _stored_records(simulation: Simulation, topic: str) -> list[_Stored]:
    """Return the records of a topic, with the outcomes of their transactions."""
    partitions = Partitions(simulation.running)
    keys = partitions.keys(topic)
    if not keys:
        raise partitions.no_such_topic(topic)
    found: list[_Stored] = []
    for key in keys:
        open_transactions: dict[int, list[int]] = {}
        for batch in partitions.batches(key):
            marker = batch.control_marker()
            if marker is not None:
                ended = open_transactions.pop(batch.producer_id, ())
                for place in ended:
                    outcome = "" if marker.is_commit else "aborted"
                    found[place] = found[place]._replace(outcome=outcome)
            elif not batch.is_control:
                for record in batch.records():
                    outcome = "unfinished" if batch.is_transactional else ""
                    if outcome:
                        open_transactions.setdefault(batch.producer_id, []).append(len(found))
                    view = ConsumerRecord(key.topic, key.partition, *record)
                    found.append(_Stored(view, batch.producer_id >= 0, outcome))
    return found
