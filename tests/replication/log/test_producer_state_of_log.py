"""Idempotent producers and transactions as a log sees them."""

from __future__ import annotations

from typing import Any

import pytest
from fakekafka.protocol.data import AbortedTransaction
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.versions import behaviour
from fakekafka.replication.disk.memory_disk import MemoryDisk
from fakekafka.replication.log.follower_append import append_as_follower, append_next
from fakekafka.replication.log.leader_append import append_as_leader
from fakekafka.replication.log.log import Log
from fakekafka.replication.log.lookups import aborted_transactions
from fakekafka.replication.log.producer_state import CorruptSnapshot, ProducerStateManager
from fakekafka.tests.support.logs import Tools
from fakekafka.tests.support.present import present

INT_MAX = 2147483647


def refusal(call: Any, *arguments: Any, **more: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*arguments, **more)
    return caught.value.code


def test_resent_batch_is_a_duplicate(tools: type[Tools], log: Any) -> None:
    """DP-110: an exact repetition of one of the last five batches gets the original offsets."""
    for number in range(6):
        tools.produce(log, 1, 0, number * 2, count=2)
    for number in range(1, 6):
        info = tools.produce(log, 1, 0, number * 2, count=2)
        assert (info.duplicate, info.first_offset, info.last_offset) == (
            True,
            number * 2,
            number * 2 + 1,
        )
    assert log.log_end_offset == 12


@pytest.mark.parametrize(("sequence", "count"), [(0, 2), (10, 1), (11, 2), (13, 1), (9, 3)])
def test_old_and_overlapping_batches_are_out_of_order(
    tools: type[Tools], log: Any, sequence: int, count: int
) -> None:
    """DP-110: a batch older than the last five, or partly overlapping, is out of order."""
    for number in range(6):
        tools.produce(log, 1, 0, number * 2, count=2)
    code = refusal(tools.produce, log, 1, 0, sequence, count=count)
    assert code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_older_epoch_is_fenced(tools: type[Tools], log: Any) -> None:
    """An epoch below the one seen is refused, a new one starts at zero."""
    tools.produce(log, 1, 5, 0)
    assert refusal(tools.produce, log, 1, 4, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(tools.produce, log, 1, 6, 3) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert tools.produce(log, 1, 6, 0).first_offset == 1


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_unknown_producer_may_begin_anywhere(tools: type[Tools], version: str) -> None:
    """DP-119: since 2.5 an unknown producer may continue with any sequence."""
    log = tools.log(version)
    assert tools.produce(log, 1, 0, 17).first_offset == 0
    assert tools.produce(log, 2, 0, 9).first_offset == 1


def test_unknown_producer_was_refused_before(tools: type[Tools]) -> None:
    """Before 2.5 an unknown producer got UNKNOWN_PRODUCER_ID, unless its sequence was zero."""
    log = tools.log("1.1")
    assert refusal(tools.produce, log, 1, 0, 17) is ErrorCode.UNKNOWN_PRODUCER_ID
    tools.produce(log, 1, 0, 0)
    assert refusal(tools.produce, log, 2, 0, 17) is ErrorCode.UNKNOWN_PRODUCER_ID


def test_unknown_producer_was_out_of_order_at_first(tools: type[Tools]) -> None:
    """Before 1.0 (KAFKA-5793) an unknown producer had no error of its own."""
    flags = behaviour("1.1", unknown_producer_id_error=False)
    log = Log(tools.name, tools.config("1.1"), behaviour=flags)
    assert refusal(tools.produce, log, 1, 0, 17) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    tools.produce(log, 1, 0, 0)
    assert refusal(tools.produce, log, 2, 0, 17) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("version", ["0.11", "1.1"])
def test_a_refused_batch_begins_the_epoch(tools: type[Tools], version: str) -> None:
    """Even a refused batch starts its epoch, which a leader records before it checks the sequence
    (``Log.append``); since 2.0 it does so earlier (docs/kafka/offsets-and-epochs.md)."""
    log = tools.log(version)
    with pytest.raises(KafkaError):
        tools.produce(log, 1, 0, 17)
    assert [start for _, start in log.epochs] == [0]
    assert log.log_end_offset == 0


@pytest.mark.parametrize("reason", ["client", "retention", "leader"])
@pytest.mark.parametrize("version", ["0.10", "1.1"])
def test_a_producer_was_forgotten_with_its_last_record(
    tools: type[Tools], version: str, reason: str
) -> None:
    """Before KAFKA-7190 a log whose start moved above a producer's last batch forgot the
    producer."""
    log = tools.log(version)
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence)
    tools.produce(log, 2, 0, 0)
    log.update_high_watermark(4)
    log.maybe_increment_log_start_offset(2, reason)
    assert tools.produce(log, 1, 0, 3).first_offset == 4
    log.maybe_increment_log_start_offset(4, reason)
    assert refusal(tools.produce, log, 2, 0, 1) is ErrorCode.UNKNOWN_PRODUCER_ID
    assert tools.produce(log, 1, 0, 4).first_offset == 5


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_a_producer_outlives_its_records(tools: type[Tools], version: str) -> None:
    """Since KAFKA-7190 a producer expires only by silence, so that its sequences are still
    checked."""
    log = tools.log(version)
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence)
    log.update_high_watermark(3)
    log.maybe_increment_log_start_offset(3)
    assert refusal(tools.produce, log, 1, 0, 7) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert tools.produce(log, 1, 0, 3).first_offset == 3


