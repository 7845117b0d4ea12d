"""Record batches of message format v2: building them, and views of stored ones.

A log returns views of its bytes, and followers store the same bytes. The records in a batch are not
decoded until requested (docs/kafka/log.md#batches, Kafka's ``DefaultRecordBatch``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import compression as codecs
from .checksum import crc32c
from .format import (
    ABORT,
    CODEC_MASK,
    COMMIT,
    CONTROL_BIT,
    CONTROL_KEY,
    CONTROL_VALUE,
    CRC,
    CRC_START,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    EPOCH,
    HEADER_SIZE,
    INT,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    LONG,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    OFFSETS,
    SHORT,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    ControlMarker,
    MalformedRecords,
    Readable,
    Record,
    add_sequence,
    assemble,
    decode_records,
    write_record,
)


class RecordBatch:
    """An immutable view of one stored batch; all replicas with the batch share the bytes."""

    __slots__ = ("base_offset", "data", "last_offset", "summary")

    def __init__(
        self,
        data: bytes,
        base_offset: int,
        last_offset: int,
        summary: tuple[int, int, int, int, Any] | None = None,
    ) -> None:
        self.data: bytes = data
        self.base_offset: int = base_offset
        self.last_offset: int = last_offset
        """Last offset of the batch; compaction keeps it even if it removes the last records."""
        self.summary: tuple[int, int, int, int, Any] | None = summary
        """Values that the leader read from the header, so that logs that copy the batch need not
        parse it again: leader epoch, maximum timestamp, producer id, producer epoch, and the entry
        for the producer state. None unless the leader has just appended the batch on its fast path,
        which control and transactional batches never take."""

    @classmethod
    def from_bytes(cls, data: bytes) -> RecordBatch:
        """Return a view of ``data``, which holds exactly one batch with a valid header."""
        base_offset, last_delta = OFFSETS.unpack_from(data)
        return cls(data, base_offset, base_offset + last_delta)

    @property
    def size_in_bytes(self) -> int:
        return len(self.data)

    @property
    def partition_leader_epoch(self) -> int:
        return EPOCH.unpack_from(self.data, 12)[0]  # type: ignore[no-any-return]

    @property
    def magic(self) -> int:
        return self.data[16]

    @property
    def crc(self) -> int:
        return CRC.unpack_from(self.data, 17)[0]  # type: ignore[no-any-return]

    @property
    def attributes(self) -> int:
        return SHORT.unpack_from(self.data, 21)[0]  # type: ignore[no-any-return]

    @property
    def base_timestamp(self) -> int:
        return LONG.unpack_from(self.data, 27)[0]  # type: ignore[no-any-return]

    @property
    def max_timestamp(self) -> int:
        return LONG.unpack_from(self.data, 35)[0]  # type: ignore[no-any-return]

    @property
    def producer_id(self) -> int:
        return LONG.unpack_from(self.data, 43)[0]  # type: ignore[no-any-return]

    @property
    def producer_epoch(self) -> int:
        return SHORT.unpack_from(self.data, 51)[0]  # type: ignore[no-any-return]

    @property
    def base_sequence(self) -> int:
        return INT.unpack_from(self.data, 53)[0]  # type: ignore[no-any-return]

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record, wrapped from 2147483647 to 0; -1 if there is none."""
        first = self.base_sequence
        if first == NO_SEQUENCE:
            return NO_SEQUENCE
        return add_sequence(first, self.last_offset - self.base_offset)

    @property
    def record_count(self) -> int:
        return INT.unpack_from(self.data, 57)[0]  # type: ignore[no-any-return]

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
        """Time in milliseconds from which compaction may remove the batch's tombstones or marker;
        None if not set yet."""
        return self.base_timestamp if self.data[22] & DELETE_HORIZON_BIT else None

    def is_intact(self) -> bool:
        """Return True if the size and the checksum of the bytes are correct."""
        data = self.data
        return (
            len(data) >= HEADER_SIZE
            and INT.unpack_from(data, 8)[0] == len(data) - LENGTH_OVERHEAD
            and crc32c(memoryview(data)[CRC_START:]) == self.crc
        )

    def records(self) -> list[Record]:
        """Decode the records, decompressing them if needed; empty if the record count is 0.

        Raises ``MalformedRecords`` if the bytes are not valid records.
        """
        data = self.data
        if not (count := self.record_count):
            return []
        if codec := data[22] & CODEC_MASK:
            try:
                body = codecs.decompress(codec, memoryview(data)[HEADER_SIZE:])
            except codecs.CorruptPayload as error:
                raise MalformedRecords(str(error)) from None
            position = 0
        else:
            body, position = data, HEADER_SIZE
        append_time = self.max_timestamp if data[22] & TIMESTAMP_TYPE_BIT else None
        return decode_records(
            body, position, count, self.base_offset, self.base_timestamp, append_time
        )

    def without_records_below(self, offset: int) -> RecordBatch:
        """Return a batch without the records below an offset within this batch."""
        data = build_batch(
            [record for record in self.records() if record.offset >= offset],
            offset,
            self.partition_leader_epoch,
            compression=self.compression,
            timestamp_type=self.timestamp_type,
            max_timestamp=self.max_timestamp,
            last_offset=self.last_offset,
        )
        return RecordBatch.from_bytes(data)

    def control_marker(self) -> ControlMarker | None:
        """Return the transaction marker of a control batch; None for other control records."""
        records = self.records()
        if not records or records[0].key is None or len(records[0].key) < 4:
            return None
        kind = CONTROL_KEY.unpack_from(records[0].key)[1]
        if kind not in (ABORT, COMMIT):
            return None
        value = records[0].value or b""
        epoch = CONTROL_VALUE.unpack_from(value)[1] if len(value) >= 6 else -1
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


