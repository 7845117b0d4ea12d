"""The recorder: the one sink the runtime calls, only when a run is traced.

While the run goes on, as little as possible is done: an event is a row, a
tuple with the message itself in it, and a change of state is a tuple in another list. Messages are
immutable, so all the rest waits until there are a thousand rows, and is then done for all of them
at once: finding out what really changed and which operation an event belongs to, taking messages
apart, packing, digesting. The virtual network writes the rows of messages itself (``rows``).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...protocol.errors import UsageError
from ..chunk_codec import NO_TYPE
from ..chunks import Chunk, ChunkInfo, ChunkTables, Snapshot
from ..events import KIND_CODES, Event
from ..fingerprint import UNSEEN_KINDS, Fingerprint
from ..format import CHUNK_EVENTS
from ..packing import PayloadPacker
from ..schema import is_message_type
from ..trace import EventList, MemoryTrace
from .operations import Operations
from .recorded_state import RecordedState
from .row_packing import RowBatch, pack_rows
from .row_view import RowView
from .writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...actors.surroundings import Row, Surroundings
    from ...protocol.host import StateListener

RECORD_BYTES_LIMIT = 64
_TIED = frozenset({"spawn", "stop", "client_invoke", "client_ok", "client_fail"})
"""Kinds that begin or end something."""
SNAPSHOT_EVENTS = 4_000
"""Events between two snapshots of the state; more when the state is large."""


_FOLLOWED = itemgetter(9, 7)
"""Of a row: the event to whose operation it belongs, if that is known, and its cause."""


class _Value:
    """What is no message, in a message's place: as it was when it was recorded."""

    __slots__ = ("fields",)

    def __init__(self, fields: tuple[Any]) -> None:
        self.fields = fields


class _Paths(dict[str, str]):
    """The whole path of a part of an actor's state, by what its core calls it."""

    __slots__ = ("_prefix",)

    def __init__(self, actor: str) -> None:
        super().__init__()
        self._prefix = f"{actor}/"

    def __missing__(self, path: str) -> str:
        whole = self[path] = self._prefix + path
        return whole


