"""Packs rows into chunks: a thousand events at once, column by column.

Work that is needed for every event is left to C code where possible: columns are cut out by
``zip``, counted by ``Counter`` and packed by msgpack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..chunk_codec import NO_TYPE, ChunkColumns
from ..chunks import Chunk, ChunkTables, Contents
from ..events import INTERESTING_KINDS, KIND_CODES
from ..format import CHUNK_BYTES
from .event_columns import EventColumns
from .recorded_state import Change

if TYPE_CHECKING:
    from ..fingerprint import Fingerprint


class RowBatch(NamedTuple):
    """Events with their operations and changes of state."""

    columns: EventColumns
    unseen: Sequence[int]
    """Numbers of the events outside the outline."""
    operations: Sequence[int | None]
    changes: Sequence[Change]

    def halves(self) -> tuple[Self, Self]:
        columns = self.columns
        middle = len(columns) // 2
        border = columns.first + middle
        kind = type(self)
        return (
            kind(
                columns.part(0, middle),
                [seq for seq in self.unseen if seq < border],
                self.operations[:middle],
                [change for change in self.changes if change[0] < border],
            ),
            kind(
                columns.part(middle, len(columns)),
                [seq for seq in self.unseen if seq >= border],
                self.operations[middle:],
                [change for change in self.changes if change[0] >= border],
            ),
        )


def pack_rows(tables: ChunkTables, outline: Fingerprint, batch: RowBatch) -> Iterator[Chunk]:
    """Yield the rows as one chunk, or as several if one would be too large."""
    payloads = _payloads(tables, batch.columns)
    if len(payloads) <= CHUNK_BYTES or len(batch.columns) == 1:
        yield _chunk(tables, outline, batch, payloads)
    else:
        for half in batch.halves():
            yield from pack_rows(tables, outline, half)


def _payloads(tables: ChunkTables, columns: EventColumns) -> bytes:
    """Pack the fields of all messages; a message shared with the cause is packed only there."""
    first, messages, causes = columns.first, columns.messages, columns.causes
    extractors = tables.packer.extractors
    payloads: list[Any] = []
    for place, message in enumerate(messages):
        payload: Any = None
        if message is not None:
            cause = causes[place]
            if cause is None or cause < first or messages[cause - first] is not message:
                payload = extractors[type(message)](message)
        payloads.append(payload)
    return tables.packer.pack(payloads)


def _chunk(tables: ChunkTables, outline: Fingerprint, batch: RowBatch, payloads: bytes) -> Chunk:
    events = batch.columns
    first, count = events.first, len(events)
    pack, numbers = tables.packer.pack, tables.strings
    times, kinds, actors, peers, types, _ = zip(*events.heads, strict=True)
    heads = events.heads[:]
    unseen = [(seq - first, *heads.pop(seq - first)) for seq in reversed(batch.unseen)]
    unseen.reverse()
    packed_heads = pack(heads)
    outline.take(packed_heads, len(heads))
    type_counts = Counter(types)
    del type_counts[NO_TYPE]
    lanes = [lane for lane in (*dict.fromkeys(actors), *dict.fromkeys(peers)) if lane is not None]
    actors_in = frozenset([numbers[lane] for lane in lanes])
    type_numbers = {numbers[name]: count for name, count in type_counts.items()}
    changes = batch.changes
    columns = (
        [change[0] - first for change in changes],
        [numbers[change[1]] for change in changes],
        [change[2] for change in changes],
        [change[3] for change in changes],
    )
    interesting: list[int] = []
    kind_counts = Counter(kinds)
    if not INTERESTING_KINDS.isdisjoint(kind_counts):
        interesting = [seq for seq, kind in enumerate(kinds, first) if kind in INTERESTING_KINDS]
    contents = Contents(
        first,
        first + count - 1,
        count,
        (times[0], times[-1]),
        Counter({KIND_CODES[kind]: count for kind, count in kind_counts.items()}),
        interesting,
        actors_in,  # type: ignore[arg-type]
        Counter(type_numbers),  # type: ignore[arg-type]
        frozenset(columns[1]),  # type: ignore[arg-type]
    )
    body = ChunkColumns(
        first,
        None,
        packed_heads,
        unseen,
        events.causes,
        payloads,
        events.whys,
        batch.operations,
        columns,  # type: ignore[arg-type]
    )
    return tables.add(body, contents)
