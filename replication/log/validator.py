"""Validation and rewriting of a client's records before a leader appends them.

Kafka's ``Log.analyzeAndValidateRecords`` (sizes, checksums) and ``LogValidator`` (records,
timestamps, recompression, up-conversion of old formats); docs/kafka/log.md#validation. The result
is one batch of format v2 at offset 0, to which the log then assigns an offset.
"""

from __future__ import annotations

from typing import NamedTuple

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records import compression as codecs
from ...protocol.records.batch import RecordBatch, with_timestamps
from ...protocol.records.checksum import crc32c
from ...protocol.records.format import (
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MINIMUM_LENGTH,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CorruptBatch,
    MalformedRecords,
    Readable,
    assemble,
)
from ...protocol.records.legacy import LegacyMessage, parse_message
from ...protocol.records.record_bytes import record_deltas, renumbered
from ...protocol.versions import Behaviour
from .record_walk import RecordScan, scan_records
from .results import RecordErrors
from .settings import LogSettings
from .up_conversion import up_converted

ORIGIN_CLIENT = "client"
ORIGIN_COORDINATOR = "coordinator"
_FIRST_VERSION_OF_V2_ONLY = 3
_FIRST_VERSION_WITH_ZSTD = 7


class Validated(NamedTuple):
    """A batch ready to be appended, and its append time if the topic uses it, else -1."""

    data: bytes
    log_append_time_ms: int


class ValidationContext(NamedTuple):
    """Settings and request data on which the checks of one append depend."""

    settings: LogSettings
    behaviour: Behaviour
    now_ms: int
    origin: str
    api_version: int | None
    scan: RecordScan | None = None
    """Result of ``scan_records`` for the only batch, if it was scanned already."""


def validate(records: Readable, context: ValidationContext) -> Validated | None:
    """Check and rewrite the records produced to one partition; return None if there are none.

    Raises ``KafkaError`` with the codes of docs/kafka/log.md#validation; INVALID_RECORD and
    INVALID_TIMESTAMP name every offending record in ``record_errors``.
    """
    batches, messages = _split(records, context.settings)
    api_version = context.api_version
    is_new_client = api_version is not None and api_version >= _FIRST_VERSION_OF_V2_ONLY
    if not batches and not messages:
        if is_new_client:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, "a partition in the produce request has no batch"
            )
        return None
    if batches and messages:
        raise KafkaError(ErrorCode.INVALID_RECORD, "batches are mixed with old messages")
    if len(batches) > 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{len(batches)} batches for one partition; one is allowed"
        )
    if batches:
        return _validate_batch(batches[0], context)
    if is_new_client:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce v{api_version} takes records of magic 2 only, not {messages[0].magic}",
        )
    return _convert(messages, context)


# -- stage A: splitting the bytes into batches --------------------------------------------------


def _split(
    records: Readable, settings: LogSettings
) -> tuple[list[RecordBatch], list[LegacyMessage]]:
    """Return the whole batches and the messages of old formats; drop a partial one at the end."""
    batches: list[RecordBatch] = []
    messages: list[LegacyMessage] = []
    position = 0
    total = len(records)
    while total - position > 16:
        magic = records[position + 16]
        if magic == 2:
            length = int.from_bytes(records[position + 8 : position + 12], "big", signed=True)
            if length < MINIMUM_LENGTH:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{length} is no valid batch length")
            end = position + LENGTH_OVERHEAD + length
            if end > total:
                break
            batches.append(_checked_batch(bytes(records[position:end]), settings))
            position = end
        elif magic in (0, 1):
            try:
                message = parse_message(records, position)
            except CorruptBatch as error:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
            if message is None:
                break
            _check_size(message.size, settings)
            messages.append(message)
            position += message.size
        else:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unknown magic {magic}")
    return batches, messages


def _check_size(size: int, settings: LogSettings) -> None:
    if size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes exceeds max.message.bytes, which is "
            f"{settings.max_message_bytes}",
        )


def _checked_batch(data: bytes, settings: LogSettings) -> RecordBatch:
    batch = RecordBatch.from_bytes(data)
    if batch.base_offset != 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"base offset of a batch is {batch.base_offset}, not 0",
        )
    _check_size(len(data), settings)
    if crc32c(memoryview(data)[CRC_START:]) != batch.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the checksum of the batch is wrong")
    return batch


# -- stage B: checking the batch ----------------------------------------------------------------


def _validate_batch(batch: RecordBatch, context: ValidationContext) -> Validated:
    settings = context.settings
    _check_header(batch, context)
    source = batch.compression
    target = source if settings.codec is None else settings.codec
    largest, in_order, body = context.scan or _scan_or_refuse(batch, settings)
    in_place = source == target and in_order
    append_time = NO_TIMESTAMP
    if settings.timestamp_type == LOG_APPEND_TIME:
        largest = append_time = context.now_ms
    if settings.checks_records or batch.timestamp_type == LOG_APPEND_TIME:
        _check_records(batch, body, context)
    if not in_place:
        return Validated(_rebuilt(batch, body, in_order, target, largest, context), append_time)
    data = batch.data
    if append_time >= 0 or largest != batch.max_timestamp:
        data = with_timestamps(data, settings.timestamp_type, largest)
    return Validated(data, append_time)


