"""The ``.fktrace`` file: frames, header, trailer.

    file    := magic | header frame | (chunk frame | snapshot frame)* | index frame | trailer
    frame   := kind:u8 | codec:u8 | length:u32 LE | crc32:u32 LE | body
    trailer := index offset:u64 LE | fingerprint:32 bytes | magic

``length`` and ``crc32`` are those of the body as stored. Each frame is complete in itself, so a
file whose writer died is readable up to its last whole frame.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import cramjam
import msgpack

from ..protocol.errors import UsageError
from ..protocol.records import compression as codecs
from .events import TraceError
from .packing import unpack, unpack_counted

MAGIC = b"FKTRACE1"
FORMAT = 4
HEADER_FRAME, CHUNK_FRAME, INDEX_FRAME, SNAPSHOT_FRAME = 1, 2, 3, 4
RAW, ZLIB, ZSTD = 0, 1, 2
CODECS = {"raw": RAW, "zlib": ZLIB, "zstd": ZSTD}
FRAME_HEAD = struct.Struct("<BBII")
TRAILER = struct.Struct(f"<Q32s{len(MAGIC)}s")
CHUNK_EVENTS = 1000
CHUNK_BYTES = 256 * 1024
_ZSTD_LEVEL = 1
"""A run waits for it; the next level saves a tenth of the bytes and takes twice the time."""
FRAME_BYTES_MAX = 256 * 1024 * 1024
"""What the body of a frame may take when it is decompressed; those written are far smaller."""


CONTAINERS_MAX = 3_000_000
"""Lists and maps in a frame: an empty one takes a byte there and some sixty in memory."""
_COUNTED_BYTES = 4 * 1024 * 1024


def encode_frame(kind: int, body: bytes, codec: int) -> bytes:
    """A frame with its body compressed."""
    if codec == ZLIB:
        body = zlib.compress(body, 1)
    elif codec == ZSTD:
        body = bytes(cramjam.zstd.compress(body, level=_ZSTD_LEVEL))
    return FRAME_HEAD.pack(kind, codec, len(body), zlib.crc32(body)) + body


class Frame(NamedTuple):
    """A frame found in a file; ``offset`` and ``length`` cover head and body."""

    kind: int
    offset: int
    length: int
    body: bytes


def decode_frame(data: Any, offset: int, place: str) -> Frame:
    """The frame at an offset of a buffer; raises ``TraceError`` when it is cut or damaged."""
    head_end = offset + FRAME_HEAD.size
    if head_end > len(data):
        raise TraceError(f"{place}: cut off inside a frame head at byte {offset}")
    kind, codec, length, checksum = FRAME_HEAD.unpack_from(data, offset)
    if head_end + length > len(data):
        raise TraceError(f"{place}: cut off inside the frame at byte {offset}")
    stored = data[head_end : head_end + length]
    if zlib.crc32(stored) != checksum:
        raise TraceError(f"{place}: wrong checksum of the frame at byte {offset}")
    try:
        if codec == ZLIB:
            body = _inflate(stored)
        elif codec == ZSTD:
            body = codecs.decompress(codecs.ZSTD, stored, limit=FRAME_BYTES_MAX)
        elif codec == RAW:
            body = bytes(stored)
        else:
            raise TraceError(f"{place}: unknown codec {codec} of the frame at byte {offset}")
    except (zlib.error, codecs.CorruptPayload) as error:  # the checksum leaves the head out
        raise TraceError(f"{place}: damaged frame at byte {offset}: {error}") from None
    return Frame(kind, offset, FRAME_HEAD.size + length, body)


def _inflate(stored: Any) -> bytes:
    """Decompress; raises ``zlib.error`` for what is damaged or too large."""
    stream = zlib.decompressobj()
    body = stream.decompress(stored, FRAME_BYTES_MAX)
    if not stream.eof:
        is_too_large = len(body) == FRAME_BYTES_MAX
        raise zlib.error(
            f"it has more than {FRAME_BYTES_MAX} bytes" if is_too_large else "it is cut off"
        )
    return body


def pack_header(header: Mapping[str, Any]) -> bytes:
    try:
        return msgpack.packb(dict(header))  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"the header of a trace holds plain values only: {error}") from None


def unpack_frame_body(frame: Frame, place: str) -> Any:
    try:
        if len(frame.body) > _COUNTED_BYTES:
            return unpack_counted(frame.body, CONTAINERS_MAX)
        return unpack(frame.body)
    except ValueError as error:
        raise TraceError(
            f"{place}: the frame at byte {frame.offset} is not valid msgpack: {error}"
        ) from None
