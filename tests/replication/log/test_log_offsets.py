"""The offsets of a log: appending, reading, high watermark, truncation, log start."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from fakekafka.protocol.data import MAX_TIMESTAMP, EpochEndOffset
from fakekafka.protocol.errors import ErrorCode, InvariantError, KafkaError
from fakekafka.protocol.records.batch import RecordBatch, whole_batches
from fakekafka.replication.log.follower_append import append_as_follower, append_next
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import legacy_fetch_offsets_before, offset_for_timestamp
from fakekafka.replication.log.results import OffsetsOutOfOrder, UnexpectedAppendOffset
from fakekafka.replication.log.retention import delete_old_segments
from fakekafka.replication.log.segment import RELATIVE_OFFSET_MAX
from fakekafka.tests.support.logs import Tools
from fakekafka.tests.support.present import present

BIG = 1 << 30


def marks(log: Any) -> tuple[int, int, int]:
    return log.log_start_offset, log.high_watermark, log.log_end_offset


def test_appending_assigns_offsets_and_leaves_the_high_watermark(
    tools: type[Tools], log: Any
) -> None:
    """DP-108: appending moves only the log end."""
    first = append_as_leader(log, tools.data(b"a", b"b"), 3, tools.now_ms)
    second = append_as_leader(log, tools.data(b"c"), 3, tools.now_ms)
    assert (first.first_offset, first.last_offset, second.first_offset) == (0, 1, 2)
    assert marks(log) == (0, 0, 3)
    assert [r.value for r in log.records()] == [b"a", b"b", b"c"]
    assert all(batch.is_intact() for batch in log.batches())


def test_high_watermark_is_clamped(tools: type[Tools], log: Any) -> None:
    """DP-108: updating the high watermark to 5 with log end 3 gives 3; it is never below the log
    start."""
    tools.fill(log, 3)
    assert log.update_high_watermark(5) == 3
    log.maybe_increment_log_start_offset(2)
    assert log.update_high_watermark(0) == 2


def test_truncation_pulls_the_high_watermark(tools: type[Tools], log: Any) -> None:
    """DP-108: truncating to 3 lowers a high watermark of 6 to 3."""
    tools.fill(log, 10)
    log.update_high_watermark(6)
    assert log.truncate_to(3)
    assert marks(log) == (0, 3, 3)
    assert log.recovery_point <= 3


def test_full_truncation_starts_over(tools: type[Tools], log: Any) -> None:
    """DP-108: truncating fully to 4 sets log start, high watermark and log end to 4."""
    tools.fill(log, 10, epoch=2)
    log.update_high_watermark(6)
    log.truncate_fully_and_start_at(4)
    assert marks(log) == (4, 4, 4)
    assert (log.epochs, log.size_in_bytes) == ((), 0)
    tools.fill(log, 1, epoch=5)
    assert (log.log_end_offset, log.epochs) == (5, ((5, 4),))


@pytest.mark.parametrize("offset", [4, 7])
def test_truncating_past_the_end_drops_a_dangling_epoch(
    tools: type[Tools], log: Any, offset: int
) -> None:
    """DP-109: an epoch without records that began at the log end is removed; the data stays."""
    tools.fill(log, 4)
    log.assign_epoch_start_offset(3, 4)
    assert not log.truncate_to(offset)
    assert (log.log_end_offset, log.latest_epoch) == (4, 0)
    assert log.end_offset_for_epoch(3) == EpochEndOffset(-1, -1)


def test_truncating_below_the_first_segment_starts_over(tools: type[Tools]) -> None:
    """A truncation below all segments empties the log and starts it at the target."""
    log = tools.log(segment_bytes=100)
    tools.fill(log, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(3)
    delete_old_segments(log, tools.now_ms)
    assert log.segments[0].base_offset == 3
    assert log.truncate_to(1)
    assert marks(log) == (1, 1, 1)


def test_truncation_across_segments(tools: type[Tools]) -> None:
    """Later segments are deleted; the segment with the target is cut before the batch that reaches
    it."""
    log = tools.log(segment_bytes=200)
    for _ in range(6):
        append_as_leader(log, tools.data(b"a", b"b"), 0, tools.now_ms)
    assert len(log.segments) > 2
    log.truncate_to(6)
    assert [b.last_offset for b in log.batches()] == [1, 3, 5]
    tools.fill(log, 1)
    assert log.log_end_offset == 7


def test_negative_truncation_is_an_error(log: Any) -> None:
    """A truncation to an offset below zero is an error."""
    with pytest.raises(ValueError, match="cannot truncate"):
        log.truncate_to(-1)


# -- reading --------------------------------------------------------------------------------------


def test_reading_at_the_edges(tools: type[Tools], log: Any) -> None:
    """DP-113: a read at the log end is empty; below the start and above the end it is out of
    range."""
    tools.fill(log, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(2)
    assert log.read(5, BIG, 5).batches == ()
    for offset in (1, 6):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, BIG, 5)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_reading_in_a_gap_returns_the_next_batch(tools: type[Tools], log: Any) -> None:
    """DP-113: a read at an offset that compaction removed returns the next batch."""
    append_as_follower(log, [tools.batch_at(0), tools.batch_at(7, 2)])
    assert [b.base_offset for b in log.read(3, BIG, 9).batches] == [7]


def test_reading_starts_with_the_batch_that_holds_the_offset(tools: type[Tools], log: Any) -> None:
    """A read returns whole batches, with records before the offset."""
    for _ in range(4):
        append_as_leader(log, tools.data(b"a", b"b", b"c"), 0, tools.now_ms)
    read = log.read(4, BIG, 12)
    assert (read.batches[0].base_offset, len(read.batches)) == (3, 3)
    assert read.size == sum(b.size_in_bytes for b in read.batches)


def test_reading_stops_below_the_bound_and_within_the_size(tools: type[Tools], log: Any) -> None:
    """DP-73: the bound is exclusive; without the one-batch rule a small limit returns no data."""
    tools.fill(log, 10)
    size = log.read(0, BIG, 1).size
    assert len(log.read(0, BIG, 4).batches) == 4
    assert log.read(4, BIG, 4).batches == ()
    assert len(log.read(0, 3 * size, 10).batches) == 3
    assert len(whole_batches(log.read(0, 3 * size + 1, 10).batches)) == 3
    assert len(log.read(0, 1, 10).batches) == 1
    assert (log.read(0, 1, 10, False).batches, log.read(0, 1, 10, False).size) == ((), 0)


def test_a_batch_that_does_not_fit_is_cut_at_the_byte(tools: type[Tools], log: Any) -> None:
    """DP-73: ``LogSegment.read`` slices at the size limit; the offset bound does not cut
    batches."""
    tools.fill(log, 4)
    stored = [batch.data for batch in log.batches()]
    size = len(stored[0])
    for offset, extra in ((0, 1), (1, 7), (2, size - 1)):
        read = log.read(offset, size + extra, 4)
        assert [b.data for b in read.batches] == [stored[offset], stored[offset + 1][:extra]]
        assert read.size == size + extra
        assert [b.base_offset for b in whole_batches(read.batches)] == [offset]
    assert [b.data for b in log.read(1, size + 9, 2).batches] == [stored[1]]


@pytest.mark.parametrize("offset", [0, 3])
def test_the_first_batch_is_cut_only_for_hard_limits(
    tools: type[Tools], log: Any, offset: int
) -> None:
    """DP-73: only Fetch v0 to v2 get the bytes of the first batch that fit, be it a single one
    (KIP-74)."""
    tools.fill(log, 4)
    (batch, *_) = log.batches(offset)
    read = log.read(offset, 9, 4, False, cuts_first_batch=True)
    assert ([b.data for b in read.batches], read.size) == ([batch.data[:9]], 9)
    assert whole_batches(read.batches) == ()
    assert log.read(offset, 0, 4, False, cuts_first_batch=True).batches == ()
    assert log.read(offset, 9, 4, False).batches == ()


def test_reading_stays_within_a_segment(tools: type[Tools]) -> None:
    """A read returns data of one segment; the next read continues in the next segment."""
    log = tools.log(segment_bytes=160)
    tools.fill(log, 6)
    position, found = 0, []
    while position < 6:
        batches = log.read(position, BIG, 6).batches
        found.append(len(batches))
        position = batches[-1].last_offset + 1
    assert found == [2, 2, 2]


# -- following ------------------------------------------------------------------------------------


def test_followers_share_the_leaders_batches(tools: type[Tools], log: Any) -> None:
    """Replicas hold the same batch objects, with the leader's offsets and epochs."""
    tools.fill(log, 3, epoch=4)
    follower = tools.log()
    info = append_as_follower(follower, log.read(0, BIG, 3).batches)
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert all(a.data is b.data for a, b in zip(log.batches(), follower.batches(), strict=True))
    assert follower.epochs == ((4, 0),)


