"""Deletion of old segments by time, by size and below the log start
(docs/kafka/log.md#retention)."""

from __future__ import annotations

from collections.abc import Callable

from ...protocol.errors import invariant
from .log import Log
from .segment import Segment

_Predicate = Callable[[Segment, Segment | None], bool]


def delete_old_segments(log: Log, now_ms: int) -> int:
    """Delete the segments due for deletion and raise the log start; return their number.

    A segment is deleted only if all before it are and, since 1.0, the high watermark has passed
    it. Time and size count only with cleanup policy ``delete``. Raises ``KafkaError``
    KAFKA_STORAGE_ERROR.
    """
    log.storage.directory.check()
    count = _delete(log, now_ms, lambda _, following: _is_below_start(log, following))
    if log.settings.is_deleted:
        count += _delete_by_size(log, now_ms) + _delete_by_time(log, now_ms)
    log.storage.purge(now_ms)
    return count


def delete_below(log: Log, offset: int, now_ms: int) -> None:
    """Raise the log start to an offset, at most the high watermark; delete the segments below it.

    Raises ``KafkaError`` KAFKA_STORAGE_ERROR.
    """
    log.storage.directory.check()
    log.maybe_increment_log_start_offset(min(offset, log.high_watermark))
    _delete(log, now_ms, lambda _, following: _is_below_start(log, following))


def _is_below_start(log: Log, following: Segment | None) -> bool:
    return following is not None and following.base_offset <= log.log_start_offset


def _delete_by_size(log: Log, now_ms: int) -> int:
    excess = log.size_in_bytes - log.settings.retention_bytes
    if log.settings.retention_bytes < 0 or excess < 0:
        return 0

    def exceeds(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _delete(log, now_ms, exceeds)


def _delete_by_time(log: Log, now_ms: int) -> int:
    retention_ms = log.settings.retention_ms
    if retention_ms < 0:
        return 0
    return _delete(
        log, now_ms, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms
    )


def _delete(log: Log, now_ms: int, predicate: _Predicate) -> int:
    count = 0
    segments = log.segments
    limit = log.high_watermark
    if log.behaviour.retention_passes_high_watermark:
        limit = log.log_end_offset
    for index, segment in enumerate(segments):
        following = segments[index + 1] if index + 1 < len(segments) else None
        end = log.log_end_offset if following is None else following.base_offset
        is_last_and_empty = following is None and segment.size == 0
        if limit < end or is_last_and_empty or not predicate(segment, following):
            break
        count += 1
    if not count:
        return 0
    if count == len(segments):
        log.roll(now_ms)
    log.maybe_increment_log_start_offset(segments[count].base_offset, "retention")
    delete_segments(log, count, now_ms)
    return count


def delete_segments(log: Log, count: int, now_ms: int) -> None:
    """Delete the first ``count`` segments; the log start must be past them already."""
    deleted = log.segments[:count]
    if not deleted:
        return
    invariant(count < len(log.segments), "a log keeps at least one segment")
    if log.storage.directory.on_expiry is not None:
        log.storage.directory.on_expiry(log.topic_partition, deleted)
    del log.segments[:count]
    if log.storage.is_real:
        log.storage.on_delete(deleted, now_ms)
