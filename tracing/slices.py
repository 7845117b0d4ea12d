"""Smaller traces cut out of larger ones; events keep their seq, so #1234 stays #1234."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .chunks import ChunkBuilder
from .events import KIND_CODES, Event
from .fingerprint import Fingerprint
from .format import CHUNK_EVENTS
from .packing import PayloadPacker, repack
from .trace import StoredTrace
from .writer import TraceWriter


def write_slice(
    trace: StoredTrace, events: Iterable[Event], path: str | Path, selection: str
) -> int:
    """Write some events of a trace to a file of its own; returns how many.

    The header says what was selected; such a part cannot be verified by running it again.
    """
    header: dict[str, Any] = {
        **trace.header,
        "part": selection,
        "part_of": trace.fingerprint,
    }
    packer = PayloadPacker(0)
    packer.schema.update(trace.schema.types)
    packer.unwritten += trace.schema.types
    writer = TraceWriter(path, header)
    builder = ChunkBuilder(packer, writer.write_chunk)
    outline = Fingerprint()
    strings = builder.strings
    count = 0
    for event in events:
        builder.pending.append(
            [
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
                [[strings[path_], repack(old), repack(new)] for path_, old, new in event.delta],
                event.why,
                event.op,
            ]
        )
        outline.append(
            (event.time_us, event.kind, event.actor, event.peer, event.type, event.message_id)
        )
        count += 1
        if len(builder.pending) >= CHUNK_EVENTS:
            builder.cut()
            outline.absorb()
    builder.cut()
    schema = list(packer.schema.items())
    writer.close(strings.ordered, schema, builder.digest(), outline.fingerprint())
    return count
