"""The compression codecs of record batches, in the framings Kafka's Java client writes and reads.

cramjam does the work; this module knows the framings: snappy travels in xerial blocks, lz4 in
frames of independent 64 KB blocks without checksums (data_plane 12.1).
"""

from __future__ import annotations

import struct
from typing import Any

import cramjam

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)

CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_IDS = {
    "none": NONE,
    "uncompressed": NONE,
    "gzip": GZIP,
    "snappy": SNAPPY,
    "lz4": LZ4,
    "zstd": ZSTD,
}

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
# version 1, independent blocks, nothing else; blocks of at most 64 KB; the header's checksum
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK_SIZE = 64 * 1024
_LZ4_STORED = 0x80000000
_LZ4_BLOCK_MAX_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}

Readable = bytes | bytearray | memoryview


class CorruptPayload(ValueError):
    """Compressed data that its codec cannot read."""


def compress(codec: int, data: Readable) -> bytes:
    """Compress as Kafka's Java producer would; the codec must be one of the five."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        return _compress_lz4(data)
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3))
    raise ValueError(f"unknown compression codec {codec}")


def decompress(codec: int, data: Readable, magic: int = 2) -> bytes:
    """Decompress the payload of a batch (or of a wrapper message of ``magic`` 0 or 1).

    Raises ``CorruptPayload`` when the codec cannot read the data or does not exist.
    """
    try:
        if codec == NONE:
            return bytes(data)
        if codec == GZIP:
            return bytes(cramjam.gzip.decompress(data))
        if codec == SNAPPY:
            return _decompress_snappy(bytes(data))
        if codec == LZ4:
            # Producers of magic 0 wrote a wrong header checksum: read those frames by hand.
            if magic == 0:
                return _decompress_lz4_unchecked(bytes(data))
            return bytes(cramjam.lz4.decompress(data))
        if codec == ZSTD:
            return bytes(cramjam.zstd.decompress(data))
    except (cramjam.DecompressionError, struct.error, IndexError, KeyError, OverflowError) as e:
        raise CorruptPayload(f"cannot decompress {CODEC_NAMES[codec]} data: {e}") from None
    raise CorruptPayload(f"unknown compression codec {codec}")


def _compress_xerial(data: Readable) -> bytes:
    view = memoryview(data)
    parts: list[Any] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):  # some clients write one raw block
        return bytes(cramjam.snappy.decompress_raw(data))
    parts = []
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise CorruptPayload("cannot decompress snappy data: a block exceeds the payload")
        parts.append(bytes(cramjam.snappy.decompress_raw(data[position : position + size])))
        position += size
    return b"".join(parts)


def _compress_lz4(data: Readable) -> bytes:
    view = memoryview(data)
    parts: list[Any] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK_SIZE):
        block = view[start : start + _LZ4_BLOCK_SIZE]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts.append(len(packed).to_bytes(4, "little"))
            parts.append(packed)
        else:
            parts.append((len(block) | _LZ4_STORED).to_bytes(4, "little"))
            parts.append(block)
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def _decompress_lz4_unchecked(data: bytes) -> bytes:
    if data[:4] != _LZ4_MAGIC:
        raise CorruptPayload("cannot decompress lz4 data: not an LZ4 frame")
    flags = data[4]
    block_max_size = _LZ4_BLOCK_MAX_SIZES[(data[5] >> 4) & 7]
    position = 7 + (8 if flags & 0x08 else 0)
    parts: list[bytes] = []
    while True:
        (size,) = struct.unpack_from("<I", data, position)
        position += 4
        if size == 0:
            return b"".join(parts)
        stored = size & _LZ4_STORED
        size &= ~_LZ4_STORED
        block = data[position : position + size]
        if len(block) != size:
            raise CorruptPayload("cannot decompress lz4 data: a block exceeds the payload")
        if stored:
            parts.append(block)
        else:
            room = bytearray(block_max_size)
            written = cramjam.lz4.decompress_block_into(block, room, output_len=block_max_size)
            parts.append(bytes(room[:written]))
        position += size + (4 if flags & 0x10 else 0)
