"""Appends of a follower: the leader's batches are stored unchanged
(docs/kafka/partitions.md#order-of-the-marks, docs/kafka/log.md#truncation)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import CONTROL_BIT, NO_TIMESTAMP, TRANSACTIONAL_BIT
from .log import Log
from .producer_replay import note_batch
from .results import NOTHING_APPENDED, AppendInfo, OffsetsOutOfOrder, UnexpectedAppendOffset

_REPLICATED = struct.Struct(">12xi5xh12xqqhi")
"""Fields of a batch header: leader epoch, attributes, maximum timestamp, producer id, producer
epoch, base sequence."""


def append_as_follower(
    log: Log, batches: Sequence[RecordBatch], now_ms: int = -1, verify: bool = False
) -> AppendInfo:
    """Append the leader's batches unchanged: the same bytes, offsets and epochs.

    ``verify`` checks their checksums, as a leader in this process already did. Raises
    ``UnexpectedAppendOffset``, ``OffsetsOutOfOrder`` or ``KafkaError`` CORRUPT_MESSAGE before
    anything is appended.
    """
    if log.storage.directory.is_offline:
        log.storage.directory.check()
    if not batches:
        return NOTHING_APPENDED
    expected = log.log_end_offset
    first = batches[0]
    if (
        first.base_offset < expected <= first.last_offset
        and log.behaviour.messages_stand_alone
        and (not verify or first.is_intact())
    ):
        batches = (first.without_records_below(expected), *batches[1:])
    if batches[0].base_offset < expected:
        raise UnexpectedAppendOffset(log.topic_partition, batches[0], expected)
    for batch in batches:
        if batch.base_offset < expected or batch.last_offset < batch.base_offset:
            raise OffsetsOutOfOrder(log.topic_partition, batches)
        expected = batch.last_offset + 1
        if verify and not batch.is_intact():
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"{log.topic_partition}: the batch at {batch.base_offset} is damaged",
            )
    largest = NO_TIMESTAMP
    for batch in batches:
        largest = max(largest, _append_replicated(log, batch, now_ms))
    if log.settings.flushes_by_count:
        log.flush_if_due(now_ms)
    return AppendInfo(batches[0].base_offset, batches[-1].last_offset, largest, -1, tuple(batches))


def append_next(log: Log, batch: RecordBatch, now_ms: int) -> bool:
    """Append a batch that begins at the log end, as ``append_as_follower`` does, but faster.

    Return False and append nothing if the batch begins elsewhere or the directory is offline.
    """
    offset = log.log_end_offset
    if (
        batch.base_offset != offset
        or batch.last_offset < offset
        or log.storage.directory.is_offline
    ):
        return False
    summary = batch.summary
    if summary is None:
        _append_replicated(log, batch, now_ms)
    else:  # the same, with the fields that the leader has parsed
        epoch, max_timestamp, producer_id, producer_epoch, noted = summary
        if log.latest_epoch != epoch and epoch >= 0:
            log.assign_epoch_start_offset(epoch, offset)
        segment = log.store(batch, max_timestamp, now_ms)
        if noted is not None:
            producers = log.producers
            entry = None if producers is None else producers.entries.get(producer_id)
            if entry is None or entry.epoch != producer_epoch:
                note_batch(log.producer_state(), log.storage, batch, segment)
            else:
                entry.add(noted, max_timestamp)
    if log.settings.flushes_by_count:
        log.flush_if_due(now_ms)
    return True


def _append_replicated(log: Log, batch: RecordBatch, now_ms: int) -> int:
    """Append a batch unchanged and return its largest timestamp."""
    epoch, attributes, max_timestamp, producer_id, producer_epoch, base_sequence = (
        _REPLICATED.unpack_from(batch.data)
    )
    if log.latest_epoch != epoch and epoch >= 0:
        log.assign_epoch_start_offset(epoch, batch.base_offset)
    if now_ms < 0:
        now_ms = max_timestamp
    segment = log.store(batch, max_timestamp, now_ms)
    if producer_id >= 0:
        if attributes & CONTROL_BIT:
            note_batch(log.producer_state(), log.storage, batch, segment)
        else:
            producers = log.producers
            if producers is None:
                producers = log.producer_state()
            producers.append_data_batch(
                producer_id,
                producer_epoch,
                base_sequence,
                batch.base_offset,
                batch.last_offset,
                max_timestamp,
                attributes & TRANSACTIONAL_BIT != 0,
            )
    return max_timestamp  # type: ignore[no-any-return]
