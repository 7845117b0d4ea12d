"""The ``.fktrace`` file: frames, header, trailer.

    file    := magic | header frame | (chunk frame | snapshot frame)* | index frame | trailer
    frame   := kind:u8 | codec:u8 | length:u32 LE | crc32:u32 LE | body
    trailer := index offset:u64 LE | fingerprint:32 bytes | magic

``length`` and ``crc32`` are those of the body as stored. Each frame is complete in itself, so a
file whose writer died is readable up to its last whole frame.
"""

from __future__ import annotations

import hashlib
import platform
import struct
import sys
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import cramjam
import msgpack

from ..protocol.errors import UsageError
from .events import EVENT_FIELDS, TraceError
from .packing import unpack

MAGIC = b"FKTRACE1"
FORMAT = 1
HEADER_FRAME, CHUNK_FRAME, SNAPSHOT_FRAME, INDEX_FRAME = 1, 2, 3, 4
RAW, ZLIB, ZSTD = 0, 1, 2
CODECS = {"raw": RAW, "zlib": ZLIB, "zstd": ZSTD}
FRAME_HEAD = struct.Struct("<BBII")
TRAILER = struct.Struct(f"<Q32s{len(MAGIC)}s")
CHUNK_EVENTS = 1000
CHUNK_BYTES = 256 * 1024
VIRTUAL_EPOCH_MS = 1577836800000
"""What a virtual run calls the present when it begins, unless told otherwise: 2020-01-01 UTC."""


def encode_frame(kind: int, body: bytes, codec: int) -> bytes:
    """A frame with its body compressed."""
    if codec == ZLIB:
        body = zlib.compress(body, 1)
    elif codec == ZSTD:
        body = bytes(cramjam.zstd.compress(body, 3))
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
            body = zlib.decompress(stored)
        elif codec == ZSTD:
            body = bytes(cramjam.zstd.decompress(stored))
        elif codec == RAW:
            body = bytes(stored)
        else:
            raise TraceError(f"{place}: unknown codec {codec} of the frame at byte {offset}")
    except (zlib.error, cramjam.DecompressionError) as error:  # the checksum leaves the head out
        raise TraceError(f"{place}: damaged frame at byte {offset}: {error}") from None
    return Frame(kind, offset, FRAME_HEAD.size + length, body)


def build_header(
    *,
    mode: str = "sim",
    seed: int | None = None,
    scenario: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    kafka_version: str = "",
    fault_plan: list[Any] | None = None,
    virtual_epoch: int = VIRTUAL_EPOCH_MS,
    reproduce: str = "",
    fakekafka_version: str = "",
    meta: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The header of a trace: all that running it again needs, and nothing of this machine's clock.

    ``mode`` is ``sim``, ``live`` or ``threaded``; ``scenario`` the text of the scenario file;
    ``parameters`` what was set over it; ``virtual_epoch`` milliseconds since the Unix epoch;
    ``reproduce`` a command line. Wall time, host and user belong into ``meta``.
    """
    settings = {str(name): config[name] for name in sorted(config)} if config else {}
    return {
        "format": FORMAT,
        "fakekafka": fakekafka_version,
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "kafka_version": kafka_version,
        "mode": mode,
        "seed": seed,
        "scenario": scenario,
        "parameters": dict(parameters or {}),
        "config": settings,
        "config_hash": hashlib.blake2b(msgpack.packb(settings), digest_size=8).hexdigest(),
        "fault_plan": fault_plan or [],
        "virtual_epoch": virtual_epoch,
        "schema": {"event": list(EVENT_FIELDS), "types": "with the chunk that first uses them"},
        "reproduce": reproduce,
        "meta": dict(meta or {}),
    }


def pack_header(header: Mapping[str, Any]) -> bytes:
    try:
        return msgpack.packb(dict(header))  # type: ignore[no-any-return]
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"the header of a trace holds plain values only: {error}") from None


def unpack_frame_body(frame: Frame, place: str) -> Any:
    try:
        return unpack(frame.body)
    except ValueError as error:
        raise TraceError(
            f"{place}: the frame at byte {frame.offset} is no msgpack: {error}"
        ) from None
