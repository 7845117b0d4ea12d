"""Log compaction: keep the last record of every key (docs/kafka/log.md#compaction; Kafka's
``LogCleaner``).

A pass reads the dirty part of a log, from the end of the last pass to the first uncleanable
offset, and collects the last offset of each key. It then rewrites the log up to there without the
outdated records. Offsets never change. Tombstones and transaction markers are removed
``delete.retention.ms`` after the pass that first found them removable; that pass notes this time
in the batch as its delete horizon (KIP-534).
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ...protocol.records.batch import RecordBatch, build_batch
from ...protocol.records.format import Record
from .log import Log
from .segment import AbortedEntry, Segment


class CompactionResult(NamedTuple):
    """Result of one compaction pass."""

    first_dirty_offset: int
    """Offset at which the next pass begins."""
    bytes_before: int
    bytes_after: int


def compact(log: Log, now_ms: int, force: bool = False) -> CompactionResult | None:
    """Compact a log if it is dirty enough (or ``force``); return None if nothing was done.

    The cleaned offset of the log is stored. Raises ``KafkaError`` KAFKA_STORAGE_ERROR.
    """
    log.storage.directory.check()
    settings = log.settings
    if not settings.is_compacted:
        return None
    start = log.storage.cleaned_offset(log.topic_partition)
    if not log.log_start_offset <= start <= log.log_end_offset:
        start = log.log_start_offset
    end = first_uncleanable_offset(log, now_ms)
    clean = [s for s in log.segments if s.next_offset <= start and s is not log.active]
    dirty = [s for s in log.segments if s.next_offset > start and s.base_offset < end]
    if end <= start or not dirty:
        return None
    dirty_bytes = sum(segment.size for segment in dirty)
    all_bytes = dirty_bytes + sum(segment.size for segment in clean)
    is_dirty_enough = (
        dirty_bytes > settings.min_cleanable_dirty_ratio * all_bytes
        or now_ms - dirty[0].first_timestamp > settings.max_compaction_lag_ms
    )
    if not (is_dirty_enough or force) or not all_bytes:
        return None
    latest_offsets = _last_offsets(log, start, end)
    targets = [s for s in log.segments if s.base_offset < end and s is not log.active]
    after = _Rewriter(log, latest_offsets, end, now_ms).rewrite(targets)
    log.storage.put_cleaned_offset(log.topic_partition, end)
    return CompactionResult(end, sum(s.size for s in targets), after)


def first_uncleanable_offset(log: Log, now_ms: int) -> int:
    """Return the offset at which compaction must stop.

    It is not above the last stable offset, the start of the active segment, or the first segment
    with records younger than ``min.compaction.lag.ms``.
    """
    end = log.active.base_offset
    unstable = log.first_unstable_offset
    if unstable >= 0:
        end = min(end, unstable)
    end = min(end, log.high_watermark)
    lag_ms = log.settings.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments:
            if segment.base_offset >= end:
                break
            if segment.largest_timestamp > now_ms - lag_ms:
                return min(end, segment.base_offset)
    # Only whole segments are cleaned: one that reaches beyond ``end`` waits for a later pass.
    for segment in log.segments:
        if segment.base_offset < end < segment.next_offset:
            return segment.base_offset
    return end


def _last_offsets(log: Log, start: int, end: int) -> dict[bytes, int]:
    """Return the last offset of each key in the dirty part, ignoring aborted records."""
    transactions = _Transactions(log, start, end)
    last_offsets: dict[bytes, int] = {}
    for batch in log.batches(start):
        if batch.base_offset >= end:
            break
        if transactions.discards(batch) or batch.is_control:
            continue
        for record in batch.records():
            if record.key is not None and record.offset >= start:
                last_offsets[record.key] = record.offset
    return last_offsets


class _Transactions:
    """Finds batches of aborted transactions, and markers whose transaction has no data left.

    It must be given every batch in order (Kafka: ``CleanedTransactionMetadata``).
    """

    def __init__(self, log: Log, start: int, end: int) -> None:
        entries = [
            entry
            for segment in log.segments
            for entry in segment.aborted or ()
            if entry.last_offset >= start and entry.first_offset < end
        ]
        self._upcoming = deque(sorted(entries, key=lambda entry: entry.first_offset))
        self._aborting: dict[int, AbortedEntry] = {}
        self._seen: dict[int, None] = {}
        """Producers whose current transaction has data among the batches so far."""
        self.kept: list[AbortedEntry] = []
        """Entries of aborted transactions that still had data."""

    def discards(self, batch: RecordBatch) -> bool:
        """Return whether a data batch was aborted, or a marker's transaction has no data left."""
        while self._upcoming and self._upcoming[0].first_offset <= batch.last_offset:
            entry = self._upcoming.popleft()
            self._aborting[entry.producer_id] = entry
        if not batch.is_transactional:
            return False
        producer_id = batch.producer_id
        if not batch.is_control:
            self._seen[producer_id] = None
            return producer_id in self._aborting
        marker = batch.control_marker() if batch.record_count else None
        aborted = self._aborting.pop(producer_id, None)
        was_seen = producer_id in self._seen
        self._seen.pop(producer_id, None)
        if aborted is not None and was_seen and marker is not None and not marker.is_commit:
            self.kept.append(aborted)
        return not was_seen


