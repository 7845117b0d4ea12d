"""Guards of transactions that may start on a partition (KIP-890,
docs/kafka/transactions.md#verification)."""

from __future__ import annotations

import pytest
from fakekafka.protocol.errors import ErrorCode, KafkaError
from fakekafka.replication.log.producer_state import ProducerStateManager
from fakekafka.replication.log.verification import VerificationGuard, VerificationGuards


def is_taken(guards: VerificationGuards, producer_id: int, guard: VerificationGuard | None) -> bool:
    try:
        guards.check(producer_id, guard)
    except KafkaError as error:
        return error.code is not ErrorCode.INVALID_TXN_STATE
    return True


def test_a_verification_counts_only_for_its_own_guard() -> None:
    """An answer does not count for the guard of another producer, nor for a dropped guard."""
    guards = VerificationGuards()
    guard = guards.start(1, 0, 0, 100)
    assert guards.start(1, 1, 0, 200) is guard
    assert is_taken(guards, 1, guard)
    assert not is_taken(guards, 1, None)
    assert not is_taken(guards, 2, guard)
    guards.drop(1)
    assert not is_taken(guards, 1, guard)
    assert guards.start(1, 0, 0, 300) is not guard
    assert not is_taken(guards, 1, guard)


def test_an_unanswered_guard_expires_with_producer_ids() -> None:
    """An unanswered guard is dropped when producer ids expire, counted from its first request."""
    guards = VerificationGuards()
    guard = guards.start(1, 0, 0, 100)
    later = guards.start(2, 0, 0, 101)
    guards.start(1, 1, 0, 150)
    guards.expire(1099, 1000)
    assert len(guards) == 2
    guards.expire(1100, 1000)
    assert (is_taken(guards, 1, guard), is_taken(guards, 2, later)) == (False, True)


@pytest.mark.parametrize(
    ("epoch", "sequence", "lowest"), [(5, 3, 3), (5, 9, 4), (6, 9, 9), (4, 1, 4)]
)
def test_a_batch_waits_for_the_first_one(epoch: int, sequence: int, lowest: int) -> None:
    """A batch waits for the batch with the lowest sequence in the newest epoch."""
    guards = VerificationGuards()
    guards.start(1, 4, 5, 100)
    guards.start(1, sequence, epoch, 200)
    guards.check_order(1, lowest)
    guards.check_order(2, lowest + 1)
    with pytest.raises(KafkaError) as caught:
        guards.check_order(1, lowest + 1)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("is_transactional", [True, False])
def test_a_guard_ends_with_the_first_batch_of_its_transaction(is_transactional: bool) -> None:
    state = ProducerStateManager()
    guard = state.guards.start(1, 0, 0, 100)
    state.append_data_batch(1, 0, 0, 0, 0, 100, is_transactional)
    assert is_taken(state.guards, 1, guard) is not is_transactional
