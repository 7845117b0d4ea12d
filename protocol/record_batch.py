"""Record batches of message format v2: read, build, and the view of one stored batch.

A log keeps ``RecordBatch`` objects and hands the very same ones to followers and consumers; the
records inside stay opaque bytes until somebody asks for them (data_plane 12.1, Kafka's
``DefaultRecordBatch``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crc32c import crc32c

from . import compression as codecs

MAGIC = 2
HEADER_SIZE = 61
LENGTH_OVERHEAD = 12
"""Bytes before those that the batch length field counts."""
MINIMUM_LENGTH = HEADER_SIZE - LENGTH_OVERHEAD
CRC_START = 21
"""The checksum covers everything from the attributes on."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""baseOffset, length, leaderEpoch, magic, crc, attributes, lastOffsetDelta, baseTimestamp,
maxTimestamp, producerId, producerEpoch, baseSequence, recordCount."""
PREFIX = struct.Struct(">qii")
"""baseOffset, length, leaderEpoch: what a leader rewrites; not under the checksum."""
_LENGTH = struct.Struct(">qi")
_BODY_HEADER = struct.Struct(">hiqqqhii")
_EPOCH = struct.Struct(">i")
_ATTRIBUTES = struct.Struct(">h")
_LONG = struct.Struct(">q")
_INT = struct.Struct(">i")
_CRC = struct.Struct(">I")
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_VALUE = struct.Struct(">hi")

CODEC_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

CREATE_TIME = 0
LOG_APPEND_TIME = 1
NO_TIMESTAMP = -1
NO_SEQUENCE = -1
SEQUENCE_MAX = 2147483647
ABORT = 0
COMMIT = 1

Readable = bytes | bytearray | memoryview


class CorruptBatch(ValueError):
    """Bytes that are no batch: a size that does not fit, a wrong checksum, an unknown magic."""


class MalformedRecords(ValueError):
    """A batch whose checksum holds but whose records cannot be read."""


class Record(NamedTuple):
    """One record as its reader sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class ControlMarker(NamedTuple):
    """What the one record of a control batch says (data_plane 12.1)."""

    is_commit: bool
    coordinator_epoch: int


class RecordBatch:
    """One batch as stored, shared by every replica that holds it; never changed."""

    __slots__ = ("base_offset", "data", "last_offset")

    def __init__(self, data: bytes, base_offset: int, last_offset: int) -> None:
        self.data = data
        self.base_offset = base_offset
        self.last_offset = last_offset
        """Kept by compaction even when the last records vanish."""

    @classmethod
    def of(cls, data: bytes) -> RecordBatch:
        """The view of exactly one whole batch; its header is trusted."""
        (base_offset,) = _LONG.unpack_from(data)
        return cls(data, base_offset, base_offset + _INT.unpack_from(data, 23)[0])

    @property
    def size_in_bytes(self) -> int:
        return len(self.data)

    @property
    def partition_leader_epoch(self) -> int:
        return _EPOCH.unpack_from(self.data, 12)[0]  # type: ignore[no-any-return]

    @property
    def magic(self) -> int:
        return self.data[16]

    @property
    def crc(self) -> int:
        return _CRC.unpack_from(self.data, 17)[0]  # type: ignore[no-any-return]

    @property
    def attributes(self) -> int:
        return _ATTRIBUTES.unpack_from(self.data, 21)[0]  # type: ignore[no-any-return]

    @property
    def base_timestamp(self) -> int:
        return _LONG.unpack_from(self.data, 27)[0]  # type: ignore[no-any-return]

    @property
    def max_timestamp(self) -> int:
        return _LONG.unpack_from(self.data, 35)[0]  # type: ignore[no-any-return]

    @property
    def producer_id(self) -> int:
        return _LONG.unpack_from(self.data, 43)[0]  # type: ignore[no-any-return]

    @property
    def producer_epoch(self) -> int:
        return _ATTRIBUTES.unpack_from(self.data, 51)[0]  # type: ignore[no-any-return]

    @property
    def base_sequence(self) -> int:
        return _INT.unpack_from(self.data, 53)[0]  # type: ignore[no-any-return]

    @property
    def last_sequence(self) -> int:
        """Wraps from 2147483647 to 0; -1 without a sequence."""
        first = self.base_sequence
        if first == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(first, self.last_offset - self.base_offset)

    @property
    def record_count(self) -> int:
        return _INT.unpack_from(self.data, 57)[0]  # type: ignore[no-any-return]

    @property
    def compression(self) -> int:
        """Codec id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.data[22] & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.data[22] & TIMESTAMP_TYPE_BIT else CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.data[22] & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.data[22] & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the tombstones or the marker inside; None if not set yet."""
        return self.base_timestamp if self.data[22] & DELETE_HORIZON_BIT else None

    def is_intact(self) -> bool:
        """Whether size and checksum of the bytes are right."""
        data = self.data
        return (
            len(data) >= HEADER_SIZE
            and _INT.unpack_from(data, 8)[0] == len(data) - LENGTH_OVERHEAD
            and crc32c(memoryview(data)[CRC_START:]) == self.crc
        )

    def records(self) -> list[Record]:
        """Decode the records, decompressing where needed.

        Raises ``MalformedRecords`` when the bytes under the checksum are not records.
        """
        data = self.data
        codec = data[22] & CODEC_MASK
        if codec:
            try:
                body = codecs.decompress(codec, memoryview(data)[HEADER_SIZE:])
            except codecs.CorruptPayload as error:
                raise MalformedRecords(str(error)) from None
            position = 0
        else:
            body, position = data, HEADER_SIZE
        append_time = self.max_timestamp if data[22] & TIMESTAMP_TYPE_BIT else None
        return decode_records(
            body, position, self.record_count, self.base_offset, self.base_timestamp, append_time
        )

    def control_marker(self) -> ControlMarker | None:
        """The transaction marker of a control batch; None if it is of another kind."""
        records = self.records()
        if not records or records[0].key is None or len(records[0].key) < 4:
            return None
        kind = _CONTROL_KEY.unpack_from(records[0].key)[1]
        if kind not in (ABORT, COMMIT):
            return None
        value = records[0].value or b""
        epoch = _CONTROL_VALUE.unpack_from(value)[1] if len(value) >= 6 else -1
        return ControlMarker(kind == COMMIT, epoch)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RecordBatch) and self.data == other.data

    def __hash__(self) -> int:
        return hash(self.data)

    def __reduce__(self) -> tuple[object, ...]:
        return (RecordBatch, (self.data, self.base_offset, self.last_offset))

    def __repr__(self) -> str:
        return (
            f"RecordBatch({self.base_offset}..{self.last_offset}, "
            f"epoch {self.partition_leader_epoch}, {len(self.data)} bytes)"
        )


