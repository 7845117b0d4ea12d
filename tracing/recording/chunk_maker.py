"""From pending events to chunks: the half of a recorder for which nothing waits.

Each chunk needs what those before it led to: numbers of strings, open operations, the state. When
it is made makes no difference to a byte of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..chunks import Chunk, ChunkTables, Snapshot
from ..fingerprint import Fingerprint
from ..format import CHUNK_EVENTS
from ..packing import PayloadPacker
from .operations import Operations
from .recorded_state import Change, RecordedState
from .row_packing import RowBatch, pack_rows

if TYPE_CHECKING:
    from ..schema import FieldShapes
    from .pending_events import PendingEvents

SNAPSHOT_EVENTS = 4_000
"""Events between two snapshots of the state; more when the state is large."""


class PlainValue:
    """A value in a message's place that is none: as it was when it was recorded."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Any]) -> None:
        self.fields: tuple[Any, ...] = fields


class Made(NamedTuple):
    """A chunk and what only whoever keeps a part of the run wants to know."""

    chunk: Chunk
    changes: list[Change]


class ChunkMaker:
    """Makes the chunks of a run one after the other, and snapshots of the state between them."""

    def __init__(self, record_bytes_limit: int, declared: dict[str, FieldShapes]) -> None:
        """``declared`` has the fields of the types in ``PendingEvents.declared``."""
        self.first: int = 0
        """Number of the first event that is in no chunk."""
        self.packer: PayloadPacker = PayloadPacker(record_bytes_limit)
        self.packer.extractors[PlainValue] = lambda value: value.fields
        self.tables: ChunkTables = ChunkTables(self.packer)
        self.outline: Fingerprint = Fingerprint()
        self.state: RecordedState = RecordedState()
        self._declared = declared
        self._operations = Operations()
        self._snapshot_due = SNAPSHOT_EVENTS

    # -- chunks --------------------------------------------------------------------------------

    def make(self, pending: PendingEvents, stop: int) -> Iterator[Made | Snapshot]:
        """The whole chunks before an event."""
        while self.first + CHUNK_EVENTS <= stop:
            yield from self._make_one(pending, self.first + CHUNK_EVENTS)

    def make_last(self, pending: PendingEvents) -> Iterator[Made | Snapshot]:
        """All that there is, with a last chunk that need not be full."""
        stop = len(pending)
        yield from self.make(pending, stop)
        if self.first < stop:
            yield from self._make_one(pending, stop)

    def _make_one(self, pending: PendingEvents, stop: int) -> Iterator[Made | Snapshot]:
        batch = self.batch(pending, stop)
        for chunk in pack_rows(self.tables, self.outline, batch):
            seqs = range(chunk.info.first_seq, chunk.info.last_seq + 1)
            yield Made(chunk, [change for change in batch.changes if change[0] in seqs])
        self.first = stop
        self.state.settled.clear()
        self._operations.assigned.clear()
        self._operations.forget(stop)
        yield from self._snapshot()

    def batch(self, pending: PendingEvents, stop: int) -> RowBatch:
        """The events from ``first`` on with what belongs to them, found out as far as it was not
        yet; they are those of one chunk."""
        first, state = self.first, self.state
        pending.told_settled = state.settle(pending.told, pending.told_settled, stop)
        while pending.declared and pending.declared[0][0] < stop:
            _, name = pending.declared.pop(0)
            self.packer.schema.setdefault(name, self._declared[name])
        columns = pending.columns(first, stop)
        assigned = self._operations.assigned
        known = len(assigned)
        self._operations.assign(
            first + known,
            columns.followed[known:],
            columns.causes[known:],
            _within(pending.begun, first + known, stop),
            _within(pending.ended, first + known, stop),
        )
        unseen = _within(pending.unseen, first, stop)
        return RowBatch(columns, unseen, assigned, state.settled)

    def _snapshot(self) -> Iterator[Snapshot]:
        """The state of this moment, from where readers begin: after whole chunks only."""
        if self.first < self._snapshot_due:
            return
        numbers = self.tables.strings
        entries = [(numbers[path], value, seq) for path, value, seq in self.state.values()]
        if not entries:
            return
        last = self.first - 1
        self._snapshot_due = self.first + max(SNAPSHOT_EVENTS, 2 * len(entries))
        yield Snapshot(last, self.packer.pack([last, entries]))

    # -- of the rest ---------------------------------------------------------------------------

    def peek(self, pending: PendingEvents) -> tuple[list[Chunk], ChunkTables]:
        """The chunk that the rest would make now, and the tables that it would lead to."""
        stop = len(pending)
        if stop == self.first:
            return [], self.tables
        tables = self.tables.copy()
        return list(pack_rows(tables, Fingerprint(), self.batch(pending, stop))), tables


def _within(numbers: list[int], first: int, stop: int) -> list[int]:
    """Return those of ascending numbers that are in a range."""
    return numbers[bisect_left(numbers, first) : bisect_left(numbers, stop)]
