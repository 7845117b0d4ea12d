"""Batches of which compaction keeps only the header, which has the state of their producer."""

from __future__ import annotations

import pytest
from fakekafka.protocol.records.compression import CODEC_IDS
from fakekafka.tests.support.compaction import compacted, content, put
from fakekafka.tests.support.logs import Tools

DAY_MS = 86_400_000
HEADER = {"producer_id": 7, "producer_epoch": 0}


@pytest.mark.parametrize("codec", sorted(CODEC_IDS))
def test_an_emptied_batch_is_not_compressed(tools: type[Tools], codec: str) -> None:
    """An emptied batch has no data to compress; it is read and compacted again like any other
    batch."""
    log = tools.log(cleanup_policy="compact")
    put(log, tools, ("a", "1"), base_sequence=0, compression=codec, **HEADER)
    put(log, tools, ("a", "2"), compression=codec)
    compacted(tools, log)
    empty = next(iter(log.batches()))
    assert (empty.record_count, empty.compression, empty.base_sequence) == (0, 0, 0)
    assert empty.records() == []
    put(log, tools, ("a", "3"))
    assert compacted(tools, log) is not None
    assert next(iter(log.batches())) == empty
    assert content(log) == [(2, "a", "3")]


def test_an_emptied_batch_has_no_delete_horizon(tools: type[Tools]) -> None:
    """Kafka rewrites the header of an emptied batch without base timestamp; the greatest timestamp
    stays."""
    log = tools.log(cleanup_policy="compact")
    put(log, tools, ("a", None), base_sequence=0, **HEADER)
    compacted(tools, log)
    assert next(iter(log.batches())).delete_horizon_ms == tools.now_ms + DAY_MS
    put(log, tools, ("b", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS)
    empty = next(iter(log.batches()))
    assert (empty.record_count, empty.delete_horizon_ms) == (0, None)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, tools.now_ms)


def test_an_emptied_marker_is_removed_with_its_producer(tools: type[Tools]) -> None:
    """An emptied marker stays as long as the epoch of its producer is known by no other batch."""
    log = tools.log(cleanup_policy="compact")
    tools.end(log, 7, True)
    put(log, tools, ("a", "1"))
    compacted(tools, log)
    put(log, tools, ("b", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS)
    assert [b.record_count for b in log.batches() if b.is_control] == [0]
    log.remove_expired_producers(tools.now_ms + DAY_MS, DAY_MS)
    put(log, tools, ("c", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS)
    assert [b for b in log.batches() if b.is_control] == []
