"""Writes parts of a trace to files of their own; events keep their seq, so #1234 stays #1234."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .chunk_codec import columns_of
from .chunks import ChunkTables, Strings, contents_of
from .events import KIND_CODES, Event
from .fingerprint import UNSEEN_KINDS, Fingerprint
from .format import CHUNK_EVENTS
from .packing import PayloadPacker, repack
from .recording.writer import TraceWriter
from .trace import StoredTrace


def write_slice(
    trace: StoredTrace, events: Iterable[Event], path: str | Path, selection: str
) -> int:
    """Write some events of a trace to a file of their own; return their number.

    The header says what was selected. A part cannot be verified by running it again.
    """
    header: dict[str, Any] = {
        **trace.header,
        "part": selection,
        "part_of": trace.fingerprint,
    }
    packer = PayloadPacker(0)
    packer.schema.update(trace.schema.types)
    writer = TraceWriter(path, header)
    tables = ChunkTables(packer)
    outline = Fingerprint()
    count = 0
    pending: list[Any] = []

    def cut() -> None:
        columns, seen = columns_of(pending, tables.strings.ordered, UNSEEN_KINDS, packer.pack)
        outline.take(columns.heads, seen)
        writer.write_chunk(tables.add(columns, contents_of(pending)))
        pending.clear()

    for event in events:
        pending.append(_raw(event, tables.strings))
        count += 1
        if len(pending) >= CHUNK_EVENTS:
            cut()
    if pending:
        cut()
    writer.close(tables.strings.ordered, tables.schema(), tables.digest(), outline.fingerprint())
    return count


def _raw(event: Event, strings: Strings) -> list[Any]:
    return [
        event.seq,
        event.time_us * 1000,
        KIND_CODES[event.kind],
        strings[event.actor],
        strings[event.peer],
        strings[event.type],
        event.message_id,
        event.cause,
        event.epochs,
        repack(event.payload),
        [[strings[path], repack(old), repack(new)] for path, old, new in event.delta],
        event.why,
        event.op,
    ]
