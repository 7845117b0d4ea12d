"""The recorder: the one sink the runtime calls, only when a run is traced.

While the run goes on, events are only taken (``event_intake``). All the rest waits
(``chunk_maker``): finding out what really changed and which
operation an event belongs to, taking messages apart, packing, digesting. A copy of the process
does it for many thousand events at once while the run goes on, or the process itself, when
somebody looks, at the end, or after each thousand where a copy is out of the question.
"""

from __future__ import annotations

import atexit
import os
import pickle
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..chunks import Chunk, Snapshot
from ..events import Event
from ..fingerprint import UNSEEN_KINDS
from ..format import CHUNK_EVENTS
from ..trace import EventList, MemoryTrace
from . import forked_work
from .chunk_maker import Made, Progress
from .event_intake import EventIntake
from .pending_events import PendingEvents
from .recorded_state import Change, LatestValues
from .row_view import RowView
from .writer import TraceWriter

if TYPE_CHECKING:
    from collections.abc import Mapping


RECORD_BYTES_LIMIT = 64


def _cut_of(recorder: Recorder) -> Callable[[], None]:
    """Return what a recorder's buffer calls without keeping the recorder alive."""
    reference = weakref.ref(recorder)

    def cut() -> None:
        alive = reference()
        if alive is not None:
            alive._cut()

    return cut


_with_files: weakref.WeakSet[Recorder] = weakref.WeakSet()


@atexit.register
def _write_what_is_full() -> None:
    for recorder in list(_with_files):
        recorder.__del__()


_Outcome = tuple[list[tuple[Made | Snapshot, pickle.PickleBuffer | None]], Progress]
"""What a copy gives: chunks and snapshots with the frames of the file; where it came to."""


class _Job(NamedTuple):
    """Whole chunks that a copy of this process makes."""

    pending: PendingEvents
    stop: int
    work: forked_work.ForkedWork


