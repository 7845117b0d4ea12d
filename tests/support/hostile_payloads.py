"""Deceptive record payloads: decompression bombs, millions of tiny records, broken batches."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable, Iterator

from crc32c import crc32c
from fakekafka.protocol.records import compression as codecs
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import CRC_START, HEADER, HEADER_SIZE, Record, write_varint
from fakekafka.protocol.records.legacy import build_message
from fakekafka.tests.support.wire_trees import frame

MIB = 1024 * 1024
_TINY = b"\x0c\0\0\0\1\1\0"
"""A record without key and value."""
_OTHER = b"\x0e\0\2\0\1\2x\0"


def batch(body: bytes, count: int, codec: int = codecs.NONE) -> bytes:
    """Return a batch with any body and a valid checksum."""
    data = bytearray(
        HEADER.pack(
            0, HEADER_SIZE - 12 + len(body), 0, 2, 0, codec, count - 1, 0, 0, -1, -1, -1, count
        )
    )
    data += body
    struct.pack_into(">I", data, 17, crc32c(bytes(data[CRC_START:])))
    return bytes(data)


def record_with_headers(count: int) -> bytes:
    """Return a record with only headers, whose names and values are empty."""
    body = bytearray(b"\0\0\0\1\1")
    write_varint(body, count)
    body += b"\0\1" * count
    record = bytearray()
    write_varint(record, len(body))
    return bytes(record + body)


def produce(topic: str, records: list[bytes], version: int = 3) -> bytes:
    """Return a produce request with one payload per partition, from 0 on."""
    partitions = [{"index": number, "records": one} for number, one in enumerate(records)]
    topics = [{"name": topic, "partitionData": partitions}]
    return frame(0, version, {"acks": 1, "timeoutMs": 1000, "topicData": topics})


class Payloads:
    """Draws payloads by seed; heavy ones are made only once."""

    def __init__(self, draw: random.Random, topics: tuple[str, ...]) -> None:
        self._draw = draw
        self._topics = topics
        self._heavy = tuple(dict(_heavy()).values())
        record = Record(0, 1, b"k", b"value" * 20, (("h", b"v"),))
        self._plain = [
            build_batch([record._replace(offset=at) for at in range(5)], compression=codec)
            for codec in range(5)
        ]

    def heavy(self) -> bytes:
        """Return a payload that takes far more memory or time than its size suggests."""
        draw = self._draw
        version, records = draw.choice(self._heavy)
        count = draw.choice((1, 1, 4))
        return produce(draw.choice(self._topics), [records] * count, version)

    def broken(self) -> bytes:
        """Return a batch with changed bytes and a valid or wrong checksum."""
        draw = self._draw
        data = bytearray(draw.choice(self._plain))
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            del data[draw.randrange(1, len(data)) :]
        if draw.random() < 0.7 and len(data) > CRC_START:
            struct.pack_into(">I", data, 17, crc32c(bytes(data[CRC_START:])))
        return produce(draw.choice(self._topics), [bytes(data)], draw.choice((2, 3, 7)))


def _heavy() -> Iterator[tuple[str, tuple[int, bytes]]]:
    zeros = bytes(50 * MIB)
    member = gzip.compress(zeros, 9, mtime=0)
    yield "900 MB in gzip", (3, batch(member * 18, 1, codecs.GZIP))
    yield "empty members", (3, batch(gzip.compress(b"", mtime=0) * 50_000, 1, codecs.GZIP))
    pack: Callable[[int, bytes], bytes] = codecs.compress
    for codec in (codecs.SNAPPY, codecs.LZ4, codecs.ZSTD):
        yield f"zeros in codec {codec}", (7, batch(pack(codec, zeros[: 20 * MIB]), 1, codec))
    many = 32 * MIB // len(_TINY)
    yield "32 MiB of equal records", (3, batch(pack(codecs.GZIP, _TINY * many), many, codecs.GZIP))
    both = 32 * MIB // len(_TINY + _OTHER)
    body = (_TINY + _OTHER) * both
    yield "32 MiB of records", (3, batch(pack(codecs.GZIP, body), 2 * both, codecs.GZIP))
    body = (_TINY + _OTHER) * 70_000
    yield "140,000 records", (3, batch(pack(codecs.GZIP, body), 140_000, codecs.GZIP))
    yield "1 MB of records", (3, batch((_TINY + _OTHER) * 69_000, 138_000))
    headers = record_with_headers(110)
    many = 32 * MIB // len(headers)
    yield "many headers", (3, batch(pack(codecs.GZIP, headers * many), many, codecs.GZIP))
    yield "allowed headers", (3, batch(pack(codecs.GZIP, headers * 1361), 1361, codecs.GZIP))
    inner = b"".join(build_message(at, 1, None, b"", 1, 0) for at in range(100)) * 9000
    wrapped = build_message(0, 1, None, pack(codecs.GZIP, inner), 1, codecs.GZIP)
    yield "old messages", (2, wrapped)
    inner = b"".join(build_message(at, 1, None, b"", 1, 0) for at in range(100)) * 1400
    wrapped = build_message(0, 1, None, pack(codecs.GZIP, inner), 1, codecs.GZIP)
    yield "140,000 old messages", (2, wrapped)
