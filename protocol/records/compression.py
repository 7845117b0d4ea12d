"""The compression codecs of record batches, in the framings that Kafka's Java client uses.

cramjam compresses and decompresses; this module handles the framings: snappy in xerial blocks, lz4
in frames of independent 64 KB blocks without checksums (docs/kafka/log.md#batches).

A few bytes can expand to a thousand times as many. Data is therefore decompressed only if the
result is known to stay within a limit, or else piecemeal or into a buffer of that size.
"""

from __future__ import annotations

import struct
import zlib
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
# flags: version 1, independent blocks; blocks of at most 64 KB; the checksum of the header
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK_SIZE = 64 * 1024
_LZ4_UNCOMPRESSED_FLAG = 0x80000000
_LZ4_BLOCK_MAX_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}

DECOMPRESSED_BYTES_MAX = 100 * 1024 * 1024
"""Maximum decompressed size of a batch; uncompressed, it could not exceed a request's limit."""
_GZIP_RATIO_MAX = 1032
"""Maximum compression ratio of deflate, which encodes at most 258 bytes in two bits."""
_GZIP_INPUT_BYTES = 16384
_STREAM_CHUNK_BYTES = 1 << 20
_GZIP_WINDOW_BITS = 31
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
"""End of a skippable frame's magic number, after a first byte of 0x50 to 0x5f."""
_ZSTD_BLOCK_MAX_SIZE = 128 * 1024
_ZSTD_RAW, _ZSTD_RLE = 0, 1
_ZSTD_DICTIONARY_ID_SIZES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_SIZES = (0, 2, 4, 8)

Readable = bytes | bytearray | memoryview


class CorruptPayload(ValueError):
    """A codec cannot decompress the data."""


class PayloadTooLarge(CorruptPayload):
    """Compressed data would expand to more bytes, or to more messages, than allowed."""

    def __init__(self, codec: int, limit: int, unit: str = "bytes") -> None:
        super().__init__(f"{CODEC_NAMES[codec]} data of more than {limit} {unit} when decompressed")


def compress(codec: int, data: Readable) -> bytes:
    """Compress as Kafka's Java producer does; raises ``ValueError`` for an unknown codec."""
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


def decompress(
    codec: int, data: Readable, magic: int = 2, limit: int = DECOMPRESSED_BYTES_MAX
) -> bytes:
    """Decompress the payload of a batch (or of a wrapper message of ``magic`` 0 or 1).

    Raises ``PayloadTooLarge`` if the result would have more than ``limit`` bytes, and
    ``CorruptPayload`` if the codec cannot read the data or does not exist.
    """
    try:
        if codec == NONE:
            return bytes(data)
        if codec == GZIP:
            return _decompress_gzip(data, limit)
        if codec == SNAPPY:
            return _decompress_snappy(bytes(data), limit)
        if codec == LZ4:
            # Producers of magic 0 wrote a wrong header checksum, which is not checked here.
            if magic == 0:
                return _decompress_lz4_unchecked(bytes(data), limit)
            if _lz4_size_max(data) > limit:
                return _decompress_into(LZ4, data, limit)
            return bytes(cramjam.lz4.decompress(data))
        if codec == ZSTD:
            if _zstd_size_max(data) > limit:
                return _decompress_into(ZSTD, data, limit)
            return bytes(cramjam.zstd.decompress(data))
    except (
        cramjam.DecompressionError,
        struct.error,
        zlib.error,
        IndexError,
        KeyError,
        OverflowError,
    ) as e:
        raise CorruptPayload(f"cannot decompress {CODEC_NAMES[codec]} data: {e}") from None
    raise CorruptPayload(f"unknown compression codec {codec}")


def _decompress_gzip(data: Readable, limit: int) -> bytes:
    if len(data) * _GZIP_RATIO_MAX <= limit:
        return bytes(cramjam.gzip.decompress(data))
    out = bytearray()
    view = memoryview(data)
    position = 0
    while position < len(view):  # for each member of the gzip data
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        while not member.eof:
            # zlib copies the unconsumed input each time, so the input is kept short.
            compressed = view[position : position + _GZIP_INPUT_BYTES]
            chunk = member.decompress(compressed, _STREAM_CHUNK_BYTES)
            consumed = len(compressed) - len(member.unconsumed_tail) - len(member.unused_data)
            position += consumed
            out += chunk
            if len(out) > limit:
                raise PayloadTooLarge(GZIP, limit)
            if not chunk and not consumed and not member.eof:
                raise CorruptPayload("cannot decompress gzip data: it is truncated")
    return bytes(out)


