"""From pending events to chunks: the half of a recorder for which nothing waits.

Each chunk needs what those before it led to: numbers of strings, open operations, the state. When
it is made, and by which process, makes no difference to a byte of it.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..chunks import Chunk, ChunkTables, Snapshot
from ..fingerprint import Fingerprint, PackedHeads
from ..format import CHUNK_EVENTS
from ..packing import PayloadPacker
from .operations import Operations
from .recorded_state import Change, RecordedState, Value
from .row_packing import RowBatch, pack_rows

if TYPE_CHECKING:
    from ..schema import FieldShapes
    from .pending_events import PendingEvents

SNAPSHOT_EVENTS = 4_000
"""Events between two snapshots of the state; more when the state is large."""
_FOLLOWED = itemgetter(9, 7)
"""Of a row: the event to whose operation it belongs, if that is known, and its cause."""


class PlainValue:
    """A value in a message's place that is none: as it was when it was recorded."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Any]) -> None:
        self.fields: tuple[Any, ...] = fields


class Made(NamedTuple):
    """A chunk and what only whoever keeps a part of the run wants to know."""

    chunk: Chunk
    changes: list[Change]


class Progress(NamedTuple):
    """The progress of a copy of this process, for the process itself."""

    first: int
    strings: list[str]
    schema: dict[str, FieldShapes]
    types_written: list[str]
    heads: Any  # bytes behind one another: a buffer to be sent, a view when it has come
    heads_count: int
    digests: list[bytes]
    by_event: dict[int | None, int]
    operations: list[int | None]
    born: list[str]
    removed: list[tuple[str, str]]
    values: list[Value]
    snapshot_due: int


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
        rows = pending.whole_rows(first, stop)
        assigned = self._operations.assigned
        known = len(assigned)
        self._operations.assign(
            first + known,
            list(map(_FOLLOWED, rows[known:])),
            _within(pending.begun, first + known, stop),
            _within(pending.ended, first + known, stop),
        )
        unseen = _within(pending.unseen, first, stop)
        return RowBatch(first, rows, unseen, assigned, state.settled)

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

    # -- in a copy of this process -------------------------------------------------------------

    def begin_copy(self) -> tuple[int, int, frozenset[str]]:
        """Be the copy that makes chunks; gives where it begins, for ``progress``."""
        self.outline = PackedHeads()
        self.state.removed = []
        return self.first, len(self.tables.strings.ordered), frozenset(self.tables.types_written)

    def progress(
        self,
        begun: tuple[int, int, frozenset[str]],
        digests: list[bytes],
    ) -> Progress:
        """Return what the process itself has to know to go on behind these chunks."""
        first, strings, types = begun
        assert isinstance(self.outline, PackedHeads)
        assert self.state.removed is not None
        operations, tables = self._operations, self.tables
        return Progress(
            self.first,
            tables.strings.ordered[strings:],
            dict(self.packer.schema),
            [name for name in tables.types_written if name not in types],
            pickle.PickleBuffer(b"".join(self.outline.heads)),
            len(self.outline),
            digests,
            operations.of_open_ones(),
            operations.open_ones(),
            self.state.born(),
            self.state.removed,
            self.state.values_since(first),
            self._snapshot_due,
        )

    def go_on_after(self, progress: Progress) -> None:
        """Know what a copy has found out when it made all chunks of what was pending."""
        self.first = progress.first
        strings = self.tables.strings
        for text in progress.strings:
            strings[text]  # gives it its number
        for name, shapes in progress.schema.items():
            self.packer.schema.setdefault(name, shapes)
        self.tables.written_elsewhere(progress.types_written, progress.digests)
        self.outline.take_heads(progress.heads, progress.heads_count)
        self._operations.continue_from(progress.by_event, progress.operations)
        self._operations.assigned.clear()
        self.state.settled.clear()
        self.state.settle_as(progress.born, progress.removed, progress.values)
        self._snapshot_due = progress.snapshot_due


def _within(numbers: list[int], first: int, stop: int) -> list[int]:
    """Return those of ascending numbers that are in a range."""
    return numbers[bisect_left(numbers, first) : bisect_left(numbers, stop)]
