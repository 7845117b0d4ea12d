"""The offsets that a truncation lowers (docs/kafka/log.md#truncation)."""

from __future__ import annotations

from typing import Any

from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.checkpoint_formats import RECOVERY_POINT_CHECKPOINT
from fakekafka.tests.support.compaction import compacted, content, put
from fakekafka.tests.support.logs import Tools


def test_the_recovery_point_is_not_above_the_end(tools: type[Tools]) -> None:
    """A truncation lowers the recovery point, so that records written anew below the old one count
    as unflushed after a crash."""
    disk = MemoryDisk()
    log = tools.fill(disk.open_log(tools.name, tools.config()), 5)
    log.flush()
    log.truncate_to(2)
    assert log.recovery_point == 2
    tools.fill(log, 3)
    assert log.recovery_point == 2
    disk.checkpoint_log_offsets()
    assert disk.read_checkpoint(RECOVERY_POINT_CHECKPOINT) == {tools.name: 2}
    disk.power_off()
    assert disk.open_log(tools.name, tools.config()).log_end_offset == 2


def test_a_recovery_point_below_the_cut_stays(tools: type[Tools], log: Any) -> None:
    tools.fill(log, 2)
    log.flush()
    tools.fill(log, 3)
    log.truncate_to(4)
    assert log.recovery_point == 2


def test_a_truncation_below_the_log_start_lowers_the_log_start(
    tools: type[Tools], log: Any
) -> None:
    """A truncation below the log start, but in the first segment, makes the log end the log
    start."""
    tools.fill(log, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(4)
    log.truncate_to(2)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 2, 2)
    tools.fill(log, 1)
    assert log.read(2, 1000, 3).batches[0].base_offset == 2


def test_a_log_start_below_the_cut_stays(tools: type[Tools], log: Any) -> None:
    tools.fill(log, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(1)
    log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (1, 3)


def cut_and_refilled(tools: type[Tools], cut: Any) -> Any:
    """A log compacted completely, truncated, and filled with one key up to its former end."""
    log = tools.log(cleanup_policy="compact", segment_bytes=100, min_cleanable_dirty_ratio=0)
    for number in range(4):
        put(log, tools, ("a", str(number)))
    compacted(tools, log)
    assert log.storage.cleaned_offset(tools.name) == 4
    cut(log)
    assert log.storage.cleaned_offset(tools.name) == 1
    while log.log_end_offset < 6:
        put(log, tools, ("b", str(log.log_end_offset)))
    compacted(tools, log)
    return log


def test_records_written_below_the_cleaned_offset_are_dirty(tools: type[Tools]) -> None:
    """Records written below the cleaned offset are dirty, even if the log has its former length at
    the next compaction."""
    log = cut_and_refilled(tools, lambda log: log.truncate_to(1))
    assert content(log) == [(5, "b", "5")]


def test_a_fully_truncated_log_is_dirty(tools: type[Tools]) -> None:
    """A fully truncated log is dirty, like one that was truncated."""
    log = cut_and_refilled(tools, lambda log: log.truncate_fully_and_start_at(1))
    assert content(log) == [(5, "b", "5")]
