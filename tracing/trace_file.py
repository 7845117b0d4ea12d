"""Reads a trace file, with or without its index."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

from .chunks import ChunkInfo, body_digest, contents_of, describe
from .events import TraceError
from .format import (
    CHUNK_FRAME,
    FORMAT,
    FRAME_HEAD,
    HEADER_FRAME,
    INDEX_FRAME,
    MAGIC,
    SNAPSHOT_FRAME,
    Frame,
    decode_frame,
    read_trailer,
    unpack_frame_body,
)
from .schema import Schema
from .trace import StoredTrace

_NO_TRACE = (
    TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
"""Errors raised when frames are intact but hold something other than a trace."""


class TraceReader(StoredTrace):
    """Reads a trace file; if its writer died, up to the last complete frame.

    Raises ``TraceError`` if the file is not a trace.
    """

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path: Path = Path(path)
        self._snapshot_offsets: list[int] = []
        self._counts: tuple[dict[str, int], dict[str, int]] | None = None
        self._interesting: list[int] | None = None
        try:
            with self.path.open("rb") as file:
                file.seek(0, 2)
                empty = file.tell() < len(MAGIC)
                self._data: Any = (
                    b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                )
        except OSError as error:
            raise TraceError(f"{path}: cannot be read: {error.strerror or error}") from None
        try:
            self._open()
        except _NO_TRACE as error:
            self.close()
            raise TraceError(
                f"{path}: damaged, or not written by fakekafka ({type(error).__name__}: {error})"
            ) from None
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        place = str(self.path)
        if self._data[: len(MAGIC)] != MAGIC:
            raise TraceError(f"{place}: not a trace file (it must begin with {MAGIC.decode()})")
        frame = decode_frame(self._data, len(MAGIC), place)
        if frame.kind != HEADER_FRAME:
            raise TraceError(f"{place}: the first frame is not a header")
        self.header: dict[str, Any] = unpack_frame_body(frame, place)
        written = self.header.get("format") if isinstance(self.header, dict) else None
        if written != FORMAT:
            raise TraceError(
                f"{place}: written in format {written}; this release reads format {FORMAT}"
            )
        self.fingerprint = None
        self.outline = None
        if not self._read_index():
            self._rebuild_index(frame.offset + frame.length)

    def _read_index(self) -> bool:
        try:
            trailer = read_trailer(self._data, str(self.path))
            if trailer is None:
                return False
            offset, digest = trailer
            frame = decode_frame(self._data, offset, str(self.path))
        except TraceError as error:
            self.problem: str | None = str(error)
            return False
        if frame.kind != INDEX_FRAME:
            return False
        index = unpack_frame_body(frame, str(self.path))
        self.chunks: list[ChunkInfo] = [ChunkInfo(*info) for info in index["chunks"]]
        self.strings: list[str] = index["strings"]
        self.schema: Schema = Schema(index["schema"])
        self._take_snapshots(index["snapshots"])
        self._interesting = index["interesting"]
        self._column_places = index.get("columns", [])
        self._counts = (index["kinds"], index["types"])
        self.fingerprint = digest.hex()
        self.outline = index["outline"]
        return True

    def _rebuild_index(self, offset: int) -> None:
        """Rebuild the index from the frames up to the first that is damaged or cut off."""
        if self.problem is None:
            self.problem = "the file has no end: the run was cut off"
        while offset + FRAME_HEAD.size <= len(self._data):
            try:
                frame = decode_frame(self._data, offset, str(self.path))
                if frame.kind == CHUNK_FRAME:
                    self._index_chunk(frame)
                elif frame.kind == SNAPSHOT_FRAME:
                    seq = unpack_frame_body(frame, str(self.path))[0]
                    self._take_snapshots([(seq, frame.offset)])
                elif frame.kind == INDEX_FRAME:
                    return
            except TraceError as error:
                self.problem = str(error)
                return
            offset += frame.length

    def _index_chunk(self, frame: Frame) -> None:
        body = unpack_frame_body(frame, str(self.path))
        self.strings += body[2]
        self.schema.add(body[3])
        contents = contents_of(self._decode(body, len(self.chunks)))
        self.chunks.append(describe(contents, frame.body, frame.offset, frame.length).info)

    def packed_snapshot(self, index: int) -> bytes:
        return decode_frame(self._data, self._snapshot_offsets[index], str(self.path)).body

    def _packed_body(self, index: int) -> bytes:
        return decode_frame(self._data, self.chunks[index].offset, str(self.path)).body

    def _body(self, index: int) -> Any:
        frame = decode_frame(self._data, self.chunks[index].offset, str(self.path))
        return unpack_frame_body(frame, str(self.path))

    def _take_snapshots(self, found: list[Any]) -> None:
        for seq, offset in found:
            self._snapshot_seqs.append(seq)
            self._snapshot_offsets.append(offset)

    def _snapshot_body(self, index: int) -> Any:
        frame = decode_frame(self._data, self._snapshot_offsets[index], str(self.path))
        return unpack_frame_body(frame, str(self.path))

    def check(self) -> None:
        """Read the frames of all chunks; raise ``TraceError`` for the first damaged one."""
        place = str(self.path)
        for info in self.chunks:
            frame = decode_frame(self._data, info.offset, place)
            # Zeroed bytes parse as an empty frame with a valid checksum: compare with the index.
            if frame.kind != CHUNK_FRAME or body_digest(frame.body) != info.digest:
                raise TraceError(f"{place}: wrong checksum of the frame at byte {info.offset}")

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        return super().counts() if self._counts is None else self._counts

    def interesting(self) -> list[int]:
        return super().interesting() if self._interesting is None else self._interesting

    def close(self) -> None:
        if isinstance(self._data, mmap.mmap):
            self._data.close()
            self._data = b""
