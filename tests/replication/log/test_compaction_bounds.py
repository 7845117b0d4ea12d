"""How far compaction reaches, and when a log is dirty enough for it
(docs/kafka/log.md#compaction)."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.replication.log.compaction import compact, first_uncleanable_offset
from fakekafka.tests.support.compaction import compacted, content, put
from fakekafka.tests.support.logs import Tools


def log_of_one_key(tools: type[Tools], count: int, **overrides: Any) -> Any:
    """A log of records of one key, one per segment, the last segment closed; no record is
    replicated."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100, **overrides)
    for number in range(count):
        put(log, tools, ("k", str(number)))
    log.roll(tools.now_ms)
    return log


def remaining_offsets(log: Any) -> list[int]:
    return [offset for offset, _, _ in content(log)]


@pytest.mark.parametrize(
    ("high_watermark", "kept"),
    [(0, [0, 1, 2, 3]), (1, [0, 1, 2, 3]), (2, [1, 2, 3]), (3, [2, 3]), (4, [3])],
)
def test_unreplicated_records_are_not_compacted(
    tools: type[Tools], high_watermark: int, kept: list[int]
) -> None:
    """A record is not removed for a later one that is not replicated, as another leader may lack
    that one."""
    log = log_of_one_key(tools, 4)
    log.update_high_watermark(high_watermark)
    assert first_uncleanable_offset(log, tools.now_ms) == high_watermark
    compact(log, tools.now_ms, force=True)
    assert remaining_offsets(log) == kept


@pytest.mark.parametrize("first", [0, 1, 2])
def test_records_behind_an_open_transaction_are_not_compacted(
    tools: type[Tools], first: int
) -> None:
    """Records from the oldest open transaction on are not compacted, even if all are replicated."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100)
    for number in range(first):
        put(log, tools, ("k", str(number)))
    header = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    put(log, tools, ("k", "open"), is_transactional=True, **header)
    for number in range(2):
        put(log, tools, ("k", str(number)))
    log.roll(tools.now_ms)
    log.update_high_watermark(log.log_end_offset)
    assert first_uncleanable_offset(log, tools.now_ms) == first
    compact(log, tools.now_ms, force=True)
    assert remaining_offsets(log) == list(range(max(0, first - 1), first + 3))


def test_a_transaction_is_open_until_its_marker_is_replicated(tools: type[Tools]) -> None:
    """Below the high watermark compaction also stops at a transaction whose marker is not
    replicated."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100)
    put(log, tools, ("k", "0"))
    header = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    put(log, tools, ("k", "1"), is_transactional=True, **header)
    tools.end(log, 1, True)
    log.roll(tools.now_ms)
    log.update_high_watermark(2)
    assert first_uncleanable_offset(log, tools.now_ms) == 1
    log.update_high_watermark(3)
    assert first_uncleanable_offset(log, tools.now_ms) == 3


def test_a_record_as_old_as_the_lag_may_go(tools: type[Tools]) -> None:
    """Only records younger than ``min.compaction.lag.ms`` are protected."""
    log = log_of_one_key(tools, 2, min_compaction_lag_ms=1000)
    log.update_high_watermark(2)
    assert compact(log, tools.now_ms + 999, force=True) is None
    assert compact(log, tools.now_ms + 1000, force=True) is not None
    assert remaining_offsets(log) == [1]


@pytest.mark.parametrize(("clean", "dirty", "is_due"), [(3, 2, False), (2, 2, False), (2, 3, True)])
def test_the_ratio_itself_is_not_dirty_enough(
    tools: type[Tools], clean: int, dirty: int, is_due: bool
) -> None:
    """In every version the dirty share of a log's bytes must exceed
    ``min.cleanable.dirty.ratio``."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100, min_cleanable_dirty_ratio=0.5)
    for number in range(clean):
        put(log, tools, (f"k{number}", "v"))
    assert compacted(tools, log).bytes_after == log.size_in_bytes
    for number in range(dirty):
        put(log, tools, (f"d{number}", "v"))
    log.roll(tools.now_ms)
    log.update_high_watermark(log.log_end_offset)
    assert log.size_in_bytes % (clean + dirty) == 0
    assert (compact(log, tools.now_ms) is not None) == is_due
