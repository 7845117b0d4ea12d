"""The ``.fktrace`` file: frames, header, trailer.

    file    := magic | header frame | (chunk frame | snapshot frame)* | index frame | trailer
    frame   := kind:u8 | codec:u8 | length:u32 LE | crc32:u32 LE | body
    trailer := index offset:u64 LE | fingerprint:32 bytes | crc32 of both:u32 LE | end magic

A file of an earlier release ends without a checksum: ``index offset | fingerprint | magic``.
``length`` and ``crc32`` refer to the body as stored. Each frame is self-contained, so a file whose
writer died is readable up to its last complete frame.
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
END_MAGIC = b"FKTREND1"
TRAILER = struct.Struct(f"<Q32sI{len(END_MAGIC)}s")
_TRAILED = struct.Struct("<Q32s")
OLD_TRAILER = struct.Struct(f"<Q32s{len(MAGIC)}s")
CHUNK_EVENTS = 1000
CHUNK_BYTES = 256 * 1024
_ZSTD_LEVEL = 1
"""Compression level. A run waits for compression, and the next level saves a tenth of the bytes but
takes twice the time."""
FRAME_BYTES_MAX = 256 * 1024 * 1024
"""Maximum decompressed size of a frame's body. The writer's frames are far smaller."""
GROWTH_MAX = 100
"""Maximum ratio of decompressed to stored bytes; a body beyond it is stored uncompressed. The
usual ratio is ten."""
_GROWING_BYTES = 1024 * 1024
"""Size up to which a body may exceed that ratio, as earlier releases compressed every body."""

CONTAINERS_MAX = 3_000_000
_CONTAINERS_FLOOR, _CONTAINERS_A_BYTE = 10_000, 16
"""Limits of the lists and maps in a frame, as an empty one takes one byte in the file but about
sixty in memory. A run of twenty topics with a hundred idle partitions each has five lists and maps
per stored byte, a usual run has a third of one."""


def encode_frame(kind: int, body: bytes, codec: int) -> bytes:
    """Return a frame; its body is compressed unless readers would reject it as too highly so."""
    packed = body
    if codec == ZLIB:
        packed = zlib.compress(body, 1)
    elif codec == ZSTD:
        packed = bytes(cramjam.zstd.compress(body, level=_ZSTD_LEVEL))
    if len(body) > GROWTH_MAX * len(packed):
        codec = RAW
    else:
        body = packed
    return FRAME_HEAD.pack(kind, codec, len(body), zlib.crc32(body)) + body


class Frame(NamedTuple):
    """A frame found in a file; ``offset`` and ``length`` cover head and body."""

    kind: int
    offset: int
    length: int
    body: bytes


def decode_frame(data: Any, offset: int, place: str) -> Frame:
    """Return the frame at an offset of a buffer; raise ``TraceError`` if it is cut or damaged."""
    head_end = offset + FRAME_HEAD.size
    if head_end > len(data):
        raise TraceError(f"{place}: cut off inside a frame head at byte {offset}")
    kind, codec, length, checksum = FRAME_HEAD.unpack_from(data, offset)
    if head_end + length > len(data):
        raise TraceError(f"{place}: cut off inside the frame at byte {offset}")
    stored = data[head_end : head_end + length]
    if zlib.crc32(stored) != checksum:
        raise TraceError(f"{place}: wrong checksum of the frame at byte {offset}")
    limit = min(FRAME_BYTES_MAX, max(_GROWING_BYTES, GROWTH_MAX * length))
    try:
        if codec == ZLIB:
            body = _inflate(stored, limit)
        elif codec == ZSTD:
            body = codecs.decompress(codecs.ZSTD, stored, limit=limit)
        elif codec == RAW:
            body = bytes(stored)
        else:
            raise TraceError(f"{place}: unknown codec {codec} of the frame at byte {offset}")
    except (zlib.error, codecs.CorruptPayload) as error:  # the checksum does not cover the head
        raise TraceError(f"{place}: damaged frame at byte {offset}: {error}") from None
    return Frame(kind, offset, FRAME_HEAD.size + length, body)


def _inflate(stored: Any, limit: int) -> bytes:
    """Decompress a body; raise ``zlib.error`` if it is damaged or too large."""
    stream = zlib.decompressobj()
    body = stream.decompress(stored, limit)
    if not stream.eof:
        is_too_large = len(body) == limit
        raise zlib.error(f"it has more than {limit} bytes" if is_too_large else "it is cut off")
    return body


def pack_trailer(index_offset: int, digest: bytes) -> bytes:
    """Return the trailer of a file."""
    checksum = zlib.crc32(_TRAILED.pack(index_offset, digest))
    return TRAILER.pack(index_offset, digest, checksum, END_MAGIC)


def read_trailer(data: Any, place: str) -> tuple[int, bytes] | None:
    """Return the offset of the index and the fingerprint; None if the file has no trailer.

    Raises ``TraceError`` if the trailer is damaged.
    """
    if len(data) >= len(MAGIC) + TRAILER.size:
        offset, digest, checksum, magic = TRAILER.unpack_from(data, len(data) - TRAILER.size)
        if magic == END_MAGIC:
            if zlib.crc32(_TRAILED.pack(offset, digest)) != checksum:
                raise TraceError(f"{place}: wrong checksum of the trailer")
            return offset, digest
    if len(data) >= len(MAGIC) + OLD_TRAILER.size:
        offset, digest, magic = OLD_TRAILER.unpack_from(data, len(data) - OLD_TRAILER.size)
        if magic == MAGIC:
            return offset, digest
    return None


def pack_header(header: Mapping[str, Any]) -> bytes:
    try:
        return msgpack.packb(dict(header))  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"the header of a trace holds plain values only: {error}") from None


def unpack_frame_body(frame: Frame, place: str) -> Any:
    """Unpack the body of a frame.

    Raises ``TraceError`` if it is not MessagePack, or has too many lists and maps.
    """
    stored = frame.length - FRAME_HEAD.size
    most = min(CONTAINERS_MAX, _CONTAINERS_FLOOR + _CONTAINERS_A_BYTE * stored)
    try:
        # Each list or map takes at least a byte, so a body of so few bytes need not be counted.
        return unpack(frame.body) if len(frame.body) <= most else unpack_counted(frame.body, most)
    except ValueError as error:
        raise TraceError(
            f"{place}: the frame at byte {frame.offset} cannot be unpacked: {error}"
        ) from None
