"""Pages of a partition's records, newest first, for which only the batches shown are decoded."""

from __future__ import annotations

import base64
import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import MalformedRecords
from ...protocol.values import TopicPartition
from ...replication.log.lookups import offset_for_timestamp
from ...replication.log.segments import segment_index, walk
from ...testing.handles.partitions import Partitions

if TYPE_CHECKING:
    from ...protocol.records.format import Record
    from ...replication.log.log import Log
    from ...testing.cluster import Cluster

LIMIT, LIMIT_MAX = 50, 500
SHOWN_BYTES, SHOWN_BYTES_MAX = 4096, 1 << 20
_BATCHES_MAX = 5000
"""Maximum number of batches read for one page: batches of a compacted log may be empty."""
_PAGE_BYTES = 8 << 20


class PageRequest(NamedTuple):
    """The requested page: before an offset, from an offset on, from a timestamp on, or by default
    at the end of the log."""

    limit: int = LIMIT
    before: int | None = None
    offset: int | None = None
    timestamp: int | None = None


class PageBatches(NamedTuple):
    """The batches with the records of a page, and the offsets of the log."""

    batches: list[RecordBatch]
    """Batches in the order of the log."""
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    first: int
    """Lowest offset that the page may contain."""
    before: int
    """End of the offsets that the page may contain, exclusive."""
    is_forward: bool
    """True if the page starts at ``first``, False if it ends at ``before``."""


def _read_batches(wanted: PageRequest, log: Log) -> PageBatches:
    start, end = log.log_start_offset, log.log_end_offset
    offset = wanted.offset
    if wanted.timestamp is not None:
        found = offset_for_timestamp(log, wanted.timestamp)
        offset = end if found is None else found.offset
    if offset is None:
        before = end if wanted.before is None else min(max(wanted.before, start), end)
        batches = _backwards(log, start, before, wanted.limit)
        return PageBatches(batches, start, log.high_watermark, end, start, before, False)
    first = min(max(offset, start), end)
    batches = _forwards(log, first, wanted.limit) if first < end else []
    return PageBatches(batches, start, log.high_watermark, end, first, end, True)


def _forwards(log: Log, first: int, limit: int) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    count = 0
    for batch in walk(log.segments, first):
        batches.append(batch)
        count += min(batch.record_count, batch.last_offset + 1 - first)
        if count >= limit or len(batches) >= _BATCHES_MAX:
            break
    return batches


def _backwards(log: Log, start: int, before: int, limit: int) -> list[RecordBatch]:
    batches: list[RecordBatch] = []
    count = 0
    if before <= start:
        return batches
    segments = log.segments
    for index in range(segment_index(segments, before - 1), -1, -1):
        stored = segments[index].stored
        last = min(segments[index].find(before - 1), len(stored) - 1)
        for position in range(last, -1, -1):
            batch = RecordBatch.from_bytes(stored[position])
            if batch.last_offset < start or len(batches) >= _BATCHES_MAX:
                return batches[::-1]
            batches.append(batch)
            count += min(batch.record_count, before - batch.base_offset)
            if count >= limit:
                return batches[::-1]
    return batches[::-1]


def _encoded(data: bytes | None, bytes_max: int) -> tuple[str | None, int]:
    """Return the first ``bytes_max`` bytes in base64, and the total number of bytes."""
    if data is None:
        return None, 0
    return base64.b64encode(data[:bytes_max]).decode(), len(data)


def _shown(
    record: Record, batch: RecordBatch, high_watermark: int, bytes_max: int
) -> dict[str, Any]:
    key, key_bytes = _encoded(record.key, bytes_max)
    value, value_bytes = _encoded(record.value, bytes_max)
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": key,
        "key_bytes": key_bytes,
        "value": value,
        "value_bytes": value_bytes,
        "headers": [[name, _encoded(data, bytes_max)[0]] for name, data in record.headers],
        "is_control": batch.is_control,
        "is_transactional": batch.is_transactional,
        "is_replicated": record.offset < high_watermark,
    }


def record_page(
    cluster: Cluster,
    key: TopicPartition,
    wanted: PageRequest,
    *,
    replica: int | None = None,
    shown_bytes: int = SHOWN_BYTES,
) -> dict[str, Any]:
    """Return a page of records as JSON, newest first, with the offsets of the adjacent pages.

    Raises ``UsageError`` for an unknown partition, ``NotThereYet`` if it has no leader.
    """
    view = cluster.partition(key.topic, key.partition)
    broker_id = view.leader if replica is None else replica
    read = functools.partial(_read_batches, wanted)
    page = Partitions(cluster.running).read_log(key, broker_id, read)
    records = _records(page, wanted.limit, shown_bytes)
    first = (
        records[-1]["offset"]
        if records
        else min((b.base_offset for b in page.batches), default=page.first)
    )
    last = records[0]["offset"] if records else page.before - 1
    return {
        "broker": broker_id,
        "log_start_offset": page.log_start_offset,
        "high_watermark": page.high_watermark,
        "log_end_offset": page.log_end_offset,
        "earlier": first if first > page.log_start_offset else None,
        "later": last + 1 if last + 1 < page.log_end_offset else None,
        "records": records,
    }


def _records(page: PageBatches, limit: int, shown_bytes: int) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    remaining_bytes = _PAGE_BYTES
    for batch in page.batches if page.is_forward else reversed(page.batches):
        try:
            records = batch.records()
        except MalformedRecords as error:
            shown.append({"offset": batch.base_offset, "error": str(error)})
            continue
        inside = [one for one in records if page.first <= one.offset < page.before]
        for record in inside if page.is_forward else reversed(inside):
            if len(shown) >= limit:
                break
            one = _shown(record, batch, page.high_watermark, min(shown_bytes, remaining_bytes))
            remaining_bytes -= len(one["key"] or "") + len(one["value"] or "")
            remaining_bytes = max(remaining_bytes, 0)
            shown.append(one)
    return shown[::-1] if page.is_forward else shown
