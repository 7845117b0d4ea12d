"""Filling and compacting logs, and reading what is left."""

from __future__ import annotations

from typing import Any

from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.replication.log.compaction import compact
from fakekafka.replication.log.leader_append import append_as_leader


def put(log: Any, tools: Any, *pairs: tuple[str, str | None], **header: Any) -> None:
    records = [
        Record(i, tools.now_ms, key.encode(), None if value is None else value.encode())
        for i, (key, value) in enumerate(pairs)
    ]
    append_as_leader(log, build_batch(records, **header), 0, tools.now_ms)


def compacted(tools: Any, log: Any, now_ms: int = 0) -> Any:
    """Roll the log, raise the high watermark to its end and compact it."""
    log.roll(tools.now_ms)
    log.update_high_watermark(log.log_end_offset)
    return compact(log, now_ms or tools.now_ms, force=True)


def content(log: Any) -> list[tuple[int, str, str | None]]:
    return [
        (r.offset, r.key.decode(), None if r.value is None else r.value.decode())
        for batch in log.batches()
        if not batch.is_control
        for r in batch.records()
    ]