def _check_header(batch: RecordBatch, context: ValidationContext) -> None:
    count = batch.record_count
    if count <= 0 or batch.last_offset - batch.base_offset + 1 != count:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"a batch of {count} records has offsets {batch.base_offset} to {batch.last_offset}",
        )
    attributes = batch.attributes
    if context.origin == ORIGIN_CLIENT:
        _check_count(count, context.settings)
        if attributes & CONTROL_BIT:
            raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control records")
        if batch.producer_id >= 0 and batch.base_sequence < 0:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"producer {batch.producer_id} sent the negative sequence {batch.base_sequence}",
            )
    if context.settings.record_version < 2 and (
        attributes & TRANSACTIONAL_BIT or batch.producer_id >= 0
    ):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            "the message format of the topic knows no idempotent or transactional batches",
        )
    target = batch.compression if context.settings.codec is None else context.settings.codec
    api_version = context.api_version
    if codecs.ZSTD in (batch.compression, target) and (
        not context.behaviour.zstd_compression
        or (
            batch.compression == codecs.ZSTD
            and api_version is not None
            and 0 <= api_version < _FIRST_VERSION_WITH_ZSTD
        )
    ):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 and Kafka 2.1"
        )
    if batch.compression > codecs.ZSTD:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"unknown codec {batch.compression}")


def _check_count(count: int, settings: LogSettings) -> None:
    if count > settings.records_max:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{count} records in a batch, at most {settings.records_max}; "
            "a larger max.message.bytes allows for more",
        )


def _scan_or_refuse(batch: RecordBatch, settings: LogSettings) -> RecordScan:
    """Return the result of ``scan_records``; raise ``KafkaError`` for unreadable records."""
    try:
        return scan_records(
            batch.data,
            batch.record_count,
            batch.compression,
            batch.base_timestamp,
            settings.decompressed_bytes_max,
            settings.records_max,
        )
    except codecs.PayloadTooLarge as excess:
        raise too_large_error(excess) from None
    except codecs.CorruptPayload as damage:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(damage)) from None
    except MalformedRecords as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None


def too_large_error(error: codecs.PayloadTooLarge) -> KafkaError:
    """Return the error for records that exceed a limit when decompressed or counted."""
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"{error}; a larger max.message.bytes allows for more"
    )


def _check_records(batch: RecordBatch, body: bytes, context: ValidationContext) -> None:
    """Check the keys and timestamps of the individual records."""
    errors = RecordErrors(context.settings, context.now_ms)
    check = errors.checker(batch.timestamp_type)
    append_time = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
    base_timestamp = batch.base_timestamp
    position = 0 if batch.compression else HEADER_SIZE
    for index, (delta, _, has_key) in enumerate(record_deltas(body, position, batch.record_count)):
        check(index, base_timestamp + delta if append_time is None else append_time, has_key)
    errors.raise_if_any()


# -- rebuilding ---------------------------------------------------------------------------------


def _rebuilt(
    batch: RecordBatch,
    body: bytes,
    in_order: bool,
    codec: int,
    max_timestamp: int,
    context: ValidationContext,
) -> bytes:
    """Return the records as a batch with another codec or corrected offsets.

    The first record sets the base timestamp (Kafka: ``MemoryRecordsBuilder.appendWithOffset``).
    """
    settings = context.settings
    count = batch.record_count
    position = 0 if batch.compression else HEADER_SIZE
    ((first_delta, _, _),) = record_deltas(body, position, 1)
    is_numbered = in_order and batch.compression  # offsets of plain batches are not checked
    try:
        records = (
            body
            if is_numbered and not first_delta
            else renumbered(body, position, count, first_delta)
        )
    except MalformedRecords as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
    attributes = batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) | codec
    if settings.timestamp_type == LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
    data = assemble(
        codecs.compress(codec, records),
        count,
        0,
        -1,
        attributes,
        count - 1,
        batch.base_timestamp + first_delta,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
    )
    _check_size(len(data), settings)
    return data


def _convert(messages: list[LegacyMessage], context: ValidationContext) -> Validated:
    """Turn a message set of format v0 or v1 into a batch."""
    settings = context.settings
    source = messages[0].compression
    if source and len(messages) > 1:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, "a compressed message must be the only one in its set"
        )
    if any(one.compression for one in messages[1:]):
        raise KafkaError(ErrorCode.INVALID_RECORD, "compressed and uncompressed messages are mixed")
    if source > codecs.LZ4:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"codec {source} in a message of an old format")
    try:
        body, count, base_timestamp, largest = up_converted(messages, settings, context.now_ms)
    except codecs.PayloadTooLarge as excess:
        raise too_large_error(excess) from None
    except MalformedRecords as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from None
    if not count:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a compressed message contains no messages")
    is_append_time = settings.timestamp_type == LOG_APPEND_TIME
    target = source if settings.codec is None else settings.codec
    if target == codecs.ZSTD and not context.behaviour.zstd_compression:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Kafka 2.1")
    data = assemble(
        codecs.compress(target, body),
        count,
        0,
        -1,
        target | (TIMESTAMP_TYPE_BIT if is_append_time else 0),
        count - 1,
        base_timestamp,
        context.now_ms if is_append_time else largest,
    )
    _check_size(len(data), settings)
    return Validated(data, context.now_ms if is_append_time else NO_TIMESTAMP)
