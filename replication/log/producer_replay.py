"""Rebuilding of producer state from snapshots and stored batches
(docs/kafka/producer-state.md; Kafka's ``UnifiedLog.rebuildProducerState``)."""

from __future__ import annotations

from collections.abc import Sequence

from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import CONTROL_BIT, PRODUCER_FIELDS, TRANSACTIONAL_BIT
from .producer_state import CorruptSnapshot, ProducerStateManager
from .segment import AbortedEntry, Segment
from .storage import LogStorage


def newest_snapshot(
    storage: LogStorage, log_start_offset: int, log_end_offset: int
) -> tuple[ProducerStateManager | None, int]:
    """Return the newest usable snapshot and its offset; without one, None and the log start.

    Drop newer snapshots that are damaged, and all snapshots outside the log.
    """
    state: ProducerStateManager | None = None
    position = log_start_offset
    for offset in sorted(storage.snapshots or (), reverse=True):
        if offset > log_end_offset or offset <= log_start_offset:
            storage.drop_snapshot(offset)
        elif state is None:
            try:
                state = ProducerStateManager.from_snapshot(
                    storage.snapshots[offset]  # type: ignore[index]
                )
                position = offset
            except CorruptSnapshot:
                storage.drop_snapshot(offset)
    return state, position


def note_batch(
    producers: ProducerStateManager,
    storage: LogStorage,
    batch: RecordBatch,
    segment: Segment,
    is_replay: bool = False,
) -> None:
    """Update the producer state and the transaction index for a stored batch with a producer id."""
    data = batch.data
    attributes = data[22]
    if not attributes & CONTROL_BIT:
        timestamp, producer_id, epoch, base_sequence = PRODUCER_FIELDS.unpack_from(data, 35)
        producers.append_data_batch(
            producer_id,
            epoch,
            base_sequence,
            batch.base_offset,
            batch.last_offset,
            timestamp,
            attributes & TRANSACTIONAL_BIT != 0,
        )
        return
    marker = batch.control_marker()
    if marker is None:
        return
    completed = producers.append_marker(
        batch.producer_id,
        batch.producer_epoch,
        marker,
        batch.last_offset,
        batch.max_timestamp,
    )
    if completed is None:
        return
    if completed.is_aborted and not (
        is_replay and _has_aborted(segment.aborted, completed.last_offset)
    ):
        if segment.aborted is None:
            segment.aborted = []
        segment.aborted.append(
            AbortedEntry(
                completed.producer_id,
                completed.first_offset,
                completed.last_offset,
                producers.last_stable_offset_after(completed),
            )
        )
        if storage.is_real:
            storage.on_aborted(segment)
    producers.complete(completed)


def _has_aborted(entries: Sequence[AbortedEntry] | None, marker_offset: int) -> bool:
    return entries is not None and any(e.last_offset == marker_offset for e in entries)