def _decompress_into(codec: int, data: Readable, limit: int) -> bytes:
    """Decompress data that might exceed the limit, into a buffer of ``limit`` bytes."""
    frames = cramjam.lz4 if codec == LZ4 else cramjam.zstd
    buffer = bytearray(limit)
    try:
        written = frames.decompress_into(data, buffer)
    except cramjam.DecompressionError as error:
        if "whole buffer" in str(error):
            raise PayloadTooLarge(codec, limit) from None
        raise
    return bytes(memoryview(buffer)[:written])


def _lz4_size_max(data: Readable) -> int:
    """Return the maximum decompressed size of an lz4 frame's blocks; 0 if it is not a frame."""
    if bytes(data[:4]) != _LZ4_MAGIC or len(data) < 7:
        return 0
    flags = data[4]
    block_max_size = _LZ4_BLOCK_MAX_SIZES.get((data[5] >> 4) & 7, 0)
    position = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum_size = 4 if flags & 0x10 else 0
    total = 0
    while position + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, position)
        if size == 0:
            break
        size &= ~_LZ4_UNCOMPRESSED_FLAG
        total += block_max_size
        position += 4 + size + checksum_size
    return total


def _zstd_size_max(data: Readable) -> int:
    """Return the maximum decompressed size of zstd frames, from the headers of their blocks.

    Raises ``IndexError`` if the data is truncated.
    """
    position = total = 0
    while position < len(data):
        magic = bytes(data[position : position + 4])
        if magic[1:] == _ZSTD_SKIPPABLE and magic[0] & 0xF0 == 0x50:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != _ZSTD_MAGIC:
            return total  # the codec will raise the error
        descriptor = data[position + 4]
        is_single_segment = descriptor & 0x20
        position += 5 + (0 if is_single_segment else 1)
        position += _ZSTD_DICTIONARY_ID_SIZES[descriptor & 3]
        position += _ZSTD_CONTENT_SIZE_SIZES[descriptor >> 6] or (1 if is_single_segment else 0)
        is_last = False
        while not is_last:
            header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            total += size if kind in (_ZSTD_RAW, _ZSTD_RLE) else _ZSTD_BLOCK_MAX_SIZE
            position += 3 + (1 if kind == _ZSTD_RLE else size)
        position += 4 if descriptor & 0x04 else 0
    return total


def _compress_xerial(data: Readable) -> bytes:
    view = memoryview(data)
    parts: list[Any] = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):  # some clients write a single raw block
        return _decompress_snappy_block(data, limit, limit)
    if len(data) < len(_XERIAL_HEADER):
        raise CorruptPayload("cannot decompress snappy data: its header is truncated")
    parts = []
    remaining = limit
    position = len(_XERIAL_HEADER)
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise CorruptPayload("cannot decompress snappy data: a block exceeds the payload")
        part = _decompress_snappy_block(data[position : position + size], remaining, limit)
        parts.append(part)
        remaining -= len(part)
        position += size
    return b"".join(parts)


def _decompress_snappy_block(block: bytes, remaining: int, limit: int) -> bytes:
    """Decompress one raw block, which begins with its decompressed length."""
    if cramjam.snappy.decompress_raw_len(block) > remaining:
        raise PayloadTooLarge(SNAPPY, limit)
    return bytes(cramjam.snappy.decompress_raw(block))


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
            parts.append((len(block) | _LZ4_UNCOMPRESSED_FLAG).to_bytes(4, "little"))
            parts.append(block)
    parts.append(b"\0\0\0\0")
    return b"".join(parts)


def _decompress_lz4_unchecked(data: bytes, limit: int) -> bytes:
    if data[:4] != _LZ4_MAGIC:
        raise CorruptPayload("cannot decompress lz4 data: not an LZ4 frame")
    flags = data[4]
    block_max_size = _LZ4_BLOCK_MAX_SIZES[(data[5] >> 4) & 7]
    position = 7 + (8 if flags & 0x08 else 0)
    parts: list[bytes] = []
    remaining = limit
    buffer = bytearray(block_max_size)
    while True:
        (size,) = struct.unpack_from("<I", data, position)
        position += 4
        if size == 0:
            return b"".join(parts)
        is_uncompressed = size & _LZ4_UNCOMPRESSED_FLAG
        size &= ~_LZ4_UNCOMPRESSED_FLAG
        block = data[position : position + size]
        if len(block) != size:
            raise CorruptPayload("cannot decompress lz4 data: a block exceeds the payload")
        if is_uncompressed:
            parts.append(block)
        else:
            written = cramjam.lz4.decompress_block_into(block, buffer, output_len=block_max_size)
            parts.append(bytes(buffer[:written]))
        remaining -= len(parts[-1])
        if remaining < 0:
            raise PayloadTooLarge(LZ4, limit)
        position += size + (4 if flags & 0x10 else 0)
