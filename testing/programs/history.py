"""The history of programs in a recording: faults, commits, assigned partitions, and appends.

It reads all events of a run, so it is built only once a check needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...actors.clients.assignors import decode_assignment
from ...protocol.data import ProduceRequest
from ...protocol.errors import ClientError, ErrorCode
from ...protocol.groups import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from ...protocol.values import TopicPartition

if TYPE_CHECKING:
    from ...tracing.events import Event
    from ..simulation import Simulation
    from ..views import ConsumerRecord

_FAULTS = ("crash", "fault")
_NETWORK = "network"
_HEAL = "heal"
_RESUMED = " goes on"


_VERIFICATION_EVENTS_MAX = 10
"""Maximum number of events from the append of a transactional record back to its request."""


class TracedMoment(NamedTuple):
    """An event of the trace, with the program or other machine it is about."""

    event: int
    time_s: float
    program: str
    text: str = ""
    is_crash: bool = False

    @property
    def at(self) -> str:
        return f"at {self.time_s:.3f} s, #{self.event}"

    def __str__(self) -> str:
        return f"{self.text or f'by {self.program}'} {self.at}"


class CommittedOffsets(NamedTuple):
    """Offsets that a group member asked to commit, except refused ones."""

    moment: TracedMoment
    offsets: dict[TopicPartition, int]

    def covers(self, record: ConsumerRecord) -> bool:
        """Return whether the committed offset is past a record."""
        offset = self.offsets.get(TopicPartition(record.topic, record.partition))
        return offset is not None and offset > record.offset


class Append(NamedTuple):
    """A produce request of a program that made a log grow."""

    moment: TracedMoment
    broker: str


class _Growth(NamedTuple):
    """An event at which the log of a broker grew."""

    event: Event
    partition: TopicPartition
    begin: int
    end: int


class ProgramHistory:
    """The events of one simulation that explain what programs did."""

    def __init__(self, simulation: Simulation, group: str | None) -> None:
        self.faults: list[TracedMoment] = []
        self.commits: list[CommittedOffsets] = []
        self._growths: list[_Growth] = []
        self._assignments: list[tuple[TracedMoment, frozenset[TopicPartition]]] = []
        self._group = group
        self._joined_groups: dict[str, str | None] = {}
        self._events: Sequence[Event] = ()
        if simulation.recorder is not None:
            self._events = simulation.events
        for event in self._events:
            self._read(event)

    def _read(self, event: Event) -> None:
        kind, type_ = event.kind, event.type
        if kind in _FAULTS:
            moment = _moment(event, event.actor)
            self.faults.append(moment._replace(text=event.why or "", is_crash=kind == "crash"))
        elif type_ == OffsetCommitRequest.__name__:
            if kind == "send" and event.fields.get("group_id") == self._group:
                offsets = {
                    _parse_partition(one["topic_partition"]): one["offset"]
                    for one in event.fields["partitions"]
                }
                self.commits.append(CommittedOffsets(_moment(event, event.actor), offsets))
        elif type_ == OffsetCommitResponse.__name__:
            if kind == "send":
                for partition, error in event.fields["partitions"]:
                    if error != ErrorCode.NONE.name:
                        self._drop_refused_offset(event.peer, _parse_partition(partition))
        elif type_ == SyncGroupRequest.__name__:
            if kind == "send":
                self._joined_groups[event.actor] = event.fields.get("group_id")
        elif type_ == SyncGroupResponse.__name__:
            if kind == "deliver" and self._joined_groups.get(event.actor) == self._group:
                partitions = _assigned(event.fields.get("assignment"))
                self._assignments.append((_moment(event, event.actor), partitions))
        elif kind == "deliver":
            for path, old, new in event.delta:
                broker, _, field = path.partition("/")
                if broker == event.actor and field.endswith("/log_end_offset"):
                    where = _parse_partition(field.partition("/")[0])
                    self._growths.append(_Growth(event, where, old or 0, new))

    def _drop_refused_offset(self, program: str | None, where: TopicPartition) -> None:
        """Remove a refused offset from the last commit of a program."""
        for commit in reversed(self.commits):
            if commit.moment.program == program:
                commit.offsets.pop(where, None)
                break

    def committed(self, record: ConsumerRecord) -> CommittedOffsets | None:
        """Return the first commit past a record, or None."""
        return next((commit for commit in self.commits if commit.covers(record)), None)

    def append_of(self, record: ConsumerRecord) -> Append | None:
        """Return the request that stored a record; the last one, if logs were truncated."""
        where = TopicPartition(record.topic, record.partition)
        for growth in reversed(self._growths):
            if growth.partition == where and growth.begin <= record.offset < growth.end:
                return self._request_of(growth.event)
        return None

    def _request_of(self, event: Event) -> Append | None:
        """Return the produce request that led to an event; a transactional one has the events of
        its verification in between."""
        for _ in range(_VERIFICATION_EVENTS_MAX):
            if event.type == ProduceRequest.__name__ and event.kind == "deliver" and event.peer:
                return Append(_moment(event, event.peer), event.actor)
            if event.cause is None:
                break
            event = self._events[event.cause]
        return None

    def owner(self, record: ConsumerRecord, event: int) -> TracedMoment | None:
        """Return when the member that had a record's partition at an event was assigned it."""
        where = TopicPartition(record.topic, record.partition)
        assignments = [
            m for m, partitions in self._assignments if where in partitions and m.event < event
        ]
        return assignments[-1] if assignments else None

    def committed_before(self, record: ConsumerRecord, event: int) -> int | None:
        """Return the last offset committed for a record's partition before an event."""
        where = TopicPartition(record.topic, record.partition)
        offsets = [
            commit.offsets[where]
            for commit in self.commits
            if where in commit.offsets and commit.moment.event < event
        ]
        return offsets[-1] if offsets else None

    def between(
        self, machines: Collection[str], after: int, before: int | None = None
    ) -> list[TracedMoment]:
        """Return the faults of some machines, or of their links, between two events of the trace.

        Faults that were in force at the first event come first.
        """
        in_force: list[TracedMoment] = []
        found: list[TracedMoment] = []
        for moment in self.faults:
            is_heal = moment.text == _HEAL
            of_link = moment.program == _NETWORK and (
                is_heal or any(f"'{name}'" in moment.text for name in machines)
            )
            if of_link or moment.program in machines:
                described = moment._replace(text=f"network: {moment.text}") if of_link else moment
                if moment.event > after:
                    if before is None or moment.event < before:
                        found.append(described)
                elif is_heal or moment.text.endswith(_RESUMED):
                    in_force = [one for one in in_force if one.program != moment.program]
                elif not moment.is_crash:
                    in_force.append(described)
        return in_force + found


def _moment(event: Event, program: str) -> TracedMoment:
    return TracedMoment(event.seq, event.time_us / 1e6, program)


def _parse_partition(text: str) -> TopicPartition:
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def _assigned(assignment: Any) -> frozenset[TopicPartition]:
    """Return the partitions of an assignment; empty if it is not a consumer's."""
    if not isinstance(assignment, bytes):
        return frozenset()
    try:
        return frozenset(decode_assignment(assignment))
    except ClientError:
        return frozenset()