def test_batches_below_the_end_are_refused(tools: type[Tools], log: Any) -> None:
    """DP-9: a batch that begins below the log end is refused with an error that names its
    offsets."""
    log.truncate_fully_and_start_at(5)
    with pytest.raises(UnexpectedAppendOffset) as caught:
        append_as_follower(log, [tools.batch_at(3, 3)])
    assert (caught.value.first_offset, caught.value.last_offset) == (3, 5)
    assert marks(log) == (5, 5, 5)
    log.truncate_fully_and_start_at(4)
    append_as_follower(log, [tools.batch_at(4, 3)])
    assert marks(log) == (4, 4, 7)
    with pytest.raises(UnexpectedAppendOffset):
        append_as_follower(log, [tools.batch_at(3, 3)])


def test_unordered_batches_are_refused_whole(tools: type[Tools], log: Any) -> None:
    """Fetched batches whose offsets do not increase are refused together."""
    with pytest.raises(OffsetsOutOfOrder):
        append_as_follower(log, [tools.batch_at(0, 2), tools.batch_at(1)])
    assert log.log_end_offset == 0


def test_damaged_batches_are_found_on_demand(tools: type[Tools], log: Any) -> None:
    """DP-61: verification finds batches damaged in transit before any is appended."""
    good = tools.batch_at(0)
    damaged = type(good)(good.data[:-1] + b"\xee", 0, 0)
    with pytest.raises(KafkaError) as caught:
        append_as_follower(log, [damaged], verify=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert append_as_follower(log, [good], verify=True).last_offset == 0


def test_followers_accept_batches_beyond_the_size_limit(tools: type[Tools]) -> None:
    """``max.message.bytes`` limits clients, not followers."""
    log = tools.log(max_message_bytes=100)
    append_as_follower(log, [tools.batch_at(0, 50)])
    assert log.log_end_offset == 50


def test_appending_nothing_is_nothing(tools: type[Tools], log: Any) -> None:
    """Appending no bytes, or no whole batch, changes nothing."""
    assert append_as_leader(log, b"", 0, tools.now_ms).first_offset == -1
    assert append_as_leader(log, tools.data(b"v")[:-1], 0, tools.now_ms).first_offset == -1
    assert append_as_follower(log, []).first_offset == -1
    assert log.log_end_offset == 0


# -- log start ------------------------------------------------------------------------------------


def test_log_start_cannot_pass_the_high_watermark(tools: type[Tools], log: Any) -> None:
    """DP-28: raising the log start beyond the high watermark is OFFSET_OUT_OF_RANGE."""
    tools.fill(log, 5)
    log.update_high_watermark(3)
    with pytest.raises(KafkaError) as caught:
        log.maybe_increment_log_start_offset(4)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.maybe_increment_log_start_offset(3)
    assert not log.maybe_increment_log_start_offset(2)
    assert marks(log) == (3, 3, 5)


def test_a_leaders_log_start_pulls_the_high_watermark(tools: type[Tools], log: Any) -> None:
    """A leader's log start applies to the follower even above the high watermark known there."""
    tools.fill(log, 5)
    log.update_high_watermark(1)
    assert log.maybe_increment_log_start_offset(4, "leader")
    assert marks(log) == (4, 4, 5)


def test_log_start_moves_the_epochs(tools: type[Tools], log: Any) -> None:
    """The epoch that holds the new log start begins there."""
    tools.fill(log, 3, epoch=0)
    tools.fill(log, 3, epoch=2)
    log.update_high_watermark(6)
    assert log.epoch_at_log_start == 0
    log.maybe_increment_log_start_offset(4)
    assert (log.epochs, log.epoch_at_log_start) == (((2, 4),), 2)


# -- time -----------------------------------------------------------------------------------------


def test_first_record_at_or_after_a_time(tools: type[Tools], log: Any) -> None:
    """DP-130: a search of timestamps 0 to 99 for 20 finds offset 20; beyond the last it finds
    none."""
    for start in range(0, 100, 5):
        times = list(range(start, start + 5))
        append_as_leader(log, tools.data(*[b"v"] * 5, times=times), 0, 100)
    found = present(offset_for_timestamp(log, 20))
    assert (found.offset, found.timestamp, found.leader_epoch) == (20, 20, 0)
    assert present(offset_for_timestamp(log, 22)).offset == 22
    assert offset_for_timestamp(log, 100) is None


def test_times_need_not_ascend(tools: type[Tools]) -> None:
    """A search finds the first record that is late enough, from the log start on."""
    log = tools.log(index_interval_bytes=0)
    for time in (50, 10, 70, 20, 90):
        append_as_leader(log, tools.data(b"v", times=[time]), 0, 100)
    assert [present(offset_for_timestamp(log, t)).offset for t in (5, 51, 71)] == [0, 2, 4]
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(1)
    assert present(offset_for_timestamp(log, 5)).offset == 1


def test_greatest_timestamp(tools: type[Tools]) -> None:
    """The first record with the greatest timestamp is found; an empty log has none."""
    log = tools.log(segment_bytes=160)
    assert offset_for_timestamp(log, MAX_TIMESTAMP) is None
    for time in (50, 10, 70, 70, 20):
        append_as_leader(log, tools.data(b"v", times=[time]), 0, 100)
    found = present(offset_for_timestamp(log, MAX_TIMESTAMP))
    assert (found.offset, found.timestamp) == (2, 70)


def test_messages_without_time_cannot_be_searched(tools: type[Tools]) -> None:
    """Format v0 has no timestamps."""
    log = tools.log("2.8", **{"message.format.version": "0.9.0"})
    with pytest.raises(KafkaError) as caught:
        offset_for_timestamp(log, 5)
    assert caught.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def test_legacy_offsets_are_segment_starts(tools: type[Tools]) -> None:
    """ListOffsets v0 lists the log end, then the starts of segments in descending order."""
    log = tools.log(segment_bytes=160)
    for number in range(6):
        append_as_leader(log, tools.data(b"v"), 0, 1000 + number)
    assert legacy_fetch_offsets_before(log, -1, 10) == [6, 4, 2, 0]
    assert legacy_fetch_offsets_before(log, -1, 2) == [6, 4]
    assert legacy_fetch_offsets_before(log, -2, 10) == [0]
    assert legacy_fetch_offsets_before(log, 1003, 10) == [2, 0]
    assert legacy_fetch_offsets_before(log, 5, 10) == []


# -- segments -------------------------------------------------------------------------------------


def test_segments_roll_by_size(tools: type[Tools]) -> None:
    """A batch that would exceed ``segment.bytes`` begins a new segment."""
    log = tools.log(segment_bytes=200)
    tools.fill(log, 7)
    assert [s.base_offset for s in log.segments] == [0, 2, 4, 6]
    assert log.size_in_bytes == sum(b.size_in_bytes for b in log.batches())


@pytest.mark.parametrize("index_interval_bytes", [4096, 0])
def test_a_segment_may_be_filled_to_the_last_byte(
    tools: type[Tools], index_interval_bytes: int
) -> None:
    """``LogSegment.shouldRoll``: only what would exceed ``segment.bytes`` begins a new one."""
    size = len(tools.data(b"v"))
    log = tools.log(segment_bytes=2 * size, index_interval_bytes=index_interval_bytes)
    tools.fill(log, 4)
    assert [s.base_offset for s in log.segments] == [0, 2]
    smaller = tools.log(segment_bytes=2 * size - 1, index_interval_bytes=index_interval_bytes)
    tools.fill(smaller, 4)
    assert [s.base_offset for s in smaller.segments] == [0, 1, 2, 3]


def test_an_empty_segment_is_not_rolled_for_its_first_batch(tools: type[Tools]) -> None:
    """An empty segment is not rolled, however old it is (``LogSegment.shouldRoll``)."""
    log = tools.log(segment_ms=100)
    append_as_leader(log, tools.data(b"v"), 0, tools.now_ms + 1000)
    assert [s.base_offset for s in log.segments] == [0]
    assert log.roll(tools.now_ms + 2000).base_offset == 1
    append_as_leader(log, tools.data(b"v"), 0, tools.now_ms + 9000)
    assert [s.base_offset for s in log.segments] == [0, 1]


def test_segments_roll_by_the_records_time(tools: type[Tools]) -> None:
    """A segment spans at most ``segment.ms`` of record time."""
    log = tools.log(segment_ms=100)
    for time in (1000, 1100, 1101, 1150):
        append_as_leader(log, tools.data(b"v", times=[time]), 0, 5)
    assert [s.base_offset for s in log.segments] == [0, 2]


def test_segments_roll_when_the_index_is_full(tools: type[Tools]) -> None:
    """A segment rolls when its offset index has the maximum number of entries."""
    log = tools.log(segment_index_bytes=16, index_interval_bytes=0)
    tools.fill(log, 7)
    assert [s.base_offset for s in log.segments] == [0, 3, 6]


def test_empty_segment_is_not_rolled(tools: type[Tools], log: Any) -> None:
    """Rolling twice creates one new segment; rolling flushes the records."""
    tools.fill(log, 2)
    assert log.roll() is log.roll()
    assert [s.base_offset for s in log.segments] == [0, 2]
    assert log.storage.flushed_offset == 2


def test_flush_by_number_of_messages(tools: type[Tools]) -> None:
    """``flush.messages`` limits the records that a power failure can destroy."""
    log = tools.log(flush_messages=3)
    tools.fill(log, 5)
    assert log.storage.flushed_offset == 3
    follower = tools.log(flush_messages=3)
    append_as_follower(follower, list(log.batches()))
    assert follower.storage.flushed_offset == 5
    follower = tools.log(flush_messages=3)
    for batch in log.batches():
        assert append_next(follower, batch, tools.now_ms)
    assert follower.storage.flushed_offset == 3


def test_offsets_of_a_segment_are_within_four_bytes_of_its_first(tools: type[Tools]) -> None:
    """The largest relative offset still fits into the segment
    (``LogSegment.canConvertToRelativeOffset``)."""
    for offset, count in ((RELATIVE_OFFSET_MAX, 1), (RELATIVE_OFFSET_MAX + 1, 2)):
        log = tools.log(index_interval_bytes=0)
        append_as_follower(log, [tools.batch_at(0), tools.batch_at(offset)])
        assert len(log.segments) == count


def test_the_roll_jitter_is_capped_at_the_segment_time(tools: type[Tools]) -> None:
    """With a jitter of a day a segment of a second rolls within the second, but not at once."""
    log = tools.log(segment_ms=1000, segment_jitter_ms=86_400_000)
    for later_ms in (0, 1, 1001):
        data = tools.data(b"v", times=[tools.now_ms + later_ms])
        append_as_leader(log, data, 0, tools.now_ms + later_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_time_of_appending_is_the_time_of_all_records(tools: type[Tools]) -> None:
    """On a LogAppendTime topic the timestamps that producers gave do not count."""
    log = tools.log(message_timestamp_type="LogAppendTime")
    early = [tools.now_ms - 10, tools.now_ms - 5]
    append_as_leader(log, tools.data(b"a", b"b", times=early), 0, tools.now_ms)
    found = present(offset_for_timestamp(log, tools.now_ms - 7))
    assert (found.timestamp, found.offset) == (tools.now_ms, 0)


def test_topic_id_is_assigned_once(log: Any) -> None:
    """A topic id never changes."""
    log.assign_topic_id("A" * 22)
    log.assign_topic_id("A" * 22)
    assert log.topic_id == "A" * 22
    with pytest.raises(InvariantError):
        log.assign_topic_id("B" * 22)


def test_configuration_takes_effect_on_the_next_append(tools: type[Tools], log: Any) -> None:
    """A changed configuration applies to an open log."""
    tools.fill(log, 2)
    log.update_config(tools.config(segment_bytes=100))
    tools.fill(log, 2)
    assert len(log.segments) == 3
    assert log.config["segment.bytes"] == 100


def test_a_fetched_batch_that_ends_before_it_begins_is_refused(
    tools: type[Tools], log: Any
) -> None:
    """A batch whose end is before its start would lower the log end: both ways of appending refuse
    it."""
    tools.fill(log, 3)
    data = bytearray(tools.batch_at(3).data)
    struct.pack_into(">i", data, 23, -1)
    bad = RecordBatch.from_bytes(bytes(data))
    assert (bad.base_offset, bad.last_offset) == (3, 2)
    with pytest.raises(OffsetsOutOfOrder):
        append_as_follower(log, [bad])
    assert not append_next(log, bad, tools.now_ms)
    assert marks(log) == (0, 0, 3)