def add_sequence(sequence: int, increment: int) -> int:
    """``sequence + increment`` with Kafka's wrap from 2147483647 to 0."""
    total = sequence + increment
    return total if total <= SEQUENCE_MAX else total - SEQUENCE_MAX - 1


# -- reading ------------------------------------------------------------------------------------


def parse_batches(records: Readable | None, verify: bool = False) -> list[RecordBatch]:
    """Views of the whole v2 batches in ``records``; a partial batch at the end is ignored.

    ``verify`` also checks every checksum. Raises ``CorruptBatch``.
    """
    if not records:
        return []
    total = len(records)
    found = []
    position = 0
    while total - position >= LENGTH_OVERHEAD:
        _, length = _LENGTH.unpack_from(records, position)
        if length < MINIMUM_LENGTH:
            raise CorruptBatch(f"batch length {length} is below the minimum of {MINIMUM_LENGTH}")
        end = position + LENGTH_OVERHEAD + length
        if end > total:
            break
        if records[position + 16] != MAGIC:
            raise CorruptBatch(f"magic {records[position + 16]} is not that of a v2 batch")
        if position == 0 and end == total and isinstance(records, bytes):
            batch = RecordBatch.of(records)
        else:
            batch = RecordBatch.of(bytes(records[position:end]))
        if verify and not batch.is_intact():
            raise CorruptBatch(f"the checksum of the batch at byte {position} is wrong")
        found.append(batch)
        position = end
    return found


def _read_varint(data: Readable, position: int) -> tuple[int, int]:
    shift = 0
    value = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise MalformedRecords("a varint is longer than ten bytes")


def decode_records(
    body: Readable,
    position: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_time: int | None = None,
) -> list[Record]:
    """Decode ``count`` records from ``body`` (already decompressed) at ``position``.

    Raises ``MalformedRecords`` unless they fill the body exactly.
    """
    found = []
    try:
        for _ in range(count):
            record, position = _decode_record(
                body, position, base_offset, base_timestamp, append_time
            )
            found.append(record)
    except (IndexError, UnicodeDecodeError):
        raise MalformedRecords(f"record {len(found)} exceeds the batch") from None
    if position != len(body):
        raise MalformedRecords(f"{len(body) - position} bytes follow the last of {count} records")
    return found


def _decode_record(
    body: Readable, position: int, base_offset: int, base_timestamp: int, append_time: int | None
) -> tuple[Record, int]:
    """One record and the position after it. Varints of one byte are read in place."""
    byte = body[position]
    if byte < 0x80:
        size, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        size, position = _read_varint(body, position)
    end = position + size
    if size < 0 or end > len(body):
        raise IndexError
    position += 1  # attributes, unused
    byte = body[position]
    if byte < 0x80:
        timestamp, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        timestamp, position = _read_varint(body, position)
    byte = body[position]
    if byte < 0x80:
        delta, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        delta, position = _read_varint(body, position)
    key, position = _read_bytes(body, position, end)
    value, position = _read_bytes(body, position, end)
    byte = body[position]
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if byte == 0:
        position += 1
    else:
        headers, position = _read_headers(body, position, end)
    if position != end:
        raise MalformedRecords(f"a record of {size} bytes ends {end - position} bytes early")
    return Record(
        base_offset + delta,
        base_timestamp + timestamp if append_time is None else append_time,
        key,
        value,
        headers,
    ), end


