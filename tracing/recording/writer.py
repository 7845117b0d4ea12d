"""Writes a trace file frame by frame, so that it stays readable if the run dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack

from ...protocol.errors import UsageError
from ..chunks import Chunk, ChunkInfo, Snapshot
from ..events import KINDS
from ..format import (
    CHUNK_FRAME,
    CODECS,
    HEADER_FRAME,
    INDEX_FRAME,
    MAGIC,
    SNAPSHOT_FRAME,
    encode_frame,
    pack_header,
    pack_trailer,
)


class TraceWriter:
    """Appends frames to a file. ``header`` comes from ``header.build_header``.

    Raises ``UsageError`` for an unknown codec and ``OSError`` if the file cannot be written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any], *, codec: str = "zstd") -> None:
        if codec not in CODECS:
            raise UsageError(f"unknown codec {codec!r}; use one of {', '.join(CODECS)}")
        self.path: Path = Path(path)
        self._codec = CODECS[codec]
        self._chunks: list[ChunkInfo] = []
        self._places: list[list[int] | None] = []
        self._snapshots: list[tuple[int, int]] = []  # seq and offset
        self._interesting: list[int] = []
        self._kinds: Counter[int] = Counter()
        self._types: Counter[int | None] = Counter()
        body = pack_header(header)
        self._file = self.path.open("wb")
        self._file.write(MAGIC)
        self._offset = len(MAGIC)
        self._write(encode_frame(HEADER_FRAME, body, self._codec))

    def _write(self, frame: bytes) -> tuple[int, int]:
        offset = self._offset
        self._file.write(frame)
        self._file.flush()
        self._offset += len(frame)
        return offset, len(frame)

    def write_chunk(self, chunk: Chunk) -> None:
        offset, length = self._write(encode_frame(CHUNK_FRAME, chunk.body, self._codec))
        self._chunks.append(chunk.info.stored_at(offset, length))
        self._places.append(chunk.places)
        self._interesting += chunk.interesting
        self._kinds.update(chunk.kind_counts)
        self._types.update(chunk.type_counts)

    def write_snapshot(self, snapshot: Snapshot) -> None:
        offset, _ = self._write(encode_frame(SNAPSHOT_FRAME, snapshot.body, self._codec))
        self._snapshots.append((snapshot.seq, offset))

    def close(self, strings: list[str], schema: list[Any], digest: bytes, outline: str) -> None:
        """Write index and trailer; idempotent."""
        if self._file.closed:
            return
        index = {
            "chunks": [list(info) for info in self._chunks],
            "strings": strings,
            "schema": schema,
            "interesting": self._interesting,
            "events": sum(info.events for info in self._chunks),
            "kinds": {KINDS[kind]: n for kind, n in sorted(self._kinds.items())},
            "types": {
                strings[number]: n
                for number, n in sorted(
                    (number, n) for number, n in self._types.items() if number is not None
                )
            },
            "outline": outline,
            "snapshots": self._snapshots,
            "columns": self._places,  # readers compute a missing entry (None)
        }
        offset, _ = self._write(encode_frame(INDEX_FRAME, msgpack.packb(index), self._codec))
        self._file.write(pack_trailer(offset, digest))
        self._file.close()

    def abandon(self) -> None:
        """Close the file as a crash would leave it."""
        self._file.close()
