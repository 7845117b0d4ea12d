"""Rules for the producers and open transactions of a log (Kafka: ``ProducerStateManager``)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.protocol.records.format import ControlMarker
from fakekafka.replication.log.producer_state import CompletedTransaction, ProducerStateManager

FIRST, SECOND, THIRD = 7, 8, 9
COMMIT = ControlMarker(is_commit=True, coordinator_epoch=0)


@pytest.fixture
def state() -> ProducerStateManager:
    return ProducerStateManager()


def append(
    state: ProducerStateManager,
    producer_id: int,
    offset: int,
    *,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    is_transactional: bool = True,
    timestamp: int = 100,
) -> None:
    state.append_data_batch(
        producer_id, epoch, sequence, offset, offset + count - 1, timestamp, is_transactional
    )


def end(state: ProducerStateManager, producer_id: int, offset: int) -> CompletedTransaction:
    completed = state.append_marker(producer_id, 0, COMMIT, offset, 200)
    assert completed is not None
    state.complete(completed)
    return completed


def test_the_oldest_open_transaction_bounds_the_last_stable_offset(
    state: ProducerStateManager,
) -> None:
    """The oldest open transaction, even at offset 0, bounds the stable offset; the end of a younger
    one changes nothing."""
    append(state, FIRST, 0)
    append(state, SECOND, 1)
    append(state, THIRD, 2)
    assert state.first_unstable_offset == 0
    end(state, SECOND, 3)
    assert state.first_unstable_offset == 0
    end(state, FIRST, 4)
    state.on_high_watermark(4)  # the second one's marker is replicated, the first one's is not
    assert state.first_unstable_offset == 0
    state.on_high_watermark(5)
    assert state.first_unstable_offset == 2


def test_a_transaction_begins_with_its_first_batch(state: ProducerStateManager) -> None:
    """A transaction begins with its first batch, even at offset 0; later batches do not move its
    beginning."""
    append(state, FIRST, 0)
    append(state, FIRST, 1, sequence=1)
    assert state.ongoing == {0: FIRST}
    assert state.entries[FIRST].transaction_first_offset == 0
    assert end(state, FIRST, 2) == CompletedTransaction(FIRST, 0, 2, is_aborted=False)
    assert state.entries[FIRST].last_timestamp == 200


def test_the_stable_offset_behind_a_decided_transaction(state: ProducerStateManager) -> None:
    """The stable offset after a decided transaction is the oldest open one, or behind the
    marker."""
    append(state, FIRST, 3)
    append(state, SECOND, 5)
    completed = state.append_marker(FIRST, 0, COMMIT, 6, 200)
    assert completed is not None
    assert state.last_stable_offset_after(completed) == 5
    state.complete(completed)
    completed = state.append_marker(SECOND, 0, COMMIT, 7, 200)
    assert completed is not None
    assert state.last_stable_offset_after(completed) == 8


def test_a_new_epoch_forgets_the_batches_of_the_one_before(state: ProducerStateManager) -> None:
    """A batch with the sequences of the former epoch is no duplicate; one of the present epoch
    is."""
    append(state, FIRST, 0, is_transactional=False)
    append(state, FIRST, 1, epoch=1, is_transactional=False)
    entry = state.entries[FIRST]
    assert (entry.epoch, len(entry.batches)) == (1, 1)
    assert entry.duplicate_of(0, 0, 0) is None
    duplicate = entry.duplicate_of(1, 0, 0)
    assert duplicate is not None
    assert duplicate.first_offset == 1


def test_the_last_sequence_of_a_batch_counts_its_records(state: ProducerStateManager) -> None:
    """The last sequence of a batch counts its records; a batch of a coordinator has none, whatever
    its size."""
    append(state, FIRST, 0, count=3)
    assert state.entries[FIRST].last_sequence == 2
    append(state, SECOND, 3, sequence=-1, count=3)
    assert state.entries[SECOND].last_sequence == -1


def test_a_producer_with_a_transaction_open_since_offset_0_does_not_expire(
    state: ProducerStateManager,
) -> None:
    """A producer with a transaction open since offset 0 does not expire; others do, at the exact
    time, and a marker counts as activity."""
    append(state, FIRST, 0)
    append(state, SECOND, 1, is_transactional=False)
    append(state, THIRD, 2)
    end(state, THIRD, 3)
    assert state.remove_expired(199, 100) == 0
    assert state.remove_expired(200, 100) == 1
    assert set(state.entries) == {FIRST, THIRD}
    assert state.remove_expired(10_000, 100) == 1
    assert set(state.entries) == {FIRST}


def test_a_snapshot_keeps_each_producer(state: ProducerStateManager) -> None:
    """A snapshot keeps the last batch, its time, the coordinator epoch and a transaction open at
    offset 0."""
    append(state, FIRST, 0, count=3)
    append(state, SECOND, 3, is_transactional=False, timestamp=150)
    restored = ProducerStateManager.from_snapshot(state.snapshot())
    assert restored.ongoing == {0: FIRST}
    assert restored.first_unstable_offset == 0
    for producer_id in (FIRST, SECOND):
        was, now = state.entries[producer_id], restored.entries[producer_id]
        assert now.batches[-1][:4] == was.batches[-1][:4]
        assert (now.epoch, now.last_timestamp) == (was.epoch, was.last_timestamp)


def test_open_transactions_of_a_snapshot_are_in_the_order_of_their_offsets(
    state: ProducerStateManager,
) -> None:
    """The order is by offset, whichever producer wrote first, as the oldest transaction is looked
    for at the front."""
    append(state, FIRST, 0)
    append(state, SECOND, 1)
    end(state, FIRST, 2)
    append(state, FIRST, 3, sequence=1)
    restored = ProducerStateManager.from_snapshot(state.snapshot())
    assert list(restored.ongoing) == [1, 3]


def test_sequences_that_wrapped_around_are_restored(state: ProducerStateManager) -> None:
    """A restored batch may begin before the largest sequence and end after the wrap-around."""
    append(state, FIRST, 0, sequence=(1 << 31) - 1, count=2)
    restored = ProducerStateManager.from_snapshot(state.snapshot())
    batch = restored.entries[FIRST].batches[-1]
    assert (batch.first_sequence, batch.last_sequence) == ((1 << 31) - 1, 0)


def test_a_producer_known_by_a_marker_alone_begins_with_zero(state: ProducerStateManager) -> None:
    """A producer known by a marker alone begins with sequence 0, in its own epoch and in the
    next."""
    state.append_marker(FIRST, 3, COMMIT, 0, 100)

    def check(epoch: int, sequence: int) -> None:
        state.check_data_batch(
            FIRST, epoch, sequence, sequence, is_transactional=False, is_client=True,
            unknown_error=None,
        )  # fmt: skip

    check(3, 0)
    check(4, 0)
    for epoch in (3, 4):
        with pytest.raises(KafkaError) as raised:
            check(epoch, 5)
        assert raised.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with pytest.raises(KafkaError) as raised:
        check(2, 0)
    assert raised.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
