"""Checks of what a program has done with its input, made at the end of a run.

``Work`` names the input and what shows that a record was dealt with: a note of the program, such as
``simulation.note("charged", order=41)``, or a record of an output topic. Each check compares the
two and names what is wrong: the record, where it was, the row of the trace, and what led to it.
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
"""Gives what identifies a record; what a program notes of it must be equal as text."""


def _value(record: ConsumerRecord) -> object:
    return record.value


def _text(identity: object) -> str:
    return identity.decode(errors="replace") if isinstance(identity, bytes) else str(identity)


class _Stored(NamedTuple):
    """A record in the log of its partition's leader."""

    record: ConsumerRecord
    has_producer_id: bool
    outcome: str
    """``aborted`` or ``unfinished``, as the transaction that it is part of is; else empty."""

    def __str__(self) -> str:
        record = self.record
        outcome = f", {self.outcome}" if self.outcome else ""
        return f"{record.topic}-{record.partition}, offset {record.offset}{outcome}"


class _Report(NamedTuple):
    """A sign that a record was dealt with."""

    told: str
    """The place and the program, for a problem."""
    program: str
    event: int


class Work:
    """The records of input topics, and what a program has to do with each.

    That a record was dealt with is told by a ``note``, or by a record in the topic ``output``. The
    name ``by`` is that of the note's value which identifies the record, and what a problem calls
    it. ``identify`` gives the same of an input record, by default its value, and
    ``identify_output`` of an output record, by default what ``identify`` gives.

    With the ``group`` that reads the input a problem says who committed past a record, and who had
    its partition. Records of aborted and of unfinished transactions do not count. Without
    ``topics`` the input is not in Kafka, and only ``none_processed_twice`` can be asked.

    It holds what there is when it is made. Raises ``UsageError`` for a note that lacks the value,
    and ``NotThereYet`` for a topic that does not exist or has no leader.
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
        """All input records, with those of aborted transactions, by what identifies them."""
        self._expected = {
            identity: valid
            for identity, stored in self._input.items()
            if (valid := [one.record for one in stored if not one.outcome])
        }
        """The input records that count."""
        self._signs: dict[str, list[Note | _Stored]] = {}
        """Notes, or records of the output, by what they tell of."""
        for identity, sign in self._found(identify_output or identify):
            self._signs.setdefault(identity, []).append(sign)

    def _found(self, identify: Identify) -> Iterator[tuple[str, Note | _Stored]]:
        """Give what tells that a record was dealt with, in its order."""
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

    def _shown(self, identity: str) -> str:
        """Return a record in words: ``order 41 (orders-0, offset 7)``."""
        if not self._topics:
            return f"{self._by} {identity}"
        places = "; ".join(map(str, self._input.get(identity, ())))
        return f"{self._by} {identity} ({places or 'no record'})"

    def _is(self, adverb: str = "") -> str:
        """Return the verb of a problem: ``was charged``, ``is in invoices``."""
        if self._output is None:
            return f"was{adverb} {self._note}"
        return f"is{adverb.replace('never', 'not')} in {self._output}"

    def _report(self, sign: Note | _Stored) -> _Report:
        if not isinstance(sign, _Stored):
            row = "" if sign.event is None else f", #{sign.event}"
            told = f"by {sign.program} at {sign.time_ms / 1000:.3f} s{row}"
            return _Report(told, sign.program, sign.event or 0)
        append = self._history.append_of(sign.record)
        if append is None:
            return _Report(f"at {sign}", "", 0)
        moment = append.moment
        return _Report(f"at {sign}, {moment}", moment.program, moment.event)

    def _also_noted(self, identity: str) -> list[str]:
        """Return what else was noted of a record."""
        return [
            f"{note.program} noted {str(note)!r} at {note.time_ms / 1000:.3f} s"
            + ("" if note.event is None else f", #{note.event}")
            for note in self._simulation.notes()
            if note.text != self._note and _text(note.values.get(self._by)) == identity
        ]

    def _owner(self, report: _Report, identity: str, since: int) -> list[str]:
        """Return who had got the partition of what a program reported, if that tells something:
        it was another program, or got it after the row ``since``, from where commits led it.
        """
        if self._group is None or not report.event:
            return []
        told = []
        for record in self._expected.get(identity, ()):
            owner = self._history.owner(record, report.event)
            if owner is not None and (owner.program != report.program or owner.event > since):
                offset = self._history.committed_before(record, owner.event)
                told.append(
                    f"{record.topic}-{record.partition} was given to {owner.program} {owner.at}, "
                    + ("when nothing" if offset is None else f"when offset {offset}")
                    + " was committed"
                )
        return told

    def _who_passed(self, records: list[ConsumerRecord]) -> list[str]:
        """Return who committed past a record, and what became of that program."""
        history = self._history
        commit = next(filter(None, map(history.committed, records)), None)
        if commit is None:
            return ["its offset was never committed"]
        moment = commit.moment
        told = [f"its offset was committed {moment}"]
        if self._output is not None:
            told[:0] = self._faults([], 0, moment.event)[-1:]
        return told + list(map(str, history.between({moment.program}, moment.event)[:1]))

    def _who_wrote(self, stored: _Stored) -> list[str]:
        """Return who wrote a record whose transaction was not committed, and what befell that."""
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
        """Every record of the input was dealt with."""
        problems = []
        for identity, records in self._expected.items():
            if identity in self._signs:
                continue
            causes = self._also_noted(identity)
            if self._group is not None and self._simulation.recorder is not None:
                causes += self._who_passed(records)
            problems.append(_problem(f"{self._shown(identity)} {self._is(' never')}", causes))
        return Verdict(len(self._expected), tuple(problems))

    def none_processed_twice(self) -> Verdict:
        """No record was dealt with more than once."""
        problems = []
        for identity, signs in self._signs.items():
            if len(signs) < 2:
                continue
            reports = [self._report(sign) for sign in signs]
            told = ", then ".join(report.told for report in reports)
            rows = [report.event for report in reports]
            causes = self._also_noted(identity) + self._faults(reports, min(rows), max(rows))
            for report in reports[1:]:
                causes += self._owner(report, identity, 0)
            causes += _idempotence(signs)
            what = f"{self._shown(identity)} {self._is()} {len(signs)} times: {told}"
            problems.append(_problem(what, causes))
        return Verdict(len(self._signs), tuple(problems))

    def none_invented(self) -> Verdict:
        """Nothing was dealt with that no record of the input has, or only one that was aborted."""
        problems = []
        for identity, signs in self._signs.items():
            if identity in self._expected:
                continue
            told = f"{self._is()} {self._report(signs[0]).told}"
            taken_back = self._input.get(identity, ())
            if not taken_back:
                problems.append(f"{self._by} {identity} {told}, and no record has it")
            for stored in taken_back[:1]:
                problems.append(
                    _problem(f"{self._shown(identity)} {told}", self._who_wrote(stored))
                )
        return Verdict(len(self._signs), tuple(problems))

    def order_by_key_kept(self) -> Verdict:
        """Records of one key were first dealt with in their order in their partition."""
        first = {identity: signs[0] for identity, signs in self._signs.items()}
        orders = {identity: place for place, identity in enumerate(first)}
        problems = []
        for (_, _, key), identities in self._by_key().items():
            for earlier, later in pairwise(identities):
                if orders[later] < orders[earlier]:
                    reports = [self._report(first[later]), self._report(first[earlier])]
                    what = (
                        f"of key {key!r} {self._shown(later)} {self._is()} {reports[0].told}, "
                        f"before {self._shown(earlier)} {reports[1].told}"
                    )
                    rows = [report.event for report in reports]
                    causes = self._also_noted(earlier) + self._faults(reports, 0, max(rows))
                    causes += self._owner(reports[1], earlier, min(rows))
                    causes += _idempotence([first[later], first[earlier]])
                    problems.append(_problem(what, causes))
        return Verdict(len(first), tuple(problems))

    def newest_by_key_stands(self) -> Verdict:
        """Check that of each key the newest record was dealt with last, however often others
        were."""
        latest: dict[str, int] = {}
        every = [(sign, identity) for identity, signs in self._signs.items() for sign in signs]
        every.sort(key=lambda pair: _place_of(pair[0]))
        for place, (_, identity) in enumerate(every):
            latest[identity] = place
        problems = []
        for (_, _, key), identities in self._by_key().items():
            newest, stands = identities[-1], max(identities, key=latest.__getitem__)
            if stands != newest:
                reports = [self._report(self._signs[which][-1]) for which in (stands, newest)]
                what = (
                    f"of key {key!r} {self._shown(stands)} {self._is()} {reports[0].told}, "
                    f"after {self._shown(newest)} {reports[1].told}"
                )
                rows = [report.event for report in reports]
                causes = self._also_noted(stands) + self._faults(reports[:1], 0, max(rows))
                causes += self._owner(reports[0], stands, max(rows))
                problems.append(_problem(what, causes))
        return Verdict(len(latest), tuple(problems))

    def committed_after_work(self) -> Verdict:
        """No offset of the group was committed before the record in front of it was dealt with.

        The simulation must be recorded, and commits not be part of transactions.
        """
        if self._group is None:
            raise UsageError("Work needs the group whose commits are judged: group='payments'")
        problems = []
        for identity, records in self._expected.items():
            reports = [self._report(sign) for sign in self._signs.get(identity, ())]
            for commit in filter(None, map(self._history.committed, records)):
                if not any(report.event < commit.moment.event for report in reports):
                    done = f"{self._is()} {reports[0].told}" if reports else self._is(" never")
                    problems.append(
                        f"the offset of {self._shown(identity)} was committed {commit.moment}; "
                        f"it {done}"
                    )
        return Verdict(len(self._history.commits), tuple(problems))

    def _by_key(self) -> dict[tuple[str, int, bytes | None], list[str]]:
        """Return what identifies the records of each key that were dealt with, in their order."""
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
    """Raise ``AssertionError`` with all problems of some verdicts, if there are any."""
    __tracebackhide__ = True
    problems = [problem for verdict in verdicts for problem in verdict.problems]
    if problems:
        raise AssertionError("\n".join(problems))


def _problem(begin: str, causes: Iterable[str]) -> str:
    return "; ".join([begin, *dict.fromkeys(causes)])


def _idempotence(signs: Iterable[Note | _Stored]) -> list[str]:
    """Return whether a producer did without what lets a broker know its records again."""
    if all(sign.has_producer_id for sign in signs if isinstance(sign, _Stored)):
        return []
    return ["its producer is not idempotent"]


def _place_of(sign: Note | _Stored) -> tuple[Any, ...]:
    """Return what orders notes by their time, and records by their place."""
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
    """Return the records of a topic, with what became of their transactions."""
    partitions = Partitions(simulation.running)
    keys = partitions.keys(topic)
    if not keys:
        raise partitions.no_such_topic(topic)
    found: list[_Stored] = []
    for key in keys:
        open_: dict[int, list[int]] = {}
        for batch in partitions.batches(key):
            marker = batch.control_marker()
            if marker is not None:
                ended = open_.pop(batch.producer_id, ())
                for place in ended:
                    outcome = "" if marker.is_commit else "aborted"
                    found[place] = found[place]._replace(outcome=outcome)
            elif not batch.is_control:
                for record in batch.records():
                    outcome = "unfinished" if batch.is_transactional else ""
                    if outcome:
                        open_.setdefault(batch.producer_id, []).append(len(found))
                    view = ConsumerRecord(key.topic, key.partition, *record)
                    found.append(_Stored(view, batch.producer_id >= 0, outcome))
    return found