def _read_bytes(body: Readable, position: int, end: int) -> tuple[bytes | None, int]:
    byte = body[position]
    if byte < 0x80:
        size, position = (byte >> 1) ^ -(byte & 1), position + 1
    else:
        size, position = _read_varint(body, position)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise IndexError
    return bytes(body[position:stop]), stop


def _read_headers(
    body: Readable, position: int, end: int
) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    count, position = _read_varint(body, position)
    if count < 0 or count > end - position:
        raise MalformedRecords(f"a record claims {count} headers")
    headers = []
    for _ in range(count):
        key, position = _read_bytes(body, position, end)
        if key is None:
            raise MalformedRecords("a header without a key")
        value, position = _read_bytes(body, position, end)
        headers.append((key.decode(), value))
    return tuple(headers), position


# -- building -----------------------------------------------------------------------------------


def write_varint(out: bytearray, value: int) -> None:
    """Append a zig-zag varint (of up to 64 bits)."""
    value = (value << 1) ^ (value >> 63)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_record(out: bytearray, record: Record, offset_delta: int, time_delta: int) -> None:
    body = bytearray(1)
    write_varint(body, time_delta)
    write_varint(body, offset_delta)
    for part in (record.key, record.value):
        if part is None:
            body.append(1)
        else:
            write_varint(body, len(part))
            body += part
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        encoded = name.encode()
        write_varint(body, len(encoded))
        body += encoded
        if value is None:
            body.append(1)
        else:
            write_varint(body, len(value))
            body += value
    write_varint(out, len(body))
    out += body


def build_batch(
    records: Sequence[Record],
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    compression: int | str = codecs.NONE,
    timestamp_type: int = CREATE_TIME,
    is_transactional: bool = False,
    is_control: bool = False,
    max_timestamp: int | None = None,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """Encode one batch; the records' offsets are absolute, at or after ``base_offset``.

    ``max_timestamp`` overrides what the records say (with LOG_APPEND_TIME it is the time of all);
    ``last_offset`` keeps an offset whose record compaction removed; ``delete_horizon_ms`` takes
    the place of the base timestamp and sets its bit (KIP-534).
    """
    codec = codecs.CODEC_IDS[compression] if isinstance(compression, str) else compression
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    body = bytearray()
    largest = NO_TIMESTAMP
    for record in records:
        timestamp = record.timestamp
        if timestamp > largest:
            largest = timestamp
        _write_record(body, record, record.offset - base_offset, timestamp - base_timestamp)
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    attributes = codec
    if timestamp_type:
        attributes |= TIMESTAMP_TYPE_BIT
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    covered = _BODY_HEADER.pack(
        attributes,
        last_offset - base_offset,
        base_timestamp,
        largest if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    ) + (codecs.compress(codec, body) if codec and records else bytes(body))
    return (
        PREFIX.pack(base_offset, len(covered) + 9, leader_epoch)
        + b"\x02"
        + _CRC.pack(crc32c(covered))
        + covered
    )


def build_control_marker(
    producer_id: int,
    producer_epoch: int,
    is_commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """The batch that ends a transaction on one partition."""
    record = Record(
        base_offset,
        timestamp,
        _CONTROL_KEY.pack(0, COMMIT if is_commit else ABORT),
        _CONTROL_VALUE.pack(0, coordinator_epoch),
    )
    return build_batch(
        [record],
        base_offset,
        leader_epoch,
        producer_id,
        producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def with_base_offset(data: Readable, base_offset: int, leader_epoch: int) -> bytes:
    """The same batch at another offset and epoch, in one copy; the checksum stays valid."""
    return (
        PREFIX.pack(base_offset, len(data) - LENGTH_OVERHEAD, leader_epoch)
        + (memoryview(data)[16:])
    )


def with_timestamps(data: Readable, timestamp_type: int, max_timestamp: int) -> bytes:
    """The same batch with timestamp type and maximum set and the checksum computed anew."""
    patched = bytearray(data)
    if timestamp_type == LOG_APPEND_TIME:
        patched[22] |= TIMESTAMP_TYPE_BIT
    else:
        patched[22] &= ~TIMESTAMP_TYPE_BIT
    _LONG.pack_into(patched, 35, max_timestamp)
    _CRC.pack_into(patched, 17, crc32c(memoryview(patched)[CRC_START:]))
    return bytes(patched)


def concatenated(batches: Iterable[RecordBatch]) -> bytes:
    """The batches one after the other, as a fetch response carries them."""
    return b"".join([batch.data for batch in batches])
