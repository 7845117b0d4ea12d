"""Appends of a leader: a client's records are checked, and offset and epoch are patched in
(docs/kafka/log.md#validation, docs/kafka/producer-state.md#checks,
docs/kafka/partitions.md#order-of-the-marks)."""

from __future__ import annotations

import functools
import struct

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records import compression as codecs
from ...protocol.records.batch import RecordBatch
from ...protocol.records.checksum import crc32c
from ...protocol.records.format import (
    CONTROL_BIT,
    CRC_START,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    NO_TIMESTAMP,
    PREFIX,
    SEQUENCE_MAX,
    TRANSACTIONAL_BIT,
    MalformedRecords,
    Readable,
    add_sequence,
    head_of_only_record,
)
from ...protocol.versions import Behaviour
from .log import Log
from .producer_replay import note_batch
from .producer_state import BatchMetadata
from .record_walk import RecordScan, scan_records
from .results import NOTHING_APPENDED, AppendInfo
from .settings import LogSettings
from .validator import ORIGIN_CLIENT, ValidationContext, too_large_error, validate
from .verification import UNGUARDED, Unguarded, VerificationGuard

_ZSTD = codecs.ZSTD
_LARGE = 4096
"""Size in bytes from which a memoryview of a batch is faster than a copy."""
_unpack_header = struct.Struct(">qi4xbIhiqqqhii").unpack_from
"""Unpacks the fields of ``HEADER`` except the leader epoch."""
_pack_prefix = PREFIX.pack
_new_tuple = tuple.__new__


@functools.lru_cache(1 << 14)
def _head_of_only_record(size: int) -> bytes | None:
    """Return the bytes before the value of a batch's only record, without key and headers.

    Return None if no record like this has the given size in bytes.
    """
    for size_of_lengths in range(2, 11):
        value_size = size - size_of_lengths - 5
        if value_size >= 0:
            head = head_of_only_record(value_size)
            if len(head) == size_of_lengths + 4:
                return head
    return None


def append_as_leader(
    log: Log,
    records: Readable | None,
    leader_epoch: int,
    now_ms: int,
    origin: str = ORIGIN_CLIENT,
    api_version: int | None = None,
    guard: VerificationGuard | Unguarded | None = UNGUARDED,
) -> AppendInfo:
    """Validate the records of a client, or of a coordinator of this broker, and append them.

    ``api_version`` is that of the Produce request; None without one. ``guard`` is the guard
    with which the transaction was verified; with None, the batch may not begin a transaction.
    Raises ``KafkaError`` with the codes of docs/kafka/log.md#validation,
    docs/kafka/producer-state.md#checks; nothing is appended then.

    A single v2 batch on a topic that stores batches unchanged takes a fast path if nothing in
    it must be refused or corrected: its records are scanned, not decoded.
    """
    if log.storage.directory.is_offline:
        log.storage.directory.check()
    scan = None
    if not records:
        records = b""
    elif log.settings.stores_batches_unchanged and len(records) >= HEADER_SIZE:
        info = _append_fast(log, records, leader_epoch, now_ms, origin)
        if isinstance(info, AppendInfo):
            return info
        scan = info
    validated = validate(
        records,
        ValidationContext(log.settings, log.behaviour, now_ms, origin, api_version, scan),
    )
    if validated is None:
        return NOTHING_APPENDED
    data = validated.data
    epoch = leader_epoch if log.settings.record_version == 2 else -1
    append_time_ms = validated.log_append_time_ms
    fields = HEADER.unpack_from(data)
    return _append_patched(log, data, fields, epoch, now_ms, origin, append_time_ms, guard)


def _append_fast(
    log: Log, records: Readable, leader_epoch: int, now_ms: int, origin: str
) -> AppendInfo | RecordScan | None:
    """Append a batch that passes every check of the fast path; leave any other to the validator.

    For the latter, including every transactional batch, return None, or the result of
    ``scan_records`` if the records are well-formed but have to be changed.
    """
    (
        base_offset, length, magic, crc, attributes, last_delta, base_timestamp,
        max_timestamp, producer_id, producer_epoch, base_sequence, count,
    ) = _unpack_header(records)  # fmt: skip
    size = length + LENGTH_OVERHEAD
    settings = log.settings
    view = records if size < _LARGE else memoryview(records)
    if (
        magic != 2
        or size != len(records)
        or base_offset != 0
        or size > settings.max_message_bytes
        or not 0 < count <= settings.records_max
        or last_delta != count - 1
        or not 0 <= attributes < _ZSTD
        or size > settings.segment_bytes
        or crc32c(view[CRC_START:]) != crc
    ):
        return None
    entry = noted = None
    if producer_id >= 0:
        producers = log.producers
        if (
            producers is None
            or (entry := producers.entries.get(producer_id)) is None
            or entry.epoch != producer_epoch
            or not entry.batches
            or entry.batches[-1][1] + 1 != base_sequence
            or entry.transaction_first_offset >= 0
            or base_sequence + last_delta > SEQUENCE_MAX
            or origin != ORIGIN_CLIENT
        ):
            return None  # not clearly the producer's next batch
    offset = log.log_end_offset
    data = _pack_prefix(offset, length, leader_epoch) + view[16:]
    if (  # not a single record without key and headers that fills the batch
        count != 1
        or attributes
        or (head := _head_of_only_record(size - HEADER_SIZE)) is None
        or not data.startswith(head, HEADER_SIZE)
        or data[-1]
        or max_timestamp != base_timestamp
    ):
        scan = _scan_well_formed(data, count, attributes, base_timestamp, settings)
        if scan is None or scan[0] != max_timestamp or not scan[1]:
            return scan
    last_offset = offset + last_delta
    if log.latest_epoch != leader_epoch and leader_epoch >= 0:
        log.assign_epoch_start_offset(leader_epoch, offset)
    if entry is not None:
        last_sequence = base_sequence + last_delta
        noted = _new_tuple(  # faster than ``BatchMetadata(...)``; every batch needs one
            BatchMetadata, (base_sequence, last_sequence, offset, last_offset, max_timestamp)
        )
    summary = (leader_epoch, max_timestamp, producer_id, producer_epoch, noted)
    batch = RecordBatch(data, offset, last_offset, summary)
    log.store(batch, max_timestamp, now_ms)
    if entry is not None and noted is not None:
        entry.add(noted, max_timestamp)
    if settings.flushes_by_count:
        log.flush_if_due(now_ms)
    return AppendInfo(offset, last_offset, max_timestamp, NO_TIMESTAMP, (batch,))


