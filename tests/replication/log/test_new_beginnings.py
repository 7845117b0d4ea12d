"""What a log knows after a restart, and what it forgets when it is truncated fully."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.replication.log.follower_append import append_as_follower
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.lookups import aborted_transactions
from fakekafka.replication.log.segments import truncate_segments
from fakekafka.tests.support.logs import Tools


def test_a_fully_truncated_log_has_no_producers(tools: type[Tools], log: Any) -> None:
    """A fully truncated log has no producers, also after a restart, and its new records are
    unflushed (``UnifiedLog.truncateFullyAndStartAt``)."""
    tools.produce(log, 1, 0, 0)
    log.roll()
    tools.produce(log, 1, 0, 1)
    log.roll()
    log.truncate_fully_and_start_at(1)
    assert log.producers is None
    assert log.recovery_point == 1
    assert not log.storage.snapshots
    assert not log.storage.has_producers


def test_a_leaders_log_start_beyond_the_end_is_refused(tools: type[Tools], log: Any) -> None:
    """A follower does not raise its log start beyond its log end; it is truncated fully instead
    (docs/kafka/log.md)."""
    tools.fill(log, 3)
    with pytest.raises(KafkaError) as caught:
        log.maybe_increment_log_start_offset(4, "leader")
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.log_start_offset == 0


def test_snapshots_below_a_raised_log_start_are_deleted(tools: type[Tools], log: Any) -> None:
    """Snapshots at or below a raised log start are deleted (``maybeIncrementLogStartOffset``)."""
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence)
        log.roll()
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(2)
    assert list(log.storage.snapshots) == [3]


def test_a_producer_is_known_by_a_batch_that_the_log_start_cuts(
    tools: type[Tools], log: Any
) -> None:
    """A batch that spans the log start is read as a whole when producers are rebuilt
    (``UnifiedLog.rebuildProducerState``)."""
    tools.produce(log, 1, 0, 0, count=3)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(1)
    tools.produce(log, 2, 0, 0)
    log.truncate_to(3)  # reads the producers anew
    assert tools.produce(log, 1, 0, 0, count=3).duplicate


def test_a_snapshot_beyond_the_log_end_is_discarded(tools: type[Tools], log: Any) -> None:
    """A snapshot beyond the log end is discarded, as its records were lost
    (``ProducerStateManager.truncateAndReload``)."""
    tools.produce(log, 1, 0, 0)
    tools.produce(log, 1, 0, 1)
    log.take_producer_snapshot()
    truncate_segments(log.storage, 1, 4096)
    reopened = type(log)(tools.name, log.settings, storage=log.storage)
    assert not log.storage.snapshots
    assert not tools.produce(reopened, 1, 0, 1).duplicate


def test_a_damaged_snapshot_is_removed(tools: type[Tools], log: Any) -> None:
    """A damaged snapshot is deleted and the log is read instead
    (``ProducerStateManager.loadFromSnapshot``)."""
    tools.produce(log, 1, 0, 0)
    log.storage.put_snapshot(1, b"\0\1damaged")
    reopened = type(log)(tools.name, log.settings, storage=log.storage)
    assert not log.storage.snapshots
    assert tools.produce(reopened, 1, 0, 0).duplicate


def test_an_aborted_transaction_is_listed_once_after_a_replay(tools: type[Tools], log: Any) -> None:
    """An aborted transaction is listed once, though its segment's batches were read again."""
    tools.produce(log, 1, 0, 0, txn=True)
    tools.end(log, 1, False)
    tools.fill(log, 1)
    log.update_high_watermark(2)
    log.truncate_to(2)
    assert len(log.active.aborted) == 1
    assert len(aborted_transactions(log, 0, 2)) == 1


def test_each_fetched_batch_is_verified(tools: type[Tools], log: Any) -> None:
    """DP-61: one damaged batch makes the log refuse all fetched batches."""
    good = tools.batch_at(0)
    second = tools.batch_at(1)
    damaged = type(good).from_bytes(second.data[:-1] + b"\xee")
    with pytest.raises(KafkaError) as caught:
        append_as_follower(log, [good, damaged], verify=True)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 0


def test_segments_of_records_without_time_roll_by_their_age(tools: type[Tools]) -> None:
    """A segment whose records have no time rolls by its creation time
    (``LogSegment.timeWaitedForRoll``)."""
    log = tools.log(segment_ms=1000)
    log.active.created_ms = tools.now_ms
    for after_ms in (0, 900, 1100):
        append_as_leader(log, tools.data(b"v", times=[-1]), 0, tools.now_ms + after_ms)
    assert [segment.base_offset for segment in log.segments] == [0, 2]
