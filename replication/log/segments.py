"""Operations on the list of a log's segments: find, roll, truncate, split and restart
(docs/kafka/log.md#truncation; Kafka's ``LogSegments``)."""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from ...protocol.records.batch import RecordBatch
from ...protocol.values import TopicPartition
from .segment import RELATIVE_OFFSET_MAX, Segment
from .settings import LogSettings
from .storage import LogStorage

_base_offset = attrgetter("base_offset")


def segment_index(segments: list[Segment], offset: int) -> int:
    """Return the position of the segment that covers an offset."""
    if offset >= segments[-1].base_offset:
        return len(segments) - 1
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def walk(segments: list[Segment], from_offset: int) -> Iterator[RecordBatch]:
    """Iterate over the stored batches from the one that contains ``from_offset``."""
    for segment in segments[segment_index(segments, from_offset) :]:
        position = segment.find(from_offset) if segment.base_offset < from_offset else 0
        yield from segment.walk(position)


def add_segment(storage: LogStorage, base_offset: int, now_ms: int) -> Segment:
    """Add a new, empty segment at the end and return it."""
    segment = Segment(base_offset, now_ms)
    segments = storage.segments
    previous = segments[-1] if segments else None
    segments.append(segment)
    if storage.is_real:
        storage.on_roll(previous, segment)
    return segment


def needs_roll(
    segment: Segment,
    settings: LogSettings,
    topic_partition: TopicPartition,
    size: int,
    max_timestamp: int,
    last_offset: int,
    now_ms: int,
) -> bool:
    """Return whether a batch must go to a new segment (Kafka: ``LogSegment.shouldRoll``)."""
    if segment.size + size > settings.segment_bytes:
        return segment.size > 0
    if last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
        return True
    if not segment.size:
        return False
    first = segment.first_timestamp
    waited = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
    return (
        waited > settings.segment_ms_least
        and waited > settings.segment_ms - _roll_jitter_ms(settings, topic_partition)
    ) or segment.index_entries >= settings.index_entries_max


def _roll_jitter_ms(settings: LogSettings, topic_partition: TopicPartition) -> int:
    """Return the jitter that spreads rolling over time; fixed per partition, not random."""
    jitter = min(settings.segment_jitter_ms, settings.segment_ms)
    return zlib.crc32(str(topic_partition).encode()) % jitter if jitter > 0 else 0


def truncate_segments(storage: LogStorage, offset: int, index_interval_bytes: int) -> Segment:
    """Remove the batches from ``offset`` on, which a segment covers; return the last segment."""
    segments = storage.segments
    keep = segment_index(segments, offset) + 1
    deleted = segments[keep:]
    del segments[keep:]
    if deleted and storage.is_real:
        storage.on_delete(deleted, -1)
    active = segments[-1]
    active.truncate_to(offset, index_interval_bytes)
    if storage.is_real:
        storage.on_truncate(active)
    return active


def split_segments(storage: LogStorage, bytes_max: int, index_interval_bytes: int) -> None:
    """Split each closed segment in memory that is larger than ``bytes_max``; leave files alone."""
    if storage.is_real:
        return
    segments = storage.segments
    for index in range(len(segments) - 2, -1, -1):
        if segments[index].size > bytes_max:
            segments[index : index + 1] = _split_segment(
                segments[index], bytes_max, index_interval_bytes
            )


def _split_segment(segment: Segment, bytes_max: int, index_interval_bytes: int) -> list[Segment]:
    piece = Segment(segment.base_offset, segment.created_ms)
    pieces = [piece]
    for batch in segment.walk():
        if piece.size and piece.size + len(batch.data) > bytes_max:
            piece = Segment(piece.next_offset, segment.created_ms)
            pieces.append(piece)
        piece.append(batch, batch.max_timestamp, segment.last_modified_ms, index_interval_bytes)
    for entry in segment.aborted or ():
        decided = pieces[segment_index(pieces, entry.last_offset)]
        decided.aborted = [*(decided.aborted or ()), entry]
    return pieces


def restart_segments(storage: LogStorage, offset: int) -> Segment:
    """Drop all segments, add an empty one at ``offset`` and return it."""
    segments = storage.segments
    deleted = list(segments)
    segments.clear()
    if deleted and storage.is_real:
        storage.on_delete(deleted, -1)
    return add_segment(storage, offset, 0)