def _append_patched(
    log: Log,
    records: Readable,
    fields: tuple[int, ...],
    leader_epoch: int,
    now_ms: int,
    origin: str,
    log_append_time_ms: int,
    guard: VerificationGuard | Unguarded | None,
) -> AppendInfo:
    """Patch offset and leader epoch into a valid batch and append it unless it is a duplicate."""
    length = fields[1]
    size = length + LENGTH_OVERHEAD
    offset = log.log_end_offset
    if log.latest_epoch != leader_epoch and leader_epoch >= 0:
        log.assign_epoch_start_offset(leader_epoch, offset)  # even if the batch is refused
    if size > log.settings.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{size} bytes exceed segment.bytes, which is {log.settings.segment_bytes}",
        )
    attributes = fields[5]
    is_transactional = attributes & TRANSACTIONAL_BIT != 0
    producer_id = fields[9]
    producers = log.producers
    if producer_id >= 0:
        known = _check_producer(log, records, fields, origin, guard)
        if known is not None:
            return known
    last_offset = offset + fields[6]
    max_timestamp = fields[8]
    batch = RecordBatch(
        PREFIX.pack(offset, length, leader_epoch) + memoryview(records)[16:],
        offset,
        last_offset,
    )
    segment = log.store(batch, max_timestamp, now_ms)
    if producer_id >= 0:
        if attributes & CONTROL_BIT:
            note_batch(log.producer_state(), log.storage, batch, segment)
        else:
            if producers is None:
                producers = log.producer_state()
            producers.append_data_batch(
                producer_id,
                fields[10],
                fields[11],
                offset,
                last_offset,
                max_timestamp,
                is_transactional,
            )
    if log.settings.flushes_by_count:
        log.flush_if_due(now_ms)
    return AppendInfo(offset, last_offset, max_timestamp, log_append_time_ms, (batch,))


def _check_producer(
    log: Log,
    records: Readable,
    fields: tuple[int, ...],
    origin: str,
    guard: VerificationGuard | Unguarded | None,
) -> AppendInfo | None:
    """Check sequence and epoch; return the result for a duplicate, which is not appended again."""
    attributes, last_delta = fields[5:7]
    producer_id, epoch, base_sequence = fields[9:12]
    producers = log.producers
    if attributes & CONTROL_BIT:
        if producers is not None:
            marker = RecordBatch.from_bytes(bytes(records)).control_marker()
            if marker is not None:
                producers.check_marker(producer_id, epoch, marker)
        return None
    is_client = origin == ORIGIN_CLIENT
    if not is_client and not log.behaviour.coordinators_check_epochs:
        return None
    unknown_error = _unknown_producer_error(log.behaviour) if is_client else None
    is_guarded = attributes & TRANSACTIONAL_BIT and not isinstance(guard, Unguarded)
    if producers is None and is_guarded:
        producers = log.producer_state()
    if producers is None:
        if unknown_error is not None and base_sequence != 0:
            raise KafkaError(
                unknown_error,
                f"producer {producer_id} is unknown on this partition, but its first sequence is "
                f"{base_sequence}, not 0",
            )
        return None
    last_sequence = base_sequence
    if base_sequence >= 0:
        last_sequence = add_sequence(base_sequence, last_delta)
    duplicate = producers.check_data_batch(
        producer_id,
        epoch,
        base_sequence,
        last_sequence,
        bool(attributes & TRANSACTIONAL_BIT),
        is_client,
        unknown_error,
        guard,
    )
    if duplicate is None:
        return None
    return AppendInfo(
        duplicate.first_offset,
        duplicate.last_offset,
        duplicate.timestamp,
        duplicate.timestamp,
        duplicate=True,
    )


def _unknown_producer_error(behaviour: Behaviour) -> ErrorCode | None:
    """Return the error for an unknown producer whose sequence is not 0; None to accept it."""
    if not behaviour.unknown_producer_id_refused:
        return None
    if behaviour.unknown_producer_id_error:
        return ErrorCode.UNKNOWN_PRODUCER_ID
    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _scan_well_formed(
    data: bytes, count: int, codec: int, base_timestamp: int, settings: LogSettings
) -> RecordScan | None:
    """Return the result of ``scan_records``; None if the records are malformed."""
    try:
        return scan_records(
            data,
            count,
            codec,
            base_timestamp,
            settings.decompressed_bytes_max,
            settings.records_max,
        )
    except codecs.PayloadTooLarge as error:
        raise too_large_error(error) from None  # the validator would decompress as much again
    except (codecs.CorruptPayload, MalformedRecords):
        return None
