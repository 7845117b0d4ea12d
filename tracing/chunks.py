"""Chunks: runs of up to 1,000 events packed together, with the strings and types they add.

A chunk body is ``[first seq, strings added, schema added, [event, ...]]``. Strings are numbered
in order of first use, so a chunk is decodable from the tables before it. Where chunks are cut
depends on nothing but the events, so equal runs have equal chunks; the fingerprint does not
depend on the cuts at all.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

import msgpack

from .events import INTERESTING_KINDS, KIND_CODES, KINDS
from .fingerprint import array_header_bytes
from .format import CHUNK_BYTES
from .packing import PayloadPacker
from .schema import FieldShapes

_INTERESTING = frozenset(KIND_CODES[kind] for kind in INTERESTING_KINDS)
_kind_of, _actor_of, _peer_of, _type_of = (itemgetter(i) for i in (2, 3, 4, 5))
DIGEST_BYTES = 32


def bitmap(numbers: Iterable[int]) -> bytes:
    """Numbers as a little-endian bit set."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def in_bitmap(bits: bytes, number: int) -> bool:
    byte = number >> 3
    return byte < len(bits) and bool(bits[byte] >> (number & 7) & 1)


class ChunkInfo(NamedTuple):
    """What the index says of a chunk; bitmaps are over string numbers and kind codes."""

    first_seq: int
    last_seq: int
    time_first_us: int
    time_last_us: int
    offset: int
    """Byte offset of the frame in the file; -1 in memory."""
    length: int
    """Bytes of the frame as stored; of the body in memory."""
    actors: bytes
    types: bytes
    kinds: bytes
    digest: bytes
    """blake2b-128 of the body."""
    events: int
    paths: bytes
    """State paths that change in it."""

    def stored_at(self, offset: int, length: int) -> ChunkInfo:
        """The same chunk as the frame of a file that begins there."""
        return self._replace(offset=offset, length=length)


class Snapshot(NamedTuple):
    """The state of everything after an event, which is the last of a chunk or before the first."""

    seq: int
    body: bytes
    """Seq, then [number of the path, value, seq of its change] for every path with a value."""


class Chunk(NamedTuple):
    """A chunk about to be stored."""

    info: ChunkInfo
    body: bytes
    interesting: list[int]
    kind_counts: Counter[int]
    type_counts: Counter[int | None]
    deltas: list[tuple[int, Any]]
    """Seq and changes of every event that changed some state."""


def body_digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def describe(events: list[Any], body: bytes, offset: int, length: int) -> Chunk:
    """Index entries of a chunk from its events (raw arrays)."""
    kinds, actors = set(map(_kind_of, events)), set(map(_actor_of, events))
    actors.update(number for number in set(map(_peer_of, events)) if number is not None)
    type_counts: Counter[int | None] = Counter(map(_type_of, events))
    interesting: list[int] = []
    if kinds & _INTERESTING:
        interesting = [event[0] for event in events if event[2] in _INTERESTING]
    deltas = [(event[0], event[10]) for event in events if event[10]]
    info = ChunkInfo(
        events[0][0],
        events[-1][0],
        events[0][1] // 1000,
        events[-1][1] // 1000,
        offset,
        length,
        bitmap(actors),
        bitmap(number for number in type_counts if number is not None),
        bitmap(kind for kind in kinds if kind < len(KINDS)),
        body_digest(body),
        len(events),
        bitmap({change[0] for _, delta in deltas for change in delta}),
    )
    return Chunk(info, body, interesting, Counter(map(_kind_of, events)), type_counts, deltas)


class Strings(dict[str | None, int | None]):
    """String to its number, given at first use; None stays None."""

    __slots__ = ("ordered",)

    def __init__(self) -> None:
        super().__init__({None: None})
        self.ordered: list[str] = []

    def __missing__(self, text: str) -> int:
        number = len(self.ordered)
        self[text] = number
        self.ordered.append(text)
        return number


class ChunkBuilder:
    """Turns raw events into chunks and keeps the running digest over them.

    A raw event is a list in the order of ``EVENT_FIELDS``, strings already numbered; its payload
    may still be the message itself. ``emit`` takes each finished chunk.
    """

    def __init__(self, packer: PayloadPacker, emit: Callable[[Chunk], object]) -> None:
        self.packer = packer
        self.strings = Strings()
        self.pending: list[Any] = []
        """Events not packed yet; deltas may still be added to them."""
        self._emit = emit
        self._written_strings = 0
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def cut(self) -> None:
        """Pack what is pending into a chunk, or several when it is large."""
        events = self.pending[:]
        self.pending.clear()  # the list itself is known to the recorder
        if not events:
            return
        packed = self.packer.pack(events)
        self._digest.update(memoryview(packed)[array_header_bytes(len(events)) :])
        if len(packed) <= CHUNK_BYTES or len(events) == 1:
            self._emit(self._chunk(events, packed))
            return
        group: list[Any] = []
        size = 0
        for event in events:
            length = len(self.packer.pack(event))
            if group and size + length > CHUNK_BYTES:
                self._emit(self._chunk(group, self.packer.pack(group)))
                group, size = [], 0
            group.append(event)
            size += length
        self._emit(self._chunk(group, self.packer.pack(group)))

    def pending_chunk(self) -> Chunk | None:
        """What is pending as a chunk, without cutting it."""
        if not self.pending:
            return None
        packed = self.packer.pack(self.pending)
        body = self._body(self.pending[0][0], self._new_strings(), self._new_types(), packed)
        return describe(self.pending, body, -1, len(body))

    def _new_strings(self) -> list[str]:
        return self.strings.ordered[self._written_strings :]

    def _new_types(self) -> list[tuple[str, FieldShapes]]:
        return [(name, self.packer.schema[name]) for name in self.packer.unwritten]

    @staticmethod
    def _body(first: int, strings: list[str], types: list[Any], packed: bytes) -> bytes:
        return b"\x94" + b"".join(map(msgpack.packb, (first, strings, types))) + packed

    def _chunk(self, events: list[Any], packed: bytes) -> Chunk:
        body = self._body(events[0][0], self._new_strings(), self._new_types(), packed)
        self._written_strings = len(self.strings.ordered)
        self.packer.unwritten.clear()
        return describe(events, body, -1, len(body))

    def digest(self) -> bytes:
        """blake2b-256 of all events so far with their string and type tables."""
        digest = self._digest.copy()
        if self.pending:
            packed = self.packer.pack(self.pending)
            digest.update(memoryview(packed)[array_header_bytes(len(self.pending)) :])
        digest.update(msgpack.packb(self.strings.ordered))
        # Types are met when a chunk is packed; when that happens is not part of the run.
        digest.update(msgpack.packb(sorted(self.packer.schema.items())))
        return digest.digest()
