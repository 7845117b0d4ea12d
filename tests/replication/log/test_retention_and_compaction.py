"""Deleting old segments and compacting by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakekafka.protocol.data import AbortedTransaction
from fakekafka.replication.disk.disk import Disk
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.compaction import compact
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import aborted_transactions
from fakekafka.replication.log.retention import delete_old_segments
from fakekafka.tests.support.compaction import compacted, content, put
from fakekafka.tests.support.logs import Tools
from fakekafka.tests.support.present import present

DAY_MS = 86_400_000


def filled(tools: type[Tools], count: int, **overrides: Any) -> Any:
    """A log of one 69-byte record per batch, two batches per segment, ten ms apart."""
    log = tools.log(segment_bytes=140, **overrides)
    for number in range(count):
        data = tools.data(b"v", times=[tools.now_ms + 10 * number])
        append_as_leader(log, data, 0, tools.now_ms)
    log.update_high_watermark(count)
    return log


def bases(log: Any) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_time_retention(tools: type[Tools]) -> None:
    """Segments whose largest timestamp is too old are deleted, and the log start follows."""
    log = filled(tools, 6, retention_ms=100)
    assert delete_old_segments(log, tools.now_ms + 110) == 0
    assert delete_old_segments(log, tools.now_ms + 111) == 1
    assert (bases(log), log.log_start_offset) == ([2, 4], 2)


def test_whole_log_may_expire(tools: type[Tools]) -> None:
    """The active segment may expire, too, after a new empty one was rolled, which stays."""
    log = filled(tools, 5, retention_ms=100)
    assert delete_old_segments(log, tools.now_ms + 10_000) == 3
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([5], 5, 5)
    assert delete_old_segments(log, tools.now_ms + 20_000) == 0


@pytest.mark.parametrize(("limit", "left"), [(280, [2, 4]), (274, [2, 4]), (137, [4]), (-1, None)])
def test_size_retention(tools: type[Tools], limit: int, left: list[int] | None) -> None:
    """Only whole segments beyond ``retention.bytes`` are deleted, oldest first."""
    log = filled(tools, 6, retention_bytes=limit, retention_ms=-1)
    size = log.segments[0].size
    log.update_config(
        tools.config(retention_bytes=-1 if left is None else len(left) * size, retention_ms=-1)
    )
    delete_old_segments(log, tools.now_ms)
    assert bases(log) == (left or [0, 2, 4])


def test_high_watermark_protects(tools: type[Tools]) -> None:
    """DP-28: segments at or above the high watermark are never deleted."""
    log = filled(tools, 6, retention_ms=1)
    log.update_high_watermark(3)
    delete_old_segments(log, tools.now_ms + DAY_MS)
    assert bases(log) == [2, 4]


@pytest.mark.parametrize(("version", "left"), [("0.10", [6]), ("1.1", [2, 4]), ("2.8", [2, 4])])
def test_before_1_0_unreplicated_records_expire_too(
    tools: type[Tools], version: str, left: list[int]
) -> None:
    """KAFKA-5634: 0.10 considers time alone; the high watermark follows the log start."""
    log = filled(tools, 6, kafka_version=version, retention_ms=1)
    log.high_watermark = 3
    delete_old_segments(log, tools.now_ms + DAY_MS)
    assert bases(log) == left
    assert (log.log_start_offset, log.high_watermark) == (left[0], max(3, left[0]))


def test_segments_below_the_log_start_go_whatever_the_policy(tools: type[Tools]) -> None:
    """DeleteRecords frees segments, on compacted topics as well."""
    log = filled(tools, 6, cleanup_policy="delete", retention_ms=-1)
    log.update_config(tools.config(cleanup_policy="compact", retention_ms=1))
    log.maybe_increment_log_start_offset(4)
    assert delete_old_segments(log, tools.now_ms + DAY_MS) == 2
    assert bases(log) == [4]


def test_records_without_time_age_by_the_last_write(tools: type[Tools]) -> None:
    """Segments without timestamps expire by the time they were last written."""
    log = tools.log(retention_ms=100)
    append_as_leader(log, tools.data(b"v", times=[-1]), 0, 1000)
    log.update_high_watermark(1)
    assert delete_old_segments(log, 1100) == 0
    assert delete_old_segments(log, 1101) == 1


# -- compaction -----------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    return MemoryDisk() if request.param == "memory" else FileDisk(tmp_path, sync=False)


def test_last_record_of_a_key_stays(tools: type[Tools], disk: Disk) -> None:
    """The last record of each key keeps its offset, and survives a restart."""
    config = tools.config(cleanup_policy="compact", segment_bytes=200)
    log = disk.open_log(tools.name, config)
    put(log, tools, ("a", "1"), ("b", "1"))
    put(log, tools, ("a", "2"), ("c", "1"))
    put(log, tools, ("a", "3"))
    result = compacted(tools, log)
    expected = [(1, "b", "1"), (3, "c", "1"), (4, "a", "3")]
    assert content(log) == expected
    assert result.first_dirty_offset == 5
    assert result.bytes_after < result.bytes_before
    assert log.read(0, 1000, 5).batches[0].base_offset == 0
    assert all(batch.is_intact() for batch in log.batches())
    disk.kill()
    log = disk.open_log(tools.name, config)
    assert (content(log), log.log_end_offset) == (expected, 5)
    assert compact(log, tools.now_ms) is None


def test_active_segment_is_left_alone(tools: type[Tools]) -> None:
    """The active segment keeps every record."""
    log = tools.log(cleanup_policy="compact")
    put(log, tools, ("a", "1"))
    put(log, tools, ("a", "2"))
    log.update_high_watermark(2)
    assert compact(log, tools.now_ms, force=True) is None
    compacted(tools, log)
    put(log, tools, ("a", "3"))
    assert content(log) == [(1, "a", "2"), (2, "a", "3")]


def test_dirty_ratio_decides(tools: type[Tools]) -> None:
    """A log with too few dirty bytes is not compacted, unless the maximum lag has passed."""
    log = tools.log(cleanup_policy="compact", min_cleanable_dirty_ratio=0.9)
    for number in range(10):
        put(log, tools, (f"k{number}", "x" * 20))
    assert compacted(tools, log) is not None
    put(log, tools, ("k0", "y"))
    log.roll(tools.now_ms)
    log.update_high_watermark(log.log_end_offset)
    assert compact(log, tools.now_ms) is None
    log.update_config(
        tools.config(
            cleanup_policy="compact", min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=50
        )
    )
    assert compact(log, tools.now_ms + 51) is not None
    assert compact(log, tools.now_ms + 52) is None


def test_young_records_are_left_alone(tools: type[Tools]) -> None:
    """Records younger than ``min.compaction.lag.ms`` are kept."""
    log = tools.log(cleanup_policy="compact", min_compaction_lag_ms=1000)
    put(log, tools, ("a", "1"))
    put(log, tools, ("a", "2"))
    assert compacted(tools, log) is None
    assert compact(log, tools.now_ms + 1001, force=True) is not None
    assert content(log) == [(1, "a", "2")]


def test_other_policies_are_not_compacted(tools: type[Tools]) -> None:
    """Topics without the policy are left alone."""
    log = tools.log()
    put(log, tools, ("a", "1"), ("a", "2"))
    assert compacted(tools, log) is None
    assert len(content(log)) == 2


def test_tombstones_go_after_their_retention(tools: type[Tools], disk: Disk) -> None:
    """A tombstone is removed ``delete.retention.ms`` after the first pass that found it."""
    log = disk.open_log(tools.name, tools.config(cleanup_policy="compact"))
    put(log, tools, ("a", "1"), ("b", "1"))
    put(log, tools, ("a", None))
    compacted(tools, log)
    assert content(log) == [(1, "b", "1"), (2, "a", None)]
    tombstone = list(log.batches())[-1]
    assert tombstone.delete_horizon_ms == tools.now_ms + DAY_MS
    assert tombstone.records()[0].timestamp == tools.now_ms
    put(log, tools, ("c", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS - 1)
    assert (2, "a", None) in content(log)
    put(log, tools, ("d", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS)
    assert content(log) == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def test_last_sequence_of_a_producer_survives(tools: type[Tools]) -> None:
    """The last batch of a producer stays, empty, so that its sequence remains known."""
    log = tools.log(cleanup_policy="compact")
    header = {"producer_id": 7, "producer_epoch": 0}
    put(log, tools, ("a", "1"), base_sequence=0, **header)
    put(log, tools, ("a", "2"), base_sequence=1, **header)
    put(log, tools, ("a", "3"))
    compacted(tools, log)
    assert content(log) == [(2, "a", "3")]
    empty = next(iter(log.batches()))
    assert (empty.base_offset, empty.record_count, empty.base_sequence) == (1, 0, 1)
    log.storage.snapshots = None
    log._reload_producers()
    assert present(log.producers).entries[7].last_sequence == 1


def test_the_marker_of_an_empty_transaction_is_removed(tools: type[Tools]) -> None:
    """The marker is removed although an earlier transaction's data is there, as that is not its
    own."""
    log = tools.log(cleanup_policy="compact")
    header = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    put(log, tools, ("a", "1"), is_transactional=True, **header)
    tools.end(log, 1, True)
    tools.end(log, 1, True)
    compacted(tools, log)
    assert [b.delete_horizon_ms for b in log.batches() if b.is_control] == [
        None,
        tools.now_ms + DAY_MS,
    ]


def test_aborted_records_are_removed_and_then_their_marker(tools: type[Tools], disk: Disk) -> None:
    """Aborted records are removed at once, their marker a retention time later; committed ones
    stay."""
    log = disk.open_log(tools.name, tools.config(cleanup_policy="compact"))
    put(log, tools, ("a", "kept"))
    for producer, value in ((1, "aborted"), (2, "committed")):
        header = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
        put(log, tools, ("a" if producer == 1 else "b", value), is_transactional=True, **header)
        tools.end(log, producer, producer == 2)
    header = {"producer_id": 1, "producer_epoch": 0}
    put(log, tools, ("z", "1"), base_sequence=1, **header)
    compacted(tools, log)
    assert content(log) == [(0, "a", "kept"), (3, "b", "committed"), (5, "z", "1")]
    assert [b.base_offset for b in log.batches() if b.is_control] == [2, 4]
    assert aborted_transactions(log, 0, 6) == [AbortedTransaction(1, 1)]
    put(log, tools, ("y", "1"))
    compacted(tools, log)
    assert [b.delete_horizon_ms for b in log.batches() if b.is_control] == [
        tools.now_ms + DAY_MS,
        None,
    ]
    put(log, tools, ("x", "1"))
    compacted(tools, log, tools.now_ms + DAY_MS)
    assert [b.base_offset for b in log.batches() if b.is_control] == [4]
    assert aborted_transactions(log, 0, 6) == []


def test_open_transaction_stops_compaction(tools: type[Tools]) -> None:
    """Nothing at or above the last stable offset is cleaned."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100)
    put(log, tools, ("a", "1"))
    put(log, tools, ("a", "2"))
    header = {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    put(log, tools, ("a", "3"), is_transactional=True, **header)
    put(log, tools, ("a", "4"))
    result = compacted(tools, log)
    assert result.first_dirty_offset == 2
    assert [offset for offset, _, _ in content(log)] == [1, 2, 3]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_codec_is_kept(tools: type[Tools], codec: str) -> None:
    """Rewritten batches are compressed as before."""
    log = tools.log(cleanup_policy="compact")
    put(log, tools, ("a", "1"), ("b", "1"), compression=codec)
    put(log, tools, ("a", "2"), compression=codec)
    compacted(tools, log)
    assert {batch.compression for batch in log.batches()} == {1 if codec == "gzip" else 4}
    assert content(log) == [(1, "b", "1"), (2, "a", "2")]


def test_small_segments_are_merged(tools: type[Tools]) -> None:
    """Adjacent segments that fit into one are merged."""
    log = tools.log(cleanup_policy="compact", segment_bytes=150)
    for number in range(6):
        put(log, tools, (f"k{number % 2}", "v"))
    before = len(log.segments)
    log.update_config(tools.config(cleanup_policy="compact"))
    compacted(tools, log)
    assert before > 2
    assert bases(log) == [0, 6]
    assert content(log) == [(4, "k0", "v"), (5, "k1", "v")]


def test_truncation_makes_cleaned_offsets_dirty(tools: type[Tools]) -> None:
    """Records written below the cleaned offset after a truncation are compacted again."""
    log = tools.log(cleanup_policy="compact", min_cleanable_dirty_ratio=0)
    for number in range(4):
        put(log, tools, ("a", str(number)))
    compacted(tools, log)
    log.truncate_to(1)
    put(log, tools, ("b", "1"))
    put(log, tools, ("b", "2"))
    compacted(tools, log)
    assert content(log) == [(2, "b", "2")]