class PartialBatch(RecordBatch):
    """The first bytes of a batch, truncated at the size limit of a fetch.

    A partial batch is the last one in a fetch response, counts towards the limits and is sent. The
    reader of the response discards it and fetches the batch again.
    """

    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        super().__init__(data, -1, -1)

    @property
    def partition_leader_epoch(self) -> int:
        return -1  # the bytes may end before this field

    def records(self) -> list[Record]:
        return []

    def __reduce__(self) -> tuple[object, ...]:
        return (PartialBatch, (self.data,))


def whole_batches(batches: tuple[RecordBatch, ...]) -> tuple[RecordBatch, ...]:
    """Return the batches of a fetch response without a partial one at the end."""
    return batches[:-1] if batches and isinstance(batches[-1], PartialBatch) else batches


# -- building ---------------------------------------------------------------------------------


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

    ``max_timestamp`` overrides the maximum of the records' timestamps (with LOG_APPEND_TIME it is
    the timestamp of all records). ``last_offset`` preserves an offset whose record compaction
    removed. ``delete_horizon_ms`` replaces the base timestamp and sets its bit (KIP-534). A batch
    without records has no codec.
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
        write_record(body, record, record.offset - base_offset, timestamp - base_timestamp)
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    attributes = codec if records else codecs.NONE
    if timestamp_type:
        attributes |= TIMESTAMP_TYPE_BIT
    if is_transactional:
        attributes |= TRANSACTIONAL_BIT
    if is_control:
        attributes |= CONTROL_BIT
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
    return assemble(
        codecs.compress(codec, body) if codec and records else bytes(body),
        len(records),
        base_offset,
        leader_epoch,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        largest if max_timestamp is None else max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
    )


def build_control_marker(
    producer_id: int, producer_epoch: int, is_commit: bool, coordinator_epoch: int, timestamp: int
) -> bytes:
    """Encode the control batch that ends a transaction on one partition."""
    record = Record(
        0,
        timestamp,
        CONTROL_KEY.pack(0, COMMIT if is_commit else ABORT),
        CONTROL_VALUE.pack(0, coordinator_epoch),
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def with_timestamps(data: Readable, timestamp_type: int, max_timestamp: int) -> bytes:
    """Return a copy of a batch with another timestamp type and maximum, and a new checksum."""
    patched = bytearray(data)
    if timestamp_type == LOG_APPEND_TIME:
        patched[22] |= TIMESTAMP_TYPE_BIT
    else:
        patched[22] &= ~TIMESTAMP_TYPE_BIT
    LONG.pack_into(patched, 35, max_timestamp)
    CRC.pack_into(patched, 17, crc32c(memoryview(patched)[CRC_START:]))
    return bytes(patched)