def test_a_producers_transaction_was_forgotten_with_its_records(tools: type[Tools]) -> None:
    """Before KAFKA-7190 a transaction without records did not hold back the last stable offset."""
    log = tools.log("1.1")
    tools.produce(log, 1, 0, 0, txn=True)
    tools.produce(log, 2, 0, 0, txn=True)
    tools.produce(log, 3, 0, 0)
    tools.end(log, 4, True)
    log.update_high_watermark(4)
    log.maybe_increment_log_start_offset(1)
    assert (log.first_unstable_offset, sorted(present(log.producers).entries)) == (1, [2, 3])
    log.maybe_increment_log_start_offset(2)
    assert (log.last_stable_offset, sorted(present(log.producers).entries)) == (4, [3])


@pytest.mark.parametrize(("version", "known"), [("1.1", [2]), ("2.8", [1, 2])])
def test_a_snapshot_restored_only_producers_with_records(
    tools: type[Tools], version: str, known: list[int]
) -> None:
    """Before KAFKA-7190 only producers with a batch above the log start were loaded from a
    snapshot."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config(version))
    tools.produce(log, 1, 0, 0)
    tools.produce(log, 2, 0, 0)
    log.roll()
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    disk.checkpoint_log_offsets()
    assert list(present(log.storage.snapshots)) == [2]
    disk.kill()
    log = disk.open_log(tools.name, tools.config(version))
    assert (log.log_start_offset, sorted(present(log.producers).entries)) == (1, known)


def test_marker_only_state(tools: type[Tools], log: Any) -> None:
    """DP-117: a producer known by a marker only is refused an older epoch or a non-zero
    sequence."""
    tools.end(log, 1, True, epoch=3)
    assert refusal(tools.produce, log, 1, 2, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(tools.produce, log, 1, 3, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert tools.produce(log, 1, 3, 0).first_offset == 1


def test_sequences_wrap_around(tools: type[Tools], log: Any) -> None:
    """DP-118: after the maximum comes 0, not 1; a batch may straddle the wrap."""
    tools.produce(log, 1, 0, INT_MAX)
    assert refusal(tools.produce, log, 1, 0, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    tools.produce(log, 1, 0, 0)
    tools.produce(log, 2, 0, INT_MAX - 1, count=4)
    assert tools.produce(log, 2, 0, 2).duplicate is False
    assert tools.produce(log, 2, 0, INT_MAX - 1, count=4).duplicate


def test_expired_producer_is_forgotten(tools: type[Tools], log: Any) -> None:
    """DP-119: an expired producer continues without an error; one in a transaction never
    expires."""
    tools.produce(log, 1, 0, 0)
    tools.produce(log, 2, 0, 0, txn=True)
    week = 604_800_000
    assert log.remove_expired_producers(tools.now_ms + week - 1, week) == 0
    assert log.remove_expired_producers(tools.now_ms + week, week) == 1
    assert tools.produce(log, 1, 0, 7).first_offset == 2
    assert refusal(tools.produce, log, 2, 0, 7, txn=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_replication_takes_gaps(tools: type[Tools], log: Any) -> None:
    """DP-120: a follower appends sequences with gaps, which a client could not."""
    header = {"producer_id": 1, "producer_epoch": 0}
    append_as_follower(log, [tools.batch_at(0, base_sequence=0, **header)])
    append_as_follower(log, [tools.batch_at(1, base_sequence=99, **header)])
    assert present(log.producers).entries[1].last_sequence == 99


def test_empty_transaction_completes_nothing(tools: type[Tools], log: Any) -> None:
    """DP-121: a marker without an open transaction is stored but ends none."""
    tools.end(log, 1, False)
    assert (log.log_end_offset, log.first_unstable_offset) == (1, -1)
    log.update_high_watermark(1)
    assert aborted_transactions(log, 0, 1) == []


def test_older_coordinator_is_fenced(tools: type[Tools], log: Any) -> None:
    """DP-112: an older coordinator is fenced even after an empty transaction, and a marker of an
    older producer epoch refused."""
    tools.end(log, 1, True, epoch=2, coordinator_epoch=5)
    code = refusal(tools.end, log, 1, True, epoch=2, coordinator_epoch=4)
    assert code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    code = refusal(tools.end, log, 1, True, epoch=1, coordinator_epoch=6)
    assert code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_newer_marker_fences_the_producer(tools: type[Tools], log: Any) -> None:
    """A marker with a newer epoch raises the producer's epoch, so that the old instance is
    refused."""
    tools.produce(log, 1, 0, 0, txn=True)
    tools.end(log, 1, False, epoch=1)
    assert refusal(tools.produce, log, 1, 0, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert tools.produce(log, 1, 1, 0).duplicate is False


def test_plain_batch_within_a_transaction(tools: type[Tools], log: Any) -> None:
    """A producer with an open transaction may not write outside it."""
    tools.produce(log, 1, 0, 0, txn=True)
    assert refusal(tools.produce, log, 1, 0, 1) is ErrorCode.INVALID_TXN_STATE


def test_coordinators_carry_no_sequence(tools: type[Tools], log: Any) -> None:
    """Sequence -1 in a transaction is accepted from the group coordinator, not from clients."""
    data = tools.data(b"v", producer_id=1, producer_epoch=2, is_transactional=True)
    assert refusal(append_as_leader, log, data, 0, tools.now_ms) is ErrorCode.INVALID_RECORD
    append_as_leader(log, data, 0, tools.now_ms, "coordinator")
    append_as_leader(log, data, 0, tools.now_ms, "coordinator")
    assert log.log_end_offset == 2
    old = tools.data(b"v", producer_id=1, producer_epoch=1, is_transactional=True)
    code = refusal(append_as_leader, log, old, 0, tools.now_ms, "coordinator")
    assert code is ErrorCode.INVALID_PRODUCER_EPOCH


# -- transactions ---------------------------------------------------------------------------------


def test_open_transaction_holds_the_last_stable_offset(tools: type[Tools], log: Any) -> None:
    """DP-8: the last stable offset is the first offset of the open transaction, whatever the high
    watermark."""
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence, txn=True)
    log.update_high_watermark(1)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (3, 1, 0)


def test_commit_is_visible_with_its_marker(tools: type[Tools], log: Any) -> None:
    """DP-37: a transaction is visible once its marker is below the high watermark."""
    tools.produce(log, 1, 0, 0, txn=True)
    log.update_high_watermark(1)
    assert log.last_stable_offset == 0
    tools.end(log, 1, True)
    assert log.last_stable_offset == 0
    log.update_high_watermark(1)
    assert log.last_stable_offset == 0
    log.update_high_watermark(2)
    assert log.last_stable_offset == 2


def test_first_unstable_offset_is_lifted_to_the_log_start(tools: type[Tools], log: Any) -> None:
    """DP-111: with the log start inside the transaction the first unstable offset is the log
    start."""
    tools.fill(log, 1)
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence, txn=True)
    log.update_high_watermark(4)
    assert log.first_unstable_offset == 1
    log.maybe_increment_log_start_offset(3)
    assert (log.first_unstable_offset, log.last_stable_offset) == (3, 3)


def test_aborted_transactions_are_listed(tools: type[Tools]) -> None:
    """DP-38: a read lists the aborted transactions that touch its range, across segments, and no
    others."""
    log = tools.log(segment_bytes=300)
    tools.produce(log, 1, 0, 0, txn=True)  # 0
    tools.produce(log, 2, 0, 0, txn=True)  # 1
    tools.end(log, 1, False)  # 2
    tools.produce(log, 3, 0, 0, txn=True)  # 3
    tools.end(log, 2, True)  # 4
    tools.end(log, 3, False)  # 5
    tools.produce(log, 1, 0, 1, txn=True)  # 6
    tools.end(log, 1, False)  # 7
    log.update_high_watermark(8)
    assert len(log.segments) > 1
    assert log.last_stable_offset == 8
    first, third, again = (
        AbortedTransaction(1, 0),
        AbortedTransaction(3, 3),
        AbortedTransaction(1, 6),
    )
    assert aborted_transactions(log, 0, 8) == [first, third, again]
    assert aborted_transactions(log, 0, 3) == [first]
    assert aborted_transactions(log, 3, 6) == [third]
    assert aborted_transactions(log, 6, 8) == [again]
    assert aborted_transactions(log, 0, 1) == [first]
    # A fetch from the marker on names its transaction, one from behind it does not.
    assert aborted_transactions(log, 2, 3) == [first]
    assert aborted_transactions(log, 5, 6) == [third]
    assert aborted_transactions(log, 7, 8) == [again]
    assert aborted_transactions(log, 8, 9) == []


def test_truncation_reopens_a_transaction(tools: type[Tools], log: Any) -> None:
    """A truncation of a marker reopens its transaction and removes its abort from the list."""
    tools.produce(log, 1, 0, 0, txn=True)
    tools.end(log, 1, False)
    log.update_high_watermark(2)
    log.truncate_to(1)
    assert (log.first_unstable_offset, aborted_transactions(log, 0, 1)) == (0, [])
    tools.end(log, 1, True)
    log.update_high_watermark(2)
    assert (log.last_stable_offset, aborted_transactions(log, 0, 2)) == (2, [])


def test_truncation_keeps_aborted_transactions_below_it(tools: type[Tools], log: Any) -> None:
    """A truncation keeps the aborts below it, though the state is rebuilt from an earlier
    snapshot."""
    tools.produce(log, 1, 0, 0, txn=True)
    tools.end(log, 1, False)
    log.take_producer_snapshot()
    tools.fill(log, 2)
    log.update_high_watermark(2)
    log.truncate_to(3)
    assert aborted_transactions(log, 0, 2) == [AbortedTransaction(1, 0)]


# -- rebuilding -----------------------------------------------------------------------------------


def test_crash_rebuilds_the_state(tools: type[Tools]) -> None:
    """A scan of the log after a crash restores all five batches and open transactions."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence)
    tools.produce(log, 2, 0, 0, txn=True)
    disk.kill()
    log = disk.open_log(tools.name, tools.config())
    assert tools.produce(log, 1, 0, 0).duplicate
    assert log.first_unstable_offset == 3


