"""The memory that replicas need per batch, and reading from it without a gap."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from fakekafka.protocol.config import LONG_MAX
from fakekafka.protocol.records.batch import whole_batches
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.log import Log
from fakekafka.replication.log.lookups import offset_for_timestamp
from fakekafka.replication.log.segments import segment_index
from fakekafka.tests.support.logs import Tools

BIG = 1 << 30


def follow(leader: Log, follower: Log) -> None:
    """Copy all records, a few batches at a time."""
    while follower.log_end_offset < leader.log_end_offset:
        end = leader.log_end_offset
        read = leader.read(follower.log_end_offset, 20_000, end)
        append_as_follower(follower, whole_batches(read.batches))


def contents(log: Log) -> list[bytes | None]:
    return [record.value for record in log.records()]


@pytest.mark.parametrize("factor", [1, 3, 5])
def test_single_records_of_a_kilobyte_cost_at_most_a_tenth_more(
    tools: type[Tools], factor: int
) -> None:
    """With one batch per record, the worst case, the state kept per batch costs at most a tenth
    more."""
    leader = tools.log()
    followers = [tools.log() for _ in range(factor - 1)]
    data = [tools.data(b"x" * 1000, times=[tools.now_ms + number // 5]) for number in range(1000)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for one in data:
            append_as_leader(leader, one, 0, tools.now_ms)
        for follower in followers:
            follow(leader, follower)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert leader.size_in_bytes <= grown <= 1.1 * leader.size_in_bytes


def test_replicas_share_the_bytes_of_every_batch(tools: type[Tools]) -> None:
    leader, follower = tools.fill(tools.log(), 20), tools.log()
    follow(leader, follower)
    ours, theirs = leader.active.stored, follower.active.stored
    assert len(ours) == 20
    assert all(mine is yours for mine, yours in zip(ours, theirs, strict=True))


def test_views_find_the_batches_of_a_range_of_offsets(tools: type[Tools]) -> None:
    log = tools.log()
    for values in ([b"a"], [b"b", b"c", b"d"], [b"e", b"f"]):
        append_as_leader(log, tools.data(*values), 3, tools.now_ms)
    edges = [(0, 0), (1, 3), (4, 5)]
    assert [(one.base_offset, one.last_offset) for one in log.active.batches] == edges
    assert [(one.base_offset, one.last_offset) for one in log.active.views(1, 3)] == edges[1:]
    assert log.active.views(2, 3)[0].partition_leader_epoch == 3
    assert log.active.views(2, 2) == []
    assert log.active.views(3, 3) == []


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_log_truncated_to_its_start_is_empty_and_can_be_appended_to(
    tools: type[Tools], count: int
) -> None:
    log = tools.fill(tools.log(), count)
    log.truncate_to(0)
    assert (log.log_end_offset, log.size_in_bytes, contents(log)) == (0, 0, [])
    assert log.active.last_batch is None
    append_as_leader(log, tools.data(b"new"), 0, tools.now_ms)
    assert contents(log) == [b"new"]


@pytest.mark.parametrize("keep", [1, 4, 5])
def test_a_cut_log_ends_with_the_batch_before_the_cut(tools: type[Tools], keep: int) -> None:
    log = tools.fill(tools.log(), 6)
    log.truncate_to(keep)
    last = log.active.last_batch
    assert last is not None
    assert (last.base_offset, log.active.next_offset, log.log_end_offset) == (keep - 1, keep, keep)
    assert [one.base_offset for one in log.read(0, BIG, keep).batches] == list(range(keep))


def test_a_read_ends_below_its_bound_wherever_that_lies(tools: type[Tools]) -> None:
    """The bound of a read may be inside a batch, at its edge, in another segment, or at the end."""
    log = tools.log(segment_bytes=400)
    for _ in range(12):
        append_as_leader(log, tools.data(b"a", b"b", b"c"), 0, tools.now_ms)
    assert len(log.segments) == 3
    for start in range(36):
        for bound in range(start, 37):
            batches = log.read(start, BIG, bound).batches
            segment = log.segments[segment_index(log.segments, start)]
            expected = [
                one.base_offset
                for one in segment.batches
                if one.last_offset >= start and one.last_offset < bound
            ]
            assert [one.base_offset for one in batches] == expected


def test_a_time_is_found_among_many_small_batches(tools: type[Tools]) -> None:
    """Timestamps rise and fall; the index that narrows the search never skips the first match."""
    rng = random.Random(5)
    times = [1000 + number // 3 + rng.randrange(-20, 20) for number in range(300)]
    log = tools.log(index_interval_bytes=100, message_timestamp_difference_max_ms=LONG_MAX)
    for time in times:
        append_as_leader(log, tools.data(b"v", times=[time]), 0, 1000)
    assert log.active.first_batch_with_time(max(times)) > 200
    for wanted in range(min(times) - 1, max(times) + 1):
        found = offset_for_timestamp(log, wanted)
        expected = next(offset for offset, time in enumerate(times) if time >= wanted)
        assert found is not None
        assert (found.offset, found.timestamp) == (expected, times[expected])
    assert offset_for_timestamp(log, max(times) + 1) is None
