"""Chunks: runs of up to 1,000 events packed together, with the strings and types they add.

How a chunk's body looks is told in ``chunk_codec``. Strings are numbered in order of first use, so
a chunk is decodable from the tables before it. Where chunks are cut depends on nothing but the
events, so equal runs have equal chunks, and the fingerprint of a run is the digest of theirs.
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
    """Numbers as a little-endian bit set."""
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def in_bitmap(bits: bytes, number: int) -> bool:
    byte = number >> 3
    return byte < len(bits) and bool(bits[byte] >> (number & 7) & 1)


class ChunkInfo(NamedTuple):
    """A chunk as the index describes it; bitmaps are over string numbers and kind codes."""

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
    type_counts: Counter[int]
    places: list[int] | None = None
    """Where the parts of the body begin and the last one ends, if that is known."""


def body_digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


class Contents(NamedTuple):
    """The contents of a chunk, in the numbers of its index entry."""

    first_seq: int
    last_seq: int
    events: int
    times_us: tuple[int, int]
    """Of the first event and the last."""
    kinds: Counter[int]
    interesting: list[int]
    """Numbers of the events that a reader of a long trace wants to jump to."""
    actors: frozenset[int]
    """Peers, too."""
    types: Counter[int]
    paths: frozenset[int]


def contents_of(raws: Sequence[Any]) -> Contents:
    """The contents of events that stand in the order of ``EVENT_FIELDS``."""
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
    """A chunk with its entry of the index."""
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
    """String to its number, given at first use; None stays None."""

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
    """Strings and types of a file as far as it is written, and the running digest of its chunks."""

    def __init__(self, packer: PayloadPacker) -> None:
        self.packer = packer
        self.strings: Strings = Strings()
        self._written_strings = 0
        self.types_written: dict[str, None] = {}
        """In the order in which the chunks have them."""
        self._digest = hashlib.blake2b(digest_size=DIGEST_BYTES)

    def copy(self) -> Self:
        """Tables in which to see how the next chunk would look."""
        other = type(self)(self.packer)
        other.strings = Strings(self.strings.ordered)
        other._written_strings = self._written_strings
        other.types_written = dict(self.types_written)
        other._digest = self._digest.copy()
        return other

    def add(self, columns: ChunkColumns, contents: Contents) -> Chunk:
        """The next chunk, with the strings and types that are new since the last."""
        strings = self.strings.ordered[self._written_strings :]
        # Which comes first hangs on when somebody looked: the order is not part of the run.
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
        """The types that are written."""
        return [(name, self.packer.schema[name]) for name in self.types_written]

    def digest(self) -> bytes:
        """blake2b-256 of the digests of all chunks so far."""
        return self._digest.digest()