class _Rewriter:
    """Rewrites segments without outdated records."""

    def __init__(self, log: Log, latest_offsets: dict[bytes, int], end: int, now_ms: int) -> None:
        self._log = log
        self._latest_offsets = latest_offsets
        self._now_ms = now_ms
        self._horizon_ms = now_ms + log.settings.delete_retention_ms
        self._transactions = _Transactions(log, log.segments[0].base_offset, end)

    def rewrite(self, segments: list[Segment]) -> int:
        """Replace each group of segments by a cleaned one; return their total size in bytes."""
        total = 0
        for group in self._groups(segments):
            batches = [
                kept
                for segment in group
                for batch in segment.walk()
                if (kept := self._cleaned(batch)) is not None
            ]
            total += self._replace(group, batches)
        return total

    def _groups(self, segments: list[Segment]) -> list[list[Segment]]:
        """Group neighbours that together fit into one segment (Kafka: ``groupSegmentsBySize``)."""
        groups: list[list[Segment]] = []
        size = 0
        for segment in segments:
            span = segment.next_offset - groups[-1][0].base_offset if groups else 0
            if (
                not groups
                or size + segment.size > self._log.settings.segment_bytes
                or span > 2147483647
            ):
                groups.append([])
                size = 0
            groups[-1].append(segment)
            size += segment.size
        return groups

    def _replace(self, group: list[Segment], batches: list[RecordBatch]) -> int:
        log = self._log
        new = Segment(group[0].base_offset, group[0].created_ms)
        new.last_modified_ms = group[-1].last_modified_ms
        new.replace_batches(batches, self._now_ms, log.settings.index_interval_bytes)
        first, last = group[0].base_offset, group[-1].next_offset
        new.aborted = [e for e in self._transactions.kept if first <= e.last_offset < last] or None
        position = log.segments.index(group[0])
        log.segments[position : position + len(group)] = [new]
        if log.storage.is_real:
            log.storage.on_rewrite(new, group, self._now_ms)
        return new.size

    def _cleaned(self, batch: RecordBatch) -> RecordBatch | None:
        """Return the batch without outdated records: ``batch`` if all stay, None to drop it."""
        can_discard = self._transactions.discards(batch)
        horizon_ms = batch.delete_horizon_ms
        is_past_horizon = horizon_ms is not None and horizon_ms <= self._now_ms
        if batch.is_control:
            if (can_discard and is_past_horizon) or not batch.record_count:
                return self._emptied(batch)
            needs_horizon = can_discard and horizon_ms is None
            return self._rebuilt(batch, batch.records()) if needs_horizon else batch
        if can_discard:
            return self._emptied(batch)
        records = batch.records()
        latest = self._latest_offsets
        kept = [
            r
            for r in records
            if r.key is not None
            and r.offset >= latest.get(r.key, -1)
            and (r.value is not None or not is_past_horizon)
        ]
        if not kept:
            return self._emptied(batch)
        has_tombstones = any(record.value is None for record in kept)
        if len(kept) == len(records) and not (has_tombstones and horizon_ms is None):
            return batch
        return self._rebuilt(batch, kept, has_tombstones)

    def _emptied(self, batch: RecordBatch) -> RecordBatch | None:
        """Return None, or an empty batch if it has the last sequence of its producer."""
        if batch.producer_id < 0 or self._log.producers is None:
            return None
        entry = self._log.producers.entries.get(batch.producer_id)
        if entry is None:
            return None
        if entry.batches:
            is_last = batch.last_offset == entry.last_offset
        else:
            is_last = batch.is_control and batch.producer_epoch == entry.epoch
        return self._rebuilt(batch, [], False) if is_last else None

    def _rebuilt(
        self, batch: RecordBatch, records: list[Record], sets_horizon: bool = True
    ) -> RecordBatch:
        horizon_ms = batch.delete_horizon_ms if records else None
        if horizon_ms is None and sets_horizon:
            horizon_ms = self._horizon_ms
        return RecordBatch(
            build_batch(
                records,
                batch.base_offset,
                batch.partition_leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                compression=batch.compression,
                timestamp_type=batch.timestamp_type,
                is_transactional=batch.is_transactional,
                is_control=batch.is_control,
                max_timestamp=(
                    None if records and not batch.timestamp_type else batch.max_timestamp
                ),
                last_offset=batch.last_offset,
                delete_horizon_ms=horizon_ms,
            ),
            batch.base_offset,
            batch.last_offset,
        )
