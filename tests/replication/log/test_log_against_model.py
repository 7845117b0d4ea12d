"""A log under random operations agrees with a list, on memory and on files."""

from __future__ import annotations

import tempfile
from typing import Any

from fakekafka.protocol.config import BrokerConfig, TopicConfig
from fakekafka.protocol.records.batch import build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.values import TopicPartition
from fakekafka.replication.disk.disk import Disk
from fakekafka.replication.disk.file_disk import FileDisk
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.retention import delete_old_segments
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

NAME = TopicPartition("t", 0)
NOW_MS = 1_700_000_000_000


class LogAgainstList(RuleBasedStateMachine):
    """The model: a list of (first offset, last offset, epoch), and four marks."""

    def __init__(self) -> None:
        super().__init__()
        self.folder: Any = None

    @initialize(on_files=st.booleans())
    def begin(self, on_files: bool) -> None:
        self.disk: Disk = MemoryDisk()
        if on_files:
            self.folder = tempfile.TemporaryDirectory()
            self.disk = FileDisk(self.folder.name, sync=False)
        self.config = TopicConfig(
            BrokerConfig(), {"segment.bytes": "250", "index.interval.bytes": "80"}
        )
        self.log = self.disk.open_log(NAME, self.config)
        self.batches: list[tuple[int, int, int]] = []
        self.end = self.start = self.mark = self.flushed = 0
        self.epoch = 0

    @rule(count=st.integers(1, 3), new_epoch=st.booleans())
    def append(self, count: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        records = [Record(i, NOW_MS, None, b"v") for i in range(count)]
        info = append_as_leader(self.log, build_batch(records), self.epoch, NOW_MS)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + count - 1)
        self.batches.append((self.end, self.end + count - 1, self.epoch))
        self.end += count

    @rule(offset=st.integers(0, 60))
    def move_high_watermark(self, offset: int) -> None:
        self.mark = min(max(offset, self.start), self.end)
        assert self.log.update_high_watermark(offset) == self.mark

    @rule(back=st.integers(0, 6))
    def truncate(self, back: int) -> None:
        target = max(self.end - back, 0)
        for first, last, _ in self.batches:  # callers give the boundary of a batch
            if first < target <= last:
                target = first
        base = self.log.segments[0].base_offset
        self.log.truncate_to(target)
        if target < self.end:
            self.batches = [b for b in self.batches if b[1] < target] if target >= base else []
            self.end = target
            self.start = min(self.start, target)
            self.mark = min(self.mark, target)
            self.flushed = min(self.flushed, target)

    @rule()
    def delete_records(self) -> None:
        self.log.maybe_increment_log_start_offset(self.mark)
        self.start = max(self.start, self.mark)
        delete_old_segments(self.log, NOW_MS)
        base = self.log.segments[0].base_offset
        assert base <= self.start
        self.batches = [b for b in self.batches if b[0] >= base]

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.disk.checkpoint_log_offsets()
        self.flushed = self.end

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        self.disk.checkpoint_log_offsets()
        if clean:
            self.disk.close()
        else:
            self.disk.kill()
        self._reopen()

    @rule()
    def lose_power(self) -> None:
        self.disk.checkpoint_log_offsets()
        self.flushed = max(self.flushed, self.log.storage.flushed_offset)
        self.disk.power_off()
        self._lose_from(self.flushed)

    @rule(share=st.floats(0, 1))
    def lose_power_in_a_write(self, share: float) -> None:
        """Keep a prefix of the unflushed bytes; a batch cut by its end is lost."""
        self.disk.checkpoint_log_offsets()
        self.flushed = max(self.flushed, self.log.storage.flushed_offset)
        sizes = {b.last_offset: len(b.data) for b in self.log.batches()}
        unflushed = {last: size for last, size in sizes.items() if last >= self.flushed}
        left = int(share * sum(unflushed.values()))
        offered: list[int] = []

        def survives(unflushed_bytes: int) -> int:
            offered.append(unflushed_bytes)
            return int(share * unflushed_bytes)

        self.disk.power_off(torn=survives)
        assert offered == [sum(unflushed.values())] * bool(unflushed)
        for last, size in unflushed.items():
            left -= size
            if left < 0:
                break
            self.flushed = last + 1
        self._lose_from(self.flushed)

    def _lose_from(self, offset: int) -> None:
        self.batches = [b for b in self.batches if b[1] < offset]
        kept_end = self.batches[-1][1] + 1 if self.batches else None
        self._reopen()
        self.end = self.log.log_end_offset
        if kept_end is not None and kept_end >= self.start:
            assert self.end == kept_end
        else:
            assert self.end == self.start
            self.batches = []

    def _reopen(self) -> None:
        self.log = self.disk.open_log(NAME, self.config)
        self.mark = min(self.mark, self.log.log_end_offset)
        self.mark = self.log.update_high_watermark(self.mark)

    @invariant()
    def the_log_holds_what_the_list_holds(self) -> None:
        if not hasattr(self, "log"):
            return
        log = self.log
        stored = [(b.base_offset, b.last_offset, b.partition_leader_epoch) for b in log.batches()]
        assert stored == self.batches
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (
            self.start,
            self.mark,
            self.end,
        )
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark
        starts = [offset for _, offset in log.epochs]
        epochs = [epoch for epoch, _ in log.epochs]
        assert starts == sorted(set(starts))
        assert epochs == sorted(set(epochs))
        for first, last, epoch in self.batches:
            if last >= self.start:
                assert log.end_offset_for_epoch(epoch).end_offset > last
            if self.start <= first < self.end:
                assert log.read(first, 1, self.end).batches[0].base_offset == first

    def teardown(self) -> None:
        if self.folder is not None:
            self.disk.kill()
            self.folder.cleanup()


TestLogAgainstList = LogAgainstList.TestCase