class Recorder:
    """Records the events of one run: to a file, in memory, or both.

    With a ``writer`` chunks go to its file; without one, or with ``keep``, they stay in memory:
    all of them, or at least the last ``keep`` events. Bytes longer than ``record_bytes_limit``
    are cut, their length is kept.
    """

    takes_rows = True

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        self.writer = writer
        self.record_bytes_limit = record_bytes_limit
        self._keep = keep
        self._in_memory = writer is None or keep is not None
        self._chunks: list[Chunk] = []
        self._last_chunk: ChunkInfo | None = None
        self._packer = PayloadPacker(record_bytes_limit)
        self._packer.extractors[_Value] = lambda value: value.fields
        self._tables = ChunkTables(self._packer)
        self.rows: list[Row] = []
        """Events that are in no chunk yet; ``_first`` is the number of the first."""
        self._first = 0
        self.next_seq: Callable[[], int] = itertools.count().__next__
        self._unseen: list[int] = []
        self._sent: dict[int | None, int] = {}  # number of a message under way: its sending
        self._operations = Operations()
        self._state = RecordedState()
        self._snapshots: list[Snapshot] = []
        self._snapshot_due = SNAPSHOT_EVENTS
        self._kept_changes: deque[list[tuple[int, Any, Any]]] = deque()  # of every chunk kept
        self._base: dict[int, tuple[Any, int]] = {}  # state before the first chunk that is kept
        self._outline = Fingerprint()
        self._closed = False
        self._view = RowView()

    # -- recording -----------------------------------------------------------------------------

    def event(
        self,
        time_us: int,
        kind: str,
        actor: str,
        peer: str | None,
        message: object | None,
        message_id: int | None,
        cause: int | None,
        why: str | None = None,
        of: int | None = None,
    ) -> int:
        """Record one event; gives its number, dense from 0.

        ``message`` is a protocol message, or a string that names the type by itself (a timer);
        ``of`` is an event to whose operation this one belongs, when it is not its cause.
        """
        cls = message.__class__
        if cls is str:
            name: Any = message
            message = None
        else:
            name = cls.__name__
            if message is not None and not (is_message_type(cls) or issubclass(cls, BaseException)):
                self._packer.declare(cls)
                message = _Value((self._packer.tagged(message),))
        KIND_CODES[kind]  # refuses what is no kind
        seq = self.next_seq()
        if kind == "deliver" or kind == "drop":
            cause = self._sent.pop(message_id, cause)
        elif kind == "send":
            self._sent[message_id] = seq
        elif kind in _TIED:
            if kind == "client_invoke":
                of = seq
            self._tie(kind, seq, actor, peer)
        if kind in UNSEEN_KINDS:
            self._unseen.append(seq)
        self.rows.append((time_us, kind, actor, peer, name, message_id, message, cause, why, of))
        if seq % CHUNK_EVENTS == CHUNK_EVENTS - 1:
            self.cut()
        return seq

    def _tie(self, kind: str, seq: int, actor: str, peer: str | None) -> None:
        """Begin or end an operation of a client; begin an actor, or end it with its state."""
        if kind == "client_invoke":
            self._operations.begin(seq)
        elif kind == "spawn":
            self._state.begin(actor)
        elif kind != "stop":
            self._operations.ends_at(seq)
        elif peer is not None:  # a node; without a peer it is news of a process
            self._state.halt(seq, actor)

    def state_listener(self, runtime: Surroundings, actor: str) -> StateListener:
        """Who hears of the changes of an actor's state."""
        state, paths = self._state.of(actor), _Paths(actor)
        tell, tagged = self._state.told.append, self._packer.tagged

        def changed(path: str, old: Any, new: Any) -> None:
            if new.__class__ is not int or old.__class__ is not int:
                old, new = tagged(old), tagged(new)
            seq = runtime.cause
            if seq is None or seq < self._first:
                self.state(seq, paths[path], old, new, runtime.now_us())
            else:
                tell((seq, state, paths[path], old, new))

        return changed

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        """A state change made while handling event ``seq``: ``broker-1/orders-0/isr``, old, new.

        It joins that event; when the event's chunk is written already it becomes an event of
        its own, caused by that one. So does a change outside of any event (``seq`` None). What is
        known of the path goes before ``old``.
        """
        if seq is not None and not 0 <= seq < len(self):
            raise UsageError(f"a state change of {path} for event #{seq}, which is not recorded")
        actor = path.partition("/")[0]
        old, new = self._packer.tagged(old), self._packer.tagged(new)
        place = seq
        if seq is None or seq < self._first:
            if not self._state.would_change(actor, path, old, new):
                return
            if time_us is None:
                time_us = self._time_us()
            place = self.next_seq()
            self._unseen.append(place)
            self.rows.append((time_us, "state", actor, None, NO_TYPE, None, None, seq, None, None))
        assert place is not None
        self._state.told.append((place, self._state.of(actor), path, old, new))
        if place is not seq and place % CHUNK_EVENTS == CHUNK_EVENTS - 1:
            self.cut()

    def _time_us(self) -> int:
        if self.rows:
            return self.rows[-1][0]
        return 0 if self._last_chunk is None else self._last_chunk.time_last_us

    # -- chunks --------------------------------------------------------------------------------

    def cut(self) -> None:
        """Make a chunk of the rows, or several when they are large."""
        if not self.rows:
            return
        batch = self._batch()
        self.rows.clear()  # the list itself is known to others
        self._first += len(batch.rows)
        for chunk in pack_rows(self._tables, self._outline, batch):
            self._last_chunk = chunk.info
            if self.writer is not None:
                self.writer.write_chunk(chunk)
            if self._in_memory:
                self._keep_chunk(chunk, batch)
        self._unseen.clear()
        self._state.settled.clear()
        self._operations.assigned.clear()
        self._operations.forget(self._first)
        self._view.cut(self._first)
        self._snap()

    def _batch(self) -> RowBatch:
        """The rows with what belongs to them, found out as far as it was not yet."""
        self._state.settle()
        assigned = self._operations.assigned
        known = len(assigned)
        followed = list(map(_FOLLOWED, self.rows[known:]))
        self._operations.assign(self._first + known, followed)
        return RowBatch(self._first, self.rows[:], self._unseen, assigned, self._state.settled)

    def _snap(self) -> None:
        """Keep the state of this moment, from where readers begin: after whole chunks only."""
        if self._first < self._snapshot_due:
            return
        numbers = self._tables.strings
        entries = [(numbers[path], value, seq) for path, value, seq in self._state.values()]
        if not entries:
            return
        last = self._first - 1
        self._snapshot_due = self._first + max(SNAPSHOT_EVENTS, 2 * len(entries))
        snapshot = Snapshot(last, self._packer.pack([last, entries]))
        if self.writer is not None:
            self.writer.write_snapshot(snapshot)
        if self._in_memory:
            self._snapshots.append(snapshot)

    def _keep_chunk(self, chunk: Chunk, batch: RowBatch) -> None:
        chunks = self._chunks
        chunks.append(chunk)
        if self._keep is not None:
            numbers, last_seq = self._tables.strings, chunk.info.last_seq
            within = range(chunk.info.first_seq, last_seq + 1)
            self._kept_changes.append(
                [(seq, numbers[path], new) for seq, path, _, new in batch.changes if seq in within]
            )
            kept = last_seq + 1 - chunks[0].info.first_seq
            while len(chunks) > 1 and kept - chunks[0].info.events >= self._keep:
                kept -= chunks[0].info.events
                self._forget(chunks.pop(0), self._kept_changes.popleft())

    def _forget(self, chunk: Chunk, changes: Sequence[tuple[int, Any, Any]]) -> None:
        """Let go of the oldest chunk; the state that it led to is kept."""
        base = self._base
        for seq, number, new in changes:
            if new is None:
                base.pop(number, None)
            else:
                base[number] = (new, seq)
        last_seq = chunk.info.last_seq
        self._snapshots = [snap for snap in self._snapshots if snap.seq > last_seq]

    # -- asking --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self._first + len(self.rows)

    def fingerprint(self) -> str:
        """blake2b-256 of the digests of all chunks, hexadecimal: of all events with all there is
        of them."""
        tables = self._tables
        if self.rows:
            tables = tables.copy()
            for _ in pack_rows(tables, Fingerprint(), self._batch()):
                pass
        return tables.digest().hex()

    def outline(self) -> str:
        """What ``Fingerprint`` gives for the same run: the order of events, no payloads."""
        outline = self._outline.copy()
        for row in self.rows:
            if row[1] not in UNSEEN_KINDS:
                outline.append(row[:6])
        return outline.fingerprint()

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        """What is kept in memory, as a readable trace of this moment."""
        tables = self._tables
        chunks = list(self._chunks)
        if self.rows:
            tables = tables.copy()
            chunks += pack_rows(tables, Fingerprint(), self._batch())
        return MemoryTrace(
            chunks,
            list(tables.strings.ordered),
            tables.schema(),
            dict(header or {}),
            tables.digest().hex(),
            self.outline(),
            self._kept_snapshots(chunks),
        )

    def _kept_snapshots(self, chunks: list[Chunk]) -> list[Snapshot]:
        if not self._base or not chunks:
            return list(self._snapshots)
        before = chunks[0].info.first_seq - 1
        entries = [(number, value, seq) for number, (value, seq) in self._base.items()]
        return [Snapshot(before, self._packer.pack([before, entries])), *self._snapshots]

    def raw_since(self, first: int) -> list[Any]:
        """Events from a number on in the order of ``EVENT_FIELDS``, strings by their number in
        ``strings``; those in no chunk yet with the message itself as payload, at little cost."""
        view, begin = self._view, self._first
        if first >= begin:
            return view.of_rows(self._batch(), first)
        return view.of_trace(self.trace(), first, begin) + view.of_rows(self._batch(), begin)

    def decoded(self, raw: list[Any]) -> Event:
        """One of them as readers see it."""
        return self._view.decoded(raw, self._packer)

    @property
    def strings(self) -> list[str]:
        """Names by number, as ``raw_since`` has them."""
        return self._view.strings.ordered

    @property
    def events(self) -> EventList:
        """Events kept in memory at this moment, as a read-only sequence."""
        return EventList(self.trace())

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Write what is pending and end the file; further events are a mistake."""
        if self._closed:
            return
        self._closed = True
        if self.writer is not None:
            self.cut()
            tables = self._tables
            self.writer.close(
                tables.strings.ordered, tables.schema(), tables.digest(), self.outline()
            )

    def save(self, path: str | Path, header: Mapping[str, Any], *, codec: str = "zstd") -> None:
        """Write what is kept in memory to a file of its own; recording goes on."""
        trace = self.trace()
        whole = not trace.chunks or trace.chunks[0].first_seq == 0
        head = {**header, "record_bytes_limit": self.record_bytes_limit}
        if not whole:
            head["part"] = f"the last events, from #{trace.chunks[0].first_seq} on"
        writer = TraceWriter(path, head, codec=codec)
        known = self._packer.schema
        strings = trace.strings
        schema = [(name, fields) for name, fields in trace.schema.types.items() if name in known]
        snapshots = deque(trace.snapshots)
        for index, chunk in enumerate(trace.stored):
            while snapshots and snapshots[0].seq < chunk.info.first_seq:
                writer.write_snapshot(snapshots.popleft())
            if not whole:  # the first brings the tables along that the dropped chunks had
                chunk = trace.with_tables(chunk, *((strings, schema) if index == 0 else ([], [])))
            writer.write_chunk(chunk)
        digest = bytes.fromhex(str(trace.fingerprint))
        writer.close(strings, schema, digest, str(trace.outline))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