class Recorder(EventIntake):
    """Records the events of one run: to a file, in memory, or both.

    With a ``writer`` chunks go to its file; without one, or with ``keep``, they stay in memory:
    all of them, or at least the last ``keep`` events. Bytes longer than ``record_bytes_limit``
    are cut, their length is kept.
    """

    events_per_fork = 50_000
    """So many events are handed to a copy of the process together; 0 where there must be none."""

    def __init__(
        self,
        writer: TraceWriter | None = None,
        keep: int | None = None,
        record_bytes_limit: int = RECORD_BYTES_LIMIT,
    ) -> None:
        super().__init__(_cut_of(self), record_bytes_limit)
        self.writer = writer
        self._keep = keep
        self._in_memory = writer is None or keep is not None
        self._chunks: list[Chunk] = []
        self._job: _Job | None = None
        self._spent: PendingEvents | None = None  # what the last copy has made chunks of
        self._waits = keep is None and self.events_per_fork > 0 and forked_work.is_worthwhile()
        self._due = self.events_per_fork if self._waits else CHUNK_EVENTS
        self._snapshots: list[Snapshot] = []
        self._kept_changes: deque[list[tuple[int, Any, Any]]] = deque()  # of every chunk kept
        self._base: dict[int, tuple[Any, int]] = {}  # state before the first chunk that is kept
        self._closed = False
        self._process = os.getpid()
        self._view = RowView()
        if writer is not None:
            _with_files.add(self)

    # -- chunks --------------------------------------------------------------------------------

    def _cut(self) -> None:
        """There are rows enough for another chunk."""
        self._first += CHUNK_EVENTS
        self._pending.last_of_chunk += CHUNK_EVENTS
        if self._spent is not None:
            self._spent.drop_last(CHUNK_EVENTS)
        if self._first >= self._due:
            self._make_due()

    def _make_due(self) -> None:
        """Have chunks made of all rows, by a copy of the process where that is possible."""
        waits = self._waits and forked_work.is_possible()
        if waits and len(self._pending.rows) >= self.events_per_fork:
            self._await_job()
            self._begin_job()
            self._due = self._first + self.events_per_fork
        else:
            self._make_full()
        if not waits:
            self._due = self._first + CHUNK_EVENTS

    def _begin_job(self) -> None:
        pending = self._pending.hand_over()
        try:
            work = forked_work.ForkedWork(lambda: self._made_in_copy(pending))
        except OSError:  # no process or no memory for a copy
            self._put_all(self._maker.make(pending, self._first))
        else:
            self._job = _Job(pending, self._first, work)

    def _made_in_copy(self, pending: PendingEvents) -> _Outcome:
        """Of the copy: what was made, for the process itself."""
        maker, writer = self._maker, self.writer
        begun = maker.begin_copy()
        digests: list[bytes] = []
        made: list[tuple[Made | Snapshot, pickle.PickleBuffer | None]] = []
        for one in maker.make(pending, self._first):
            if isinstance(one, Made):
                digests.append(one.chunk.info.digest)
            made.append(self._without_body(one, writer) if writer is not None else (one, None))
        return made, maker.progress(begun, digests)

    def _without_body(
        self, made: Made | Snapshot, writer: TraceWriter
    ) -> tuple[Made | Snapshot, pickle.PickleBuffer]:
        """Return what is made, and its frame in the file."""
        if isinstance(made, Made):
            chunk = made.chunk
            frame = writer.chunk_frame(chunk)
            return Made(chunk._replace(body=b""), []), pickle.PickleBuffer(frame)
        return made._replace(body=b""), pickle.PickleBuffer(writer.snapshot_frame(made))

    def _handed_over(self) -> PendingEvents | None:
        return None if self._job is None else self._job.pending

    def _await_job(self) -> None:
        """Take over what a copy of the process has made."""
        job = self._job
        if job is None:
            return
        outcome = job.work.outcome()
        self._job = None
        self._spent = job.pending
        if outcome is None:  # it was killed, or met a value that cannot be packed
            self._put_all(self._maker.make(job.pending, job.stop))
        else:
            made, progress = outcome
            self._maker.go_on_after(progress)
            for one, frame in made:
                self._put(one, frame)
        self._latest = LatestValues()
        self._view.cut(self._maker.first)

    def _make_full(self) -> None:
        """Make all chunks that are full."""
        self._await_job()
        self._spent = None
        if self._maker.first < self._first:
            self._put_all(self._maker.make(self._pending, self._first))
            self._forget_made()
        self._due = self._first + self.events_per_fork

    def _forget_made(self) -> None:
        self._pending.forget(self._maker.first)
        self._latest = LatestValues()
        self._view.cut(self._maker.first)

    def _put_all(self, made: Iterable[Made | Snapshot]) -> None:
        for one in made:
            self._put(one)

    def _put(self, made: Made | Snapshot, frame: memoryview | None = None) -> None:
        """Write what was made, or keep it; ``frame`` is what the file gets, if that is known."""
        writer = self.writer
        if isinstance(made, Made):
            if writer is not None:
                writer.write_chunk(made.chunk, frame)
            if self._in_memory:
                self._keep_chunk(*made)
        else:
            if writer is not None:
                writer.write_snapshot(made, frame)
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
        """Drop the oldest chunk; the state that it led to is kept."""
        base = self._base
        for seq, number, new in changes:
            if new is None:
                base.pop(number, None)
            else:
                base[number] = (new, seq)
        last_seq = chunk.info.last_seq
        self._snapshots = [snap for snap in self._snapshots if snap.seq > last_seq]

    # -- asking --------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """blake2b-256 of the digests of all chunks, hexadecimal: of all events with all there is
        of them."""
        self._make_full()
        return self._maker.peek(self._pending)[1].digest().hex()

    def outline(self) -> str:
        """Return what ``Fingerprint`` gives for the same run: the order of events, no payloads."""
        self._make_full()
        outline = self._maker.outline.copy()
        for row in self._pending.whole_rows(self._pending.first, len(self)):
            if row[1] not in UNSEEN_KINDS:
                outline.append(row[:6])
        return outline.fingerprint()

    def trace(self, header: Mapping[str, Any] | None = None) -> MemoryTrace:
        """Return what is kept in memory, as a readable trace of this moment."""
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
        """Events from a number on in the order of ``EVENT_FIELDS``, strings by their number in
        ``strings``; those in no chunk yet with the message itself as payload, at little cost."""
        self._make_full()
        view, begin = self._view, self._first
        batch = self._maker.batch(self._pending, len(self))
        if first >= begin:
            return view.of_rows(batch, first)
        return view.of_trace(self.trace(), first, begin) + view.of_rows(batch, begin)

    def decoded(self, raw: list[Any]) -> Event:
        """Return one of them as readers see it."""
        return self._view.decoded(raw, self._maker.packer)

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
            self._await_job()
            maker = self._maker
            self._put_all(maker.make_last(self._pending))
            self._forget_made()
            self._first = maker.first
            self._spent = None
            tables = maker.tables
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
        known = self._maker.packer.schema
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

    def __del__(self) -> None:
        """Of what was not closed, the file gets all chunks that are full."""
        writer = getattr(self, "writer", None)
        if writer is not None and writer.is_open and os.getpid() == self._process:
            self._make_full()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
