"""Chunks: up to 1,000 consecutive events packed together, with the strings and types they add.

``chunk_codec`` describes the body of a chunk. Strings are numbered in order of first use, so the
tables of earlier chunks suffice to decode a chunk. Only the events decide where chunks are cut, so
equal runs have equal chunks, and the fingerprint of a run is the digest of its chunks' digests.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

from .chunk_codec import ChunkColumns, encode_chunk
from .events import INTERESTING_KINDS, KIND_CODES
from .packing import PayloadPacker
from .schema import FieldShapes

_INTERESTING = frozenset(KIND_CODES[kind] for kind in INTERESTING_KINDS)
DIGEST_BYTES = 32


def bitmap(numbers: Iterable[int]) -> bytes:
    """Return numbers as a little-endian bit set."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def in_bitmap(bits: bytes, number: int) -> bool:
    byte = number >> 3
    return byte < len(bits) and bool(bits[byte] >> (number & 7) & 1)


class ChunkInfo(NamedTuple):
    """A chunk as the index describes it. ``actors``, ``types`` and ``paths`` are bit sets of string
    numbers, ``kinds`` is one of kind codes."""

    first_seq: int
    last_seq: int
    time_first_us: int
    time_last_us: int
    offset: int
    """Byte offset of the frame in the file; -1 for a chunk in memory."""
    length: int
    """Stored size of the frame in bytes; size of the body for a chunk in memory."""
    actors: bytes
    types: bytes
    kinds: bytes
    digest: bytes
    """blake2b-128 of the body."""
    events: int
    paths: bytes
    """State paths that change in the chunk."""

    def stored_at(self, offset: int, length: int) -> ChunkInfo:
        """Return this entry for the chunk stored as a frame at a byte offset of a file."""
        return self._replace(offset=offset, length=length)


class Snapshot(NamedTuple):
    """The whole recorded state after the last event of a chunk, or before the first event."""

    seq: int
    body: bytes
    """Seq, then [number of the path, value, seq of its change] for every path with a value."""


class Chunk(NamedTuple):
    """A chunk about to be stored."""

    info: ChunkInfo
    body: bytes
    interesting: list[int]
    kind_counts: Counter[int]
    type_counts: Counter[int]
    places: list[int] | None = None
    """Offsets at which the parts of the body begin and the last one ends; None if unknown."""


def body_digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


class Contents(NamedTuple):
    """A summary of a chunk's events, from which its entry in the index is made."""

    first_seq: int
    last_seq: int
    events: int
    times_us: tuple[int, int]
    """Times of the first and the last event."""
    kinds: Counter[int]
    interesting: list[int]
    """Seqs of the events that a reader of a long trace wants to jump to."""
    actors: frozenset[int]
    """Numbers of the actors, peers included."""
    types: Counter[int]
    paths: frozenset[int]


def contents_of(raws: Sequence[Any]) -> Contents:
    """Return the contents of events given in the order of ``EVENT_FIELDS``."""
    actors = {raw[3] for raw in raws} | {raw[4] for raw in raws if raw[4] is not None}
    return Contents(
        raws[0][0],
        raws[-1][0],
        len(raws),
        (raws[0][1] // 1000, raws[-1][1] // 1000),
        Counter(raw[2] for raw in raws),
        [raw[0] for raw in raws if raw[2] in _INTERESTING],
        frozenset(actors),
        Counter(raw[5] for raw in raws if raw[5] is not None),
        frozenset(change[0] for raw in raws for change in raw[10]),
    )


def describe(contents: Contents, body: bytes, offset: int = -1, length: int | None = None) -> Chunk:
    """Return a chunk with its entry in the index."""
    info = ChunkInfo(
        contents.first_seq,
        contents.last_seq,
        *contents.times_us,
        offset,
        len(body) if length is None else length,
        bitmap(contents.actors),
        bitmap(contents.types),
        bitmap(contents.kinds),
        body_digest(body),
        contents.events,
        bitmap(contents.paths),
    )
    return Chunk(info, body, contents.interesting, contents.kinds, contents.types)


class Strings(dict[str | None, int | None]):
    """Maps each string to its number, assigned on first use, and None to None."""

    __slots__ = ("ordered",)

    def __init__(self, ordered: Iterable[str] = ()) -> None:
        super().__init__({None: None})
        self.ordered: list[str] = list(ordered)
        self.update((text, number) for number, text in enumerate(self.ordered))

    def __missing__(self, text: str) -> int:
        number = len(self.ordered)
        self[text] = number
        self.ordered.append(text)
        return number


class ChunkTables:
    """The strings and types of the chunks written so far, and the running digest of the chunks."""

    def __init__(self, packer: PayloadPacker) -> None:
        self.packer = packer
        self.strings: Strings = Strings()
        self._written_strings = 0
        self.types_written: dict[str, None] = {}
        """Names of the types written, in the order in which the chunks add them."""
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def copy(self) -> Self:
        """Return a copy, to build the next chunk without changing these tables."""
        other = type(self)(self.packer)
        other.strings = Strings(self.strings.ordered)
        other._written_strings = self._written_strings
        other.types_written = dict(self.types_written)
        other._digest = self._digest.copy()
        return other

    def add(self, columns: ChunkColumns, contents: Contents) -> Chunk:
        """Make the next chunk, with the strings and types that are new since the last one."""
        strings = self.strings.ordered[self._written_strings :]
        # Sorted, as the order of first use depends on when the trace was read during the run.
        new = sorted(name for name in self.packer.schema if name not in self.types_written)
        types: list[tuple[str, FieldShapes]] = [(name, self.packer.schema[name]) for name in new]
        self._written_strings = len(self.strings.ordered)
        self.types_written.update(dict.fromkeys(new))
        changes = self.packer.pack(columns.changes)
        body, places = encode_chunk(columns, strings, types, changes)
        chunk = describe(contents, body)._replace(places=places)
        self._digest.update(chunk.info.digest)
        return chunk

    def schema(self) -> list[tuple[str, FieldShapes]]:
        """Return the types written so far, with their fields."""
        return [(name, self.packer.schema[name]) for name in self.types_written]

    def digest(self) -> bytes:
        """Return the blake2b-256 of the digests of all chunks so far."""
        return self._digest.digest()
