"""The recorder: the event sink of a runtime whose run is traced.

While the run goes on, events are only taken in (``event_intake``). All other work is put off
(``chunk_maker``): finding what really changed and which operation an event belongs to, taking
messages apart, packing, digesting. It is done after each thousand events if a file is written or
only the last events are kept; otherwise when the recording is read, or very many events wait.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..chunks import Chunk, Snapshot
from ..events import Event
from ..fingerprint import UNSEEN_KINDS
from ..format import CHUNK_EVENTS
from ..trace import EventList, MemoryTrace, no_cyclic_collection
from .chunk_maker import Made
from .event_intake import EventIntake
from .recorded_state import Change, LatestValues
from .row_view import RowView
from .writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...actors.interfaces import AbstractRuntime, EventSink
    from ...protocol.host import LogListener, StateListener
    from .chunk_maker import ChunkMaker
    from .pending_events import PendingEvents


RECORD_BYTES_LIMIT = 64


def _chunk_callback(recorder: Recorder) -> Callable[[], None]:
    """Return the callback of a recorder's buffer, which does not keep the recorder alive."""
    reference = weakref.ref(recorder)

    def cut() -> None:
        alive = reference()
        if alive is not None:
            alive._cut()

    return cut


class Recorder:
    """Records the events of one run: to a file, in memory, or both.

    With a ``writer`` chunks go to its file; without one, or with ``keep``, they stay in memory:
    all of them, or at least the last ``keep`` events. Bytes longer than ``record_bytes_limit``
    are truncated, but their length is kept.
    """

    waiting_max = 200_000
    """Maximum number of events that wait for their chunks; each takes some 400 bytes of memory."""

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        intake = EventIntake(_chunk_callback(self), record_bytes_limit)
        self._intake = intake
        self.intake: EventSink | None = intake
        """The sink that a runtime may call directly; None if it must go through ``event``."""
        self._pending: PendingEvents = intake.pending
        self._maker: ChunkMaker = intake.maker
        self.record_bytes_limit: int = record_bytes_limit
        self.writer = writer
        self._keep = keep
        self._in_memory = writer is None or keep is not None
        self._chunks: list[Chunk] = []
        may_wait = writer is None and keep is None
        self._due_every: int = self.waiting_max if may_wait else CHUNK_EVENTS
        """Number of waiting events at which chunks are made, even if the recording is not read."""
        self._snapshots: list[Snapshot] = []
        self._kept_changes: deque[list[tuple[int, Any, Any]]] = deque()  # of every chunk kept
        self._base: dict[int, tuple[Any, int]] = {}  # state before the first chunk that is kept
        self._closed = False
        self._view = RowView()

    def __len__(self) -> int:
        return len(self._pending)

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
        """Record an event; return its number, consecutive from 0.

        ``message`` is a protocol message, or a string that is itself the type (of a timer); ``of``
        is an event whose operation this one belongs to, if that is not its cause's.
        """
        return self._intake.event(time_us, kind, actor, peer, message, message_id, cause, why, of)

    def state_listener(self, runtime: AbstractRuntime, actor: str) -> StateListener:
        """Return the listener of changes of an actor's state."""
        return self._intake.state_listener(runtime, actor)

    def log_listener(
        self, runtime: AbstractRuntime, actor: str, paths: tuple[str, str, str]
    ) -> LogListener:
        """Return the listener of the offsets of an actor's log."""
        return self._intake.log_listener(runtime, actor, paths)

    def state(
        self, seq: int | None, path: str, old: Any, new: Any, time_us: int | None = None
    ) -> None:
        """Record a change of a path such as ``broker-1/orders-0/isr`` during event ``seq``.

        The change becomes part of that event; if the event's chunk is already full, it becomes an
        event of its own, caused by that one. A change outside of any event (``seq`` None) also
        becomes an event. A known value of the path takes precedence over ``old``.
        """
        self._intake.state_at(seq, path, old, new, time_us)

    # -- chunks --------------------------------------------------------------------------------

    def _cut(self) -> None:
        """Begin another chunk, as one is full; make the full chunks if enough events wait."""
        self._intake.first += CHUNK_EVENTS
        self._pending.last_of_chunk += CHUNK_EVENTS
        if self._intake.first >= self._maker.first + self._due_every:
            self._make_full()

    def _make_full(self) -> None:
        """Make all chunks that are full."""
        if self._maker.first < self._intake.first:
            with no_cyclic_collection():
                self._put_all(self._maker.make(self._pending, self._intake.first))
            self._forget_made()

    def _forget_made(self) -> None:
        self._pending.forget(self._maker.first)
        self._intake.latest = LatestValues()
        self._view.cut(self._maker.first)

    def _put_all(self, made: Iterable[Made | Snapshot]) -> None:
        for one in made:
            self._put(one)

    def _put(self, made: Made | Snapshot) -> None:
        """Write a chunk or snapshot, keep it in memory, or both."""
        writer = self.writer
        if isinstance(made, Made):
            if writer is not None:
                writer.write_chunk(made.chunk)
            if self._in_memory:
                self._keep_chunk(*made)
        else:
            if writer is not None:
                writer.write_snapshot(made)
            if self._in_memory:
                self._snapshots.append(made)

    def _keep_chunk(self, chunk: Chunk, changes: Sequence[Change]) -> None:
        chunks = self._chunks
        chunks.append(chunk)
        if self._keep is not None:
            numbers, last_seq = self._maker.tables.strings, chunk.info.last_seq
            self._kept_changes.append([(seq, numbers[path], new) for seq, path, _, new in changes])
            kept = last_seq + 1 - chunks[0].info.first_seq
            while len(chunks) > 1 and kept - chunks[0].info.events >= self._keep:
                kept -= chunks[0].info.events
                self._forget(chunks.pop(0), self._kept_changes.popleft())

    def _forget(self, chunk: Chunk, changes: Sequence[tuple[int, Any, Any]]) -> None:
        """Drop the oldest chunk, but keep the state after it."""
        base = self._base
        for seq, number, new in changes:
            if new is None:
                base.pop(number, None)
            else:
                base[number] = (new, seq)
        last_seq = chunk.info.last_seq
        self._snapshots = [snap for snap in self._snapshots if snap.seq > last_seq]

    # -- reading -------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Return the blake2b-256 of the digests of all chunks in hexadecimal, which covers all
        events in full."""
        self._make_full()
        return self._maker.peek(self._pending)[1].digest().hex()

    def outline(self) -> str:
        """Return the same value as ``Fingerprint`` for the run: a digest without payloads."""
        self._make_full()
        outline = self._maker.outline.copy()
        for head in self._pending.columns(self._pending.first, len(self)).heads:
            if head[1] not in UNSEEN_KINDS:
                outline.append(head)
        return outline.fingerprint()

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        """Return a trace of the events that are in memory at this moment."""
        self._make_full()
        rest, tables = self._maker.peek(self._pending)
        chunks = [*self._chunks, *rest]
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
        return [Snapshot(before, self._maker.packer.pack([before, entries])), *self._snapshots]

    def raw_since(self, first: int) -> list[Any]:
        """Return the events from a number on as lists in the order of ``EVENT_FIELDS``, with
        strings by number in ``strings``. Events not in a chunk yet are cheap: their payload is the
        message itself."""
        self._make_full()
        view, begin = self._view, self._intake.first
        batch = self._maker.batch(self._pending, len(self))
        if first >= begin:
            return view.of_rows(batch, first)
        return view.of_trace(self.trace(), first, begin) + view.of_rows(batch, begin)

    def decoded(self, raw: list[Any]) -> Event:
        """Decode an event returned by ``raw_since``."""
        return self._view.decoded(raw, self._maker.packer)

    @property
    def strings(self) -> list[str]:
        """Strings by their number in the events of ``raw_since``."""
        return self._view.strings.ordered

    @property
    def events(self) -> EventList:
        """The events in memory at this moment, as a read-only sequence."""
        return EventList(self.trace())

    # -- ending --------------------------------------------------------------------------------

    def close(self) -> None:
        """Write the pending events and end the file. No further events may be recorded."""
        if self._closed:
            return
        self._closed = True
        if self.writer is not None:
            maker = self._maker
            self._put_all(maker.make_last(self._pending))
            self._forget_made()
            self._intake.first = maker.first
            tables = maker.tables
            self.writer.close(
                tables.strings.ordered, tables.schema(), tables.digest(), self.outline()
            )

    def save(self, path: str | Path, header: Mapping[str, Any], *, codec: str = "zstd") -> None:
        """Write the events in memory to a file of their own; recording goes on."""
        trace = self.trace()
        whole = not trace.chunks or trace.chunks[0].first_seq == 0
        head = {**header, "record_bytes_limit": self.record_bytes_limit}
        if not whole:
            head["part"] = f"the last events, from #{trace.chunks[0].first_seq} on"
        writer = TraceWriter(path, head, codec=codec)
        known = self._maker.packer.schema
        strings = trace.strings
        schema = [(name, fields) for name, fields in trace.schema.types.items() if name in known]
        snapshots = deque(trace.snapshots)
        for index, chunk in enumerate(trace.stored):
            while snapshots and snapshots[0].seq < chunk.info.first_seq:
                writer.write_snapshot(snapshots.popleft())
            if not whole:  # the first chunk must bring the tables of the dropped chunks
                chunk = trace.with_tables(chunk, *((strings, schema) if index == 0 else ([], [])))
            writer.write_chunk(chunk)
        digest = bytes.fromhex(str(trace.fingerprint))
        writer.close(strings, schema, digest, str(trace.outline))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