def test_snapshot_keeps_the_last_batch_only(tools: type[Tools]) -> None:
    """After a clean restart the window for duplicates has shrunk to one batch."""
    disk = MemoryDisk()
    log = disk.open_log(tools.name, tools.config())
    for sequence in range(3):
        tools.produce(log, 1, 0, sequence)
    disk.close()
    log = disk.open_log(tools.name, tools.config())
    assert tools.produce(log, 1, 0, 2).duplicate
    assert refusal(tools.produce, log, 1, 0, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert not tools.produce(log, 1, 0, 3).duplicate


def test_snapshot_bytes_round_trip(tools: type[Tools], log: Any) -> None:
    """The snapshot format keeps epoch, sequence, offsets, coordinator and open transaction."""
    tools.produce(log, 1, 4, INT_MAX - 1, count=4)
    tools.produce(log, 2, 0, 0, txn=True)
    tools.end(log, 3, True, epoch=1, coordinator_epoch=9)
    data = log.producers.snapshot()
    state = ProducerStateManager.from_snapshot(data)
    last = state.entries[1].batches[-1]
    assert (last.first_sequence, last.last_sequence, last.first_offset, last.last_offset) == (
        INT_MAX - 1,
        1,
        0,
        3,
    )
    assert state.entries[2].transaction_first_offset == 4
    assert state.first_unstable_offset == 4
    assert state.entries[3].coordinator_epoch == 9
    for damaged in (b"", data[:-1], data[:20] + b"\x99" + data[21:], b"\0\x07" + data[2:]):
        with pytest.raises(CorruptSnapshot):
            ProducerStateManager.from_snapshot(damaged)


def test_follower_has_the_leaders_state(tools: type[Tools], log: Any) -> None:
    """Replicas rebuild the same state from the batches they copy."""
    tools.produce(log, 1, 0, 0)
    tools.produce(log, 2, 0, 0, txn=True)
    tools.end(log, 2, False)
    follower = tools.log()
    append_as_follower(follower, list(log.batches()))
    assert present(follower.producers).snapshot() == present(log.producers).snapshot()
    follower.update_high_watermark(3)
    assert aborted_transactions(follower, 0, 3) == [AbortedTransaction(2, 1)]


def test_a_follower_notes_producers_batch_by_batch(tools: type[Tools], log: Any) -> None:
    """A follower tracks producers that are new, that continue, and that begin a new epoch."""
    follower = tools.log()
    for epoch, sequence in ((0, 0), (0, 1), (1, 0)):
        tools.produce(log, 1, epoch, sequence)
        assert append_next(follower, log.active.last_batch, tools.now_ms)
        assert present(follower.producers).snapshot() == present(log.producers).snapshot()


def test_a_follower_adds_a_producer_that_it_had_expired(tools: type[Tools], log: Any) -> None:
    """A follower adds a producer that it had expired, as brokers expire silent ones by their own
    clocks."""
    follower = tools.log()
    for sequence in range(3):
        if sequence == 2:
            follower.remove_expired_producers(tools.now_ms + 1000, 1000)
            assert present(follower.producers).entries == {}
        tools.produce(log, 1, 0, sequence)
        assert append_next(follower, log.active.last_batch, tools.now_ms)
    assert present(follower.producers).entries[1].last_sequence == 2
