"""Reads traces, whether stored in a file or held in a recorder's memory."""

from __future__ import annotations

import gc
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Self, overload

import msgpack

from ..protocol.errors import FakeKafkaError
from .chunk_codec import decode_chunk
from .chunk_view import Change, ChunkView
from .chunks import Chunk, ChunkInfo, Snapshot, body_digest, in_bitmap
from .events import INTERESTING_KINDS, KIND_CODES, KINDS, Event, TraceError
from .packing import repack, unpack
from .schema import Schema

_CACHED_CHUNKS = 32
_CACHED_VIEWS = 256
_VIEWED_BYTES_MAX = 4 * 1024 * 1024
"""Maximum size of a body read through a view. The writer's bodies are smaller, so a larger one is
unpacked as a whole, which limits its lists and maps."""


@contextmanager
def no_cyclic_collection() -> Iterator[None]:
    """Disable the cyclic collector: decoded events are trees of many small objects, which it would
    traverse again and again without finding garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class StoredTrace:
    """A sequence of events with a header. Events are decoded chunk by chunk, on demand."""

    header: dict[str, Any]
    fingerprint: str | None
    """Digest of all events of the run; None if the run did not end properly."""
    outline: str | None
    problem: str | None = None
    """The reason why the trace ends early; None if it is complete."""

    def __init__(self) -> None:
        self.chunks: list[ChunkInfo] = []
        self.strings: list[str] = []
        self.schema: Schema = Schema()
        self._snapshot_seqs: list[int] = []
        self._cache: OrderedDict[int, list[Any]] = OrderedDict()
        self._views: OrderedDict[int, ChunkView] = OrderedDict()
        self._column_places: list[list[int] | None] = []
        self._numbers: dict[str | None, int | None] = {None: None}
        self._first_seqs: list[int] | None = None

    def _body(self, index: int) -> Any:
        """Return the unpacked body of a chunk."""
        raise NotImplementedError

    def _packed_body(self, index: int) -> bytes:
        """Return the packed body of a chunk."""
        raise NotImplementedError

    def _snapshot_body(self, index: int) -> Any:
        """Return the unpacked body of a snapshot."""
        raise NotImplementedError

    def packed_snapshot(self, index: int) -> bytes:
        """Return the packed body of a snapshot."""
        raise NotImplementedError

    @property
    def snapshot_seqs(self) -> list[int]:
        """The seq of the event after which each snapshot was made."""
        return self._snapshot_seqs

    def raw_events(self, index: int) -> list[Any]:
        """Return all events of a chunk as lists in the order of ``EVENT_FIELDS``."""
        cached = self._cache.get(index)
        if cached is not None:
            self._cache.move_to_end(index)
            return cached
        with no_cyclic_collection():
            raws = self._decode(self._body(index), index)
        self._cache[index] = raws
        if len(self._cache) > _CACHED_CHUNKS:
            self._cache.popitem(last=False)
        return raws

    def view(self, index: int) -> ChunkView | None:
        """Return a view of a chunk, which reads columns and single events at a much lower cost than
        all events; None if the events have gaps, or the body is malformed or too large."""
        view = self._views.get(index)
        if view is not None:
            self._views.move_to_end(index)
            return view
        view = self.new_view(index, is_kept=True)
        if view is not None:
            self._views[index] = view
            if len(self._views) > _CACHED_VIEWS:
                self._views.popitem(last=False)
        return view

    def new_view(self, index: int, *, is_kept: bool = False) -> ChunkView | None:
        """Return a view as ``view`` does, but not cached: unless ``is_kept``, it suits a caller
        that reads many events of the chunk and then moves on to the next."""
        body = self._packed_body(index)
        if len(body) > _VIEWED_BYTES_MAX:
            return None
        places = self._column_places[index] if index < len(self._column_places) else None
        try:
            view = ChunkView(body, places, self.numbers(), self.schema.epochs_of, is_kept)
        except (LookupError, TypeError, ValueError, msgpack.UnpackException):
            return None
        return view if view.is_dense else None

    def event_of(self, view: ChunkView, seq: int) -> Event:
        """Return an event of a chunk, whose payload is read on first use."""
        return Event(view.raw(seq - view.first_seq), self.strings, self.schema)

    def changes_in(self, index: int) -> list[Change]:
        """Return every change of state in a chunk: event, number of the path, old and new value."""
        view = self.view(index)
        if view is not None:
            return view.changes()
        return [
            (raw[0], number, old, new)
            for raw in self.raw_events(index)
            for number, old, new in raw[10]
        ]

    def numbers(self) -> dict[str | None, int | None]:
        """Return the map of every string to its number, and of None to None."""
        if len(self._numbers) <= len(self.strings):  # the map also contains None
            self._numbers.update((text, number) for number, text in enumerate(self.strings))
        return self._numbers

    def _decode(self, body: Any, index: int) -> list[Any]:
        try:
            return decode_chunk(body, self.numbers(), self.schema)
        except (FakeKafkaError, LookupError, TypeError, ValueError) as error:
            raise TraceError(f"chunk {index} of the trace holds no events: {error!r}") from None

    def page_chunk(self, index: int) -> bytes:
        """Return a chunk for readers that do not know columns: ``[first seq, [], [], events]``."""
        raws = self.raw_events(index)
        return msgpack.packb([raws[0][0], [], [], repack(raws)])  # type: ignore[no-any-return]

    def snapshot_before(self, seq: int) -> tuple[int, list[tuple[int, Any, int]]]:
        """Return the latest snapshot at or before an event: the event after which it was made (-1
        for before all), and number, value and event of the last change of every path."""
        index = bisect_right(self._snapshot_seqs, seq) - 1
        if index < 0:
            return -1, []
        with no_cyclic_collection():
            at, entries = self._snapshot_body(index)
        return at, entries

    def chunk_events(self, index: int) -> list[Event]:
        """Return all events of a chunk."""
        strings, schema = self.strings, self.schema
        with no_cyclic_collection():
            return [Event(raw, strings, schema) for raw in self.raw_events(index)]

    def __len__(self) -> int:
        return sum(info.events for info in self.chunks)

    @property
    def first_seq(self) -> int:
        return self.chunks[0].first_seq if self.chunks else 0

    @property
    def last_seq(self) -> int:
        return self.chunks[-1].last_seq if self.chunks else -1

    def chunk_of(self, seq: int) -> int:
        """Return the index of the chunk that holds or would hold an event; -1 before the first."""
        if self._first_seqs is None:
            self._first_seqs = [info.first_seq for info in self.chunks]
        return bisect_right(self._first_seqs, seq) - 1

    def chunk_at(self, time_us: int) -> int | None:
        """Return the index of the first chunk with an event at or after a time."""
        index = bisect_left(self.chunks, time_us, key=attrgetter("time_last_us"))
        return index if index < len(self.chunks) else None

    def event(self, seq: int) -> Event:
        """Return the event with a seq; raise ``TraceError`` if the trace does not have it."""
        index = self.chunk_of(seq)
        if index >= 0 and seq <= self.chunks[index].last_seq:
            if index not in self._cache:
                view = self.view(index)
                if view is not None:
                    return self.event_of(view, seq)
            raws = self.raw_events(index)
            place = seq - raws[0][0]
            if place >= len(raws) or raws[place][0] != seq:  # a part of a run has gaps
                place = next((n for n, raw in enumerate(raws) if raw[0] == seq), -1)
            if place >= 0:
                return Event(raws[place], self.strings, self.schema)
        if not self.chunks:
            raise TraceError(f"there is no event #{seq}: the trace is empty")
        raise TraceError(
            f"there is no event #{seq}: the trace holds {len(self)} events, "
            f"#{self.first_seq} to #{self.last_seq}"
        )

    def events(
        self,
        start: int = 0,
        stop: int | None = None,
        chunk_filter: Callable[[ChunkInfo], bool] | None = None,
    ) -> Iterator[Event]:
        """Yield events with start <= seq < stop, skipping chunks that the filter refuses."""
        for index in range(max(self.chunk_of(start), 0), len(self.chunks)):
            info = self.chunks[index]
            if stop is not None and info.first_seq >= stop:
                return
            if info.last_seq < start or (chunk_filter is not None and not chunk_filter(info)):
                continue
            events = self.chunk_events(index)
            if info.first_seq >= start and (stop is None or info.last_seq < stop):
                yield from events
            else:
                for event in events:
                    if event.seq >= start and (stop is None or event.seq < stop):
                        yield event

    def backwards(self, start: int) -> Iterator[Event]:
        """Yield events with seq <= start, latest first."""
        for index in range(self.chunk_of(start), -1, -1):
            for event in reversed(self.chunk_events(index)):
                if event.seq <= start:
                    yield event

    def chunk_filter(self, wanted: dict[str, str]) -> Callable[[ChunkInfo], bool] | None:
        """Return a filter for ``events`` that keeps the chunks with the wanted values of columns
        (actor, peer, type, kind); None if no such column is given."""
        tests: list[tuple[str, int]] = []
        for column, bits in (("actor", "actors"), ("peer", "actors"), ("type", "types")):
            if column in wanted:
                if wanted[column] not in self.strings:
                    return lambda info: False
                tests.append((bits, self.strings.index(wanted[column])))
        if "kind" in wanted:
            if wanted["kind"] not in KINDS:
                return lambda info: False
            tests.append(("kinds", KIND_CODES[wanted["kind"]]))
        if not tests:
            return None
        return lambda info: all(in_bitmap(getattr(info, bits), number) for bits, number in tests)

    def actors(self) -> list[str]:
        """Return the actors of the trace in order of appearance."""
        return [
            text
            for number, text in enumerate(self.strings)
            if any(in_bitmap(info.actors, number) for info in self.chunks)
        ]

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the number of events by kind and by type."""
        kinds: Counter[str] = Counter()
        types: Counter[str] = Counter()
        for event in self.events():
            kinds[event.kind] += 1
            if event.type is not None:
                types[event.type] += 1
        return (
            {kind: kinds[kind] for kind in KINDS if kind in kinds},
            {name: types[name] for name in self.strings if name in types},
        )

    def used_types(self) -> list[str]:
        """Return the types of the events, including those of timers."""
        return [
            text
            for number, text in enumerate(self.strings)
            if any(in_bitmap(info.types, number) for info in self.chunks)
        ]

    def interesting(self) -> list[int]:
        """Return the seqs of faults, crashes and restarts."""
        return [event.seq for event in self.events() if event.kind in INTERESTING_KINDS]

    def check(self) -> None:
        """Read the whole trace; raise ``TraceError`` for the first damaged frame."""

    @property
    def duration_us(self) -> int:
        return self.chunks[-1].time_last_us - self.chunks[0].time_first_us if self.chunks else 0

    def close(self) -> None:
        """Close the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class MemoryTrace(StoredTrace):
    """The trace that a recorder holds in memory."""

    def __init__(
        self,
        chunks: list[Chunk],
        strings: list[str],
        schema: list[Any],
        header: dict[str, Any],
        fingerprint: str,
        outline: str,
        snapshots: list[Snapshot],
    ) -> None:
        super().__init__()
        self.snapshots = snapshots
        self._snapshot_seqs = [snapshot.seq for snapshot in snapshots]
        self.stored = chunks
        self.chunks: list[ChunkInfo] = [chunk.info for chunk in chunks]
        self.strings = strings
        self._column_places = [chunk.places for chunk in chunks]
        self.schema: Schema = Schema(schema)
        self.header = header
        self.fingerprint: str = fingerprint
        self.outline: str = outline

    def packed_snapshot(self, index: int) -> bytes:
        return self.snapshots[index].body

    def _body(self, index: int) -> Any:
        return unpack(self.stored[index].body)

    def _packed_body(self, index: int) -> bytes:
        return self.stored[index].body

    def _snapshot_body(self, index: int) -> Any:
        return unpack(self.snapshots[index].body)

    def with_tables(self, chunk: Chunk, strings: list[str], schema: list[Any]) -> Chunk:
        """Return a chunk with these strings and types in place of those it adds."""
        parts = unpack(chunk.body)
        parts[2:4] = strings, schema
        body: bytes = msgpack.packb(repack(parts))
        info = chunk.info._replace(length=len(body), digest=body_digest(body))
        return chunk._replace(info=info, body=body, places=None)


class EventList(Sequence[Event]):
    """The events of a trace as a sequence, by position; slices are lists."""

    def __init__(self, trace: StoredTrace) -> None:
        self.trace = trace

    def __len__(self) -> int:
        return len(self.trace)

    def __iter__(self) -> Iterator[Event]:
        return self.trace.events()

    @overload
    def __getitem__(self, index: int) -> Event: ...

    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...

    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if position < 0:
            raise IndexError(f"there is no event at {index}; there are {len(self)}")
        for number, info in enumerate(self.trace.chunks):
            if position < info.events:
                return self.trace.chunk_events(number)[position]
            position -= info.events
        raise IndexError(f"there is no event at {index}; there are {len(self)}")
