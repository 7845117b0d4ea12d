"""A view of a trace's chunk that unpacks only the columns that are needed.

A question such as "why" goes through hundreds of chunks and needs two events of each. Building all
events of a chunk takes milliseconds; unpacking a column takes some ten microseconds, and in the two
large ones, heads and payloads, a single row is read without unpacking the rows before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgpack

from ..protocol.errors import FakeKafkaError
from .chunk_codec import NO_TYPE, SHARING
from .events import KIND_CODES, TraceError, Unread
from .packing import unpack

_FIRST, _SEQS = 0, 1
_HEADS, _UNSEEN, _CAUSES, _PAYLOADS, _WHYS, _OPERATIONS, _CHANGES = range(4, 11)
_PARTS = 11
_SINGLE_ROWS = 6
"""Number of rows looked up one by one before the whole column is unpacked."""

Change = tuple[int, int, Any, Any]
"""Seq of the event, number of the path, old value, new value."""


def column_places(body: bytes) -> list[int]:
    """Return the offsets at which the parts of a chunk's body begin and the last one ends."""
    unpacker = msgpack.Unpacker(max_buffer_size=0)
    unpacker.feed(body)
    if unpacker.read_array_header() != _PARTS:
        raise ValueError(f"a chunk has {_PARTS} parts")
    places = [unpacker.tell()]
    for _ in range(_PARTS):
        unpacker.skip()
        places.append(unpacker.tell())
    return places


class _Rows:
    """A packed column. Its rows are unpacked one by one; unless the view is kept, the whole column
    is unpacked after a few of them."""

    __slots__ = ("_left", "_packed", "_rows")

    def __init__(self, packed: memoryview, is_kept: bool) -> None:
        self._packed = packed
        self._rows: list[Any] | None = None
        self._left = -1 if is_kept else _SINGLE_ROWS

    def row(self, place: int) -> Any:
        if self._rows is None and self._left:
            self._left -= 1
            return self._single(place)
        return self.all()[place]

    def _single(self, place: int) -> Any:
        """Return the row at a place, skipping the rows before it without unpacking them."""
        unpacker = msgpack.Unpacker(max_buffer_size=0)
        unpacker.feed(self._packed)
        if place >= unpacker.read_array_header():
            raise IndexError(place)
        skip = unpacker.skip
        for _ in range(place):
            skip()
        return unpack(self._packed[unpacker.tell() :][: _length_of_next(unpacker)])

    def all(self) -> list[Any]:
        if self._rows is None:
            self._rows = unpack(self._packed)
        return self._rows


def _length_of_next(unpacker: Any) -> int:
    start = unpacker.tell()
    unpacker.skip()
    return int(unpacker.tell() - start)


class ChunkView:
    """A chunk's body with its columns by name. A view that is kept for later stays small.

    Raises ``ValueError`` if the body is malformed. The content of a column is checked on first
    use, which raises ``TraceError``.
    """

    def __init__(
        self,
        body: bytes,
        places: Sequence[int] | None,
        numbers: dict[str | None, int | None],
        epochs_of: Callable[[str], Any],
        is_kept: bool,
    ) -> None:
        self._body = memoryview(body)
        self._places = column_places(body) if places is None else places
        self._numbers = numbers
        self._epochs_of = epochs_of
        self.first_seq: int = self._part(_FIRST)
        self.is_dense: bool = self._part(_SEQS) is None
        """True if the events are numbered without gaps, as in the trace of a whole run."""
        self._heads = _Rows(self._packed(_HEADS), is_kept)
        self._payloads = _Rows(self._packed(_PAYLOADS), is_kept)

    def _packed(self, part: int) -> memoryview:
        return self._body[self._places[part] : self._places[part + 1]]

    def _part(self, part: int) -> Any:
        return unpack(self._packed(part))

    @cached_property
    def _unseen(self) -> tuple[list[int], list[Any]]:
        rows = self._part(_UNSEEN)
        return [row[0] for row in rows], [row[1:] for row in rows]

    @cached_property
    def _causes(self) -> list[int | None]:
        return self._part(_CAUSES)  # type: ignore[no-any-return]

    @cached_property
    def _whys(self) -> dict[int, str]:
        return self._part(_WHYS)  # type: ignore[no-any-return]

    @cached_property
    def _operations(self) -> list[int | None]:
        return self._part(_OPERATIONS)  # type: ignore[no-any-return]

    @cached_property
    def _change_columns(self) -> list[Any]:
        return self._part(_CHANGES)  # type: ignore[no-any-return]

    @cached_property
    def _changed_places(self) -> frozenset[int]:
        """Places of the events that changed some state, read from the first column of changes."""
        unpacker = msgpack.Unpacker(max_buffer_size=0)
        unpacker.feed(self._packed(_CHANGES))
        unpacker.read_array_header()
        return frozenset(unpacker.unpack())

    @cached_property
    def _deltas(self) -> dict[int, list[list[Any]]]:
        found: dict[int, list[list[Any]]] = {}
        for place, path, old, new in zip(*self._change_columns, strict=True):
            found.setdefault(place, []).append([path, old, new])
        return found

    def changes(self) -> list[Change]:
        """Return every change of state in the chunk, in order."""
        first = self.first_seq
        with _Checked():
            places, paths, old, new = self._change_columns
            seqs = [first + place for place in places]
            return list(zip(seqs, paths, old, new, strict=True))

    def _head(self, place: int) -> Any:
        places, heads = self._unseen
        before = bisect_left(places, place)
        if before < len(places) and places[before] == place:
            return heads[before]
        return self._heads.row(place - before)

    def heads(self) -> list[Any]:
        """Return ``[time us, kind, actor, peer, type, message id]`` of every event."""
        with _Checked():
            places, unseen = self._unseen
            heads = self._heads.all()[:] if places else self._heads.all()
            for place, head in zip(places, unseen, strict=True):
                heads.insert(place, head)
            return heads

    def raw(self, place: int) -> list[Any]:
        """Return an event in the order of ``EVENT_FIELDS``, its payload and epochs ``Unread``."""
        numbers = self._numbers
        with _Checked():
            time_us, kind, actor, peer, name, message_id = self._head(place)
            unread = Unread(self, place)
            return [
                self.first_seq + place,
                time_us * 1000,
                KIND_CODES[kind],
                numbers[actor],
                numbers[peer],
                None if name == NO_TYPE else numbers[name],
                message_id,
                self._causes[place],
                unread,
                unread,
                self._deltas[place] if place in self._changed_places else (),
                self._whys.get(place),
                self._operations[place],
            ]

    def payload(self, place: int) -> Any:
        """Return the payload of an event; a delivery's payload is stored at its sending."""
        with _Checked():
            while True:
                payload = self._payloads.row(place)
                cause = self._causes[place]
                if payload is not None or cause is None:
                    return payload
                sharing = cause - self.first_seq
                if not 0 <= sharing < place or KIND_CODES[self._head(place)[1]] not in SHARING:
                    return None
                place = sharing

    def epochs(self, place: int) -> Any:
        """Return [controller epoch, leader epoch, znode version]; None for a payload without."""
        with _Checked():
            epochs_of = self._epochs_of(self._head(place)[4])
            payload = None if epochs_of is None else self.payload(place)
            return None if payload is None else epochs_of(payload)


class _Checked:
    """A context manager that turns errors of decoding into ``TraceError``."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TraceError) or error is None:
            return
        if isinstance(
            error,
            (FakeKafkaError, LookupError, TypeError, ValueError, msgpack.UnpackException),
        ):
            raise TraceError(f"a chunk of the trace holds no events: {error!r}") from None
