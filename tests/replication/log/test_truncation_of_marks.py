"""The marks that truncation takes along with the records (docs/kafka/log.md#truncation)."""

from __future__ import annotations

from typing import Any

from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.checkpoint_formats import RECOVERY_POINT_CHECKPOINT
from fakekafka.tests.support.compaction import compacted, content, put
from fakekafka.tests.support.logs import Tools


def test_the_recovery_point_is_not_above_the_end(tools: type[Tools]) -> None:
    """What is written anew below the old one is not flushed: it is not believed after a crash."""
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


def test_a_cut_below_the_log_start_takes_it_along(tools: type[Tools], log: Any) -> None:
    """The records are there yet, in the first segment: the log start becomes the end."""
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
    """A log compacted as a whole, cut, and filled with one key up to where it ended before."""
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


def test_what_is_written_below_the_cleaned_offset_is_dirty(tools: type[Tools]) -> None:
    """Also when the log has become as long as it was by the time it is compacted again."""
    log = cut_and_refilled(tools, lambda log: log.truncate_to(1))
    assert content(log) == [(5, "b", "5")]


def test_a_log_that_starts_anew_is_dirty(tools: type[Tools]) -> None:
    """As one that was cut."""
    log = cut_and_refilled(tools, lambda log: log.truncate_fully_and_start_at(1))
    assert content(log) == [(5, "b", "5")]
