"""Shows events while they are recorded, as readers of the trace will see them."""

from __future__ import annotations

from typing import Any

from ..chunk_codec import NO_TYPE
from ..chunks import Strings
from ..events import KIND_CODES, Event
from ..packing import PayloadPacker, unpack
from ..schema import Schema
from ..trace import StoredTrace
from .row_packing import RowBatch


class RowView:
    """Returns events in the order of ``EVENT_FIELDS``, with its own numbers for strings: those of
    the file must not depend on when events are viewed."""

    __slots__ = ("_next_seq", "_settled", "strings")

    def __init__(self) -> None:
        self.strings: Strings = Strings()
        self._next_seq = 0  # number after the last event that was viewed
        self._settled = 0  # number of changes known at that time

    def cut(self, first: int) -> None:
        """Note that the rows of later calls begin at an event."""
        self._next_seq, self._settled = first, 0

    def of_rows(self, batch: RowBatch, first: int) -> list[Any]:
        """Return the rows from an event on; their payload is the message itself."""
        strings = self.strings
        # Changes of events that are new since the last view were reported since then.
        known = self._settled if first >= self._next_seq else 0
        deltas: dict[int, list[Any]] = {}
        for seq, path, old, new in batch.changes[known:]:
            deltas.setdefault(seq, []).append([strings[path], old, new])
        columns = batch.columns
        self._next_seq = columns.first + len(columns)
        self._settled = len(batch.changes)
        raws: list[Any] = []
        for place in range(first - columns.first, len(columns)):
            time_us, kind, actor, peer, name, message_id = columns.heads[place]
            seq = columns.first + place
            raws.append(
                [
                    seq, time_us * 1000, KIND_CODES[kind], strings[actor], strings[peer],
                    None if name == NO_TYPE else strings[name], message_id, columns.causes[place],
                    None, columns.messages[place], deltas.get(seq, ()), columns.whys.get(place),
                    batch.operations[place],
                ]
            )  # fmt: skip
        return raws

    def of_trace(self, trace: StoredTrace, first: int, stop: int) -> list[Any]:
        """Return the events of a trace from ``first`` to before ``stop``."""
        strings, names = self.strings, trace.strings
        found: list[Any] = []
        for index in range(max(trace.chunk_of(first), 0), len(trace.chunks)):
            for raw in trace.raw_events(index):
                if first <= raw[0] < stop:
                    words = [None if raw[n] is None else strings[names[raw[n]]] for n in (3, 4, 5)]
                    delta = [[strings[names[path]], old, new] for path, old, new in raw[10]]
                    found.append([*raw[:3], *words, *raw[6:10], delta, *raw[11:]])
        return found

    def decoded(self, raw: list[Any], packer: PayloadPacker) -> Event:
        """Decode one of these events."""
        plain = unpack(packer.pack(raw))
        schema = Schema(packer.schema.items())
        if plain[9] is not None and plain[5] is not None:
            epochs_of = schema.epochs_of(self.strings.ordered[plain[5]])
            plain[8] = None if epochs_of is None else epochs_of(plain[9])
        return Event(plain, self.strings.ordered, schema)
