"""Makes chunks of pending events: the half of a recorder's work that can be done later.

A chunk depends on the chunks before it: on the numbers of strings, open operations and the state.
Its bytes do not depend on when it is made.
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
"""Number of events between two snapshots of the state; more if the state is large."""


class PlainValue:
    """A value that is not a message but takes the place of one, as it was when it was recorded."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Any]) -> None:
        self.fields: tuple[Any, ...] = fields


class Made(NamedTuple):
    """A chunk, with the changes of state that a recorder needs to drop the chunk later."""

    chunk: Chunk
    changes: list[Change]


class ChunkMaker:
    """Makes the chunks of a run one after the other, and snapshots of the state between them."""

    def __init__(self, record_bytes_limit: int, declared: dict[str, FieldShapes]) -> None:
        """``declared`` has the fields of the types in ``PendingEvents.declared``."""
        self.first: int = 0
        """Number of the first event that is not in a chunk yet."""
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
        """Make all full chunks of the events before ``stop``."""
        while self.first + CHUNK_EVENTS <= stop:
            yield from self._make_one(pending, self.first + CHUNK_EVENTS)

    def make_last(self, pending: PendingEvents) -> Iterator[Made | Snapshot]:
        """Make chunks of all pending events; the last one need not be full."""
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
        """Return the events from ``first`` to before ``stop``, which fit in one chunk, with their
        operations and changes of state. Results of earlier calls are reused."""
        first, state = self.first, self.state
        pending.settled_reports = state.settle(pending.reports, pending.settled_reports, stop)
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
        """Yield a snapshot of the state after the last chunk, for readers to begin from, if due."""
        if self.first < self._snapshot_due:
            return
        numbers = self.tables.strings
        entries = [(numbers[path], value, seq) for path, value, seq in self.state.values()]
        if not entries:
            return
        last = self.first - 1
        self._snapshot_due = self.first + max(SNAPSHOT_EVENTS, 2 * len(entries))
        yield Snapshot(last, self.packer.pack([last, entries]))

    # -- remaining events ----------------------------------------------------------------------

    def peek(self, pending: PendingEvents) -> tuple[list[Chunk], ChunkTables]:
        """Return the chunk that the remaining events would make, and the tables after it."""
        stop = len(pending)
        if stop == self.first:
            return [], self.tables
        tables = self.tables.copy()
        return list(pack_rows(tables, Fingerprint(), self.batch(pending, stop))), tables


def _within(numbers: list[int], first: int, stop: int) -> list[int]:
    """Return the numbers in a range, out of a list in ascending order."""
    return numbers[bisect_left(numbers, first) : bisect_left(numbers, stop)]
