"""The metadata of a transactional id: which changes are allowed, and which are refused."""

from __future__ import annotations

import pytest
from fakekafka.coordinators.transactions.metadata import TransactionMetadata, TransitMetadata
from fakekafka.coordinators.transactions.states import (
    STATE_BY_TITLE,
    VALID_PREVIOUS_STATES,
    TransactionState,
    end_txn_error,
)
from fakekafka.protocol.errors import ErrorCode, InvariantError, KafkaError
from fakekafka.protocol.values import TopicPartition, changed

ORDERS = TopicPartition("orders", 0)
AUDIT = TopicPartition("audit", 1)
S = TransactionState


def metadata(
    state: TransactionState = S.EMPTY, epoch: int = 3, *partitions: TopicPartition
) -> TransactionMetadata:
    start_ms = 50 if state not in (S.EMPTY, S.DEAD) else -1
    return TransactionMetadata("id", 7, epoch, 1000, state, 100, partitions, start_ms)


def step(state: TransactionState, subject: TransactionMetadata) -> TransitMetadata:
    """Begin the change to a state by the operation that leads there."""
    if state is S.EMPTY:
        return subject.prepare_increment_producer_epoch(1000, None, 200)
    if state is S.ONGOING:
        return subject.prepare_add_partitions((ORDERS,), 200)
    if state in (S.PREPARE_COMMIT, S.PREPARE_ABORT):
        return subject.prepare_abort_or_commit(state is S.PREPARE_COMMIT, 200)
    if state in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):
        return subject.prepare_complete(200)
    return subject.prepare_dead() if state is S.DEAD else subject.prepare_fence_producer_epoch()


@pytest.mark.parametrize("before", list(S), ids=lambda state: state.title)
@pytest.mark.parametrize("after", list(S), ids=lambda state: state.title)
def test_each_transition_is_allowed_or_refused(before: S, after: S) -> None:
    """DP-134: all 64 pairs of states are allowed or refused; a refused change leaves no pending
    state."""
    subject = metadata(before)
    allowed = before in VALID_PREVIOUS_STATES[after]
    if after in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT) and before in (
        S.PREPARE_COMMIT,
        S.PREPARE_ABORT,
    ):
        return  # the outcome follows from the decision, whatever was requested
    if not allowed:
        with pytest.raises(InvariantError, match=f"from {before.title} to"):
            step(after, subject)
        assert (subject.state, subject.pending_state) == (before, None)
        return
    target = step(after, subject)
    assert (target.state, subject.state, subject.pending_state) == (after, before, after)


@pytest.mark.parametrize("state", list(S))
def test_nothing_begins_while_a_change_is_pending(state: S) -> None:
    subject = metadata(S.EMPTY)
    subject.prepare_add_partitions((ORDERS,), 200)
    with pytest.raises(InvariantError, match="transition to Ongoing is pending"):
        step(state, subject)


def test_a_transaction_from_its_beginning_to_its_end() -> None:
    """The first partition starts the timeout; the completion removes all partitions."""
    subject = metadata()
    subject.complete(subject.prepare_add_partitions((ORDERS,), 200))
    subject.complete(subject.prepare_add_partitions((AUDIT, ORDERS), 300))
    assert (subject.state, subject.start_ms, subject.updated_ms) == (S.ONGOING, 200, 300)
    assert tuple(subject.partitions) == (ORDERS, AUDIT)
    subject.complete(subject.prepare_abort_or_commit(True, 400))
    assert (subject.state, tuple(subject.partitions)) == (S.PREPARE_COMMIT, (ORDERS, AUDIT))
    subject.remove_partition(ORDERS)
    target = subject.prepare_complete(500)
    assert target.state is S.COMPLETE_COMMIT
    subject.complete(target)
    assert (tuple(subject.partitions), subject.start_ms, subject.updated_ms) == ((), 200, 500)
    subject.complete(subject.prepare_add_partitions((AUDIT,), 600))
    assert subject.start_ms == 600


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("producer_epoch", 5),
        ("producer_id", 8),
        ("timeout_ms", 999),
        ("partitions", ()),
        ("state", S.EMPTY),
    ],
)
def test_a_target_that_does_not_follow_is_refused(change: str, value: object) -> None:
    """DP-134: a change must keep epoch, id, timeout and partitions of an open transaction."""
    subject = metadata(S.ONGOING, 3, ORDERS)
    target = subject.prepare_add_partitions((AUDIT,), 200)
    with pytest.raises(InvariantError, match="cannot change to"):
        subject.complete(changed(target, **{change: value}))
    assert subject.pending_state is S.ONGOING


def test_without_a_pending_change_nothing_is_completed() -> None:
    subject = metadata()
    target = metadata().prepare_add_partitions((ORDERS,), 200)
    with pytest.raises(InvariantError):
        subject.complete(target)


@pytest.mark.parametrize("state", [S.DEAD, S.PREPARE_EPOCH_FENCE])
def test_two_states_are_never_reached(state: S) -> None:
    """Two states are never reached: a dead id is removed instead, and a fence becomes an abort."""
    subject = metadata(S.EMPTY if state is S.DEAD else S.ONGOING)
    with pytest.raises(InvariantError, match="cannot change to"):
        subject.complete(step(state, subject))


@pytest.mark.parametrize(
    ("present", "last", "expected", "outcome"),
    [
        (3, -1, None, (4, -1)),
        (-1, -1, None, (0, -1)),
        (3, -1, 3, (4, 3)),
        (-1, -1, 9, (0, -1)),
        (4, 3, 3, (4, 3)),
        (4, 3, 4, (5, 4)),
        (4, 3, 2, None),
        (4, -1, 3, None),
    ],
)
def test_valid_epochs_of_a_producer(
    present: int, last: int, expected: int | None, outcome: tuple[int, int] | None
) -> None:
    """KIP-360: the present epoch is raised, the one before is repeated, any other is fenced."""
    subject = metadata(S.EMPTY, present)
    subject.last_producer_epoch = last
    if outcome is None:
        with pytest.raises(KafkaError) as raised:
            subject.prepare_increment_producer_epoch(2000, expected, 200)
        assert raised.value.code is ErrorCode.PRODUCER_FENCED
        assert subject.pending_state is None
        return
    subject.complete(subject.prepare_increment_producer_epoch(2000, expected, 200))
    assert (subject.producer_epoch, subject.last_producer_epoch) == outcome
    assert subject.timeout_ms == 2000


def test_the_last_epoch_is_kept_for_fencing() -> None:
    """32766 is the last epoch that a client gets; 32767 fences it, and no epoch follows."""
    used_up = metadata(S.EMPTY, 32766)
    assert used_up.is_epoch_exhausted
    with pytest.raises(InvariantError):
        used_up.prepare_increment_producer_epoch(1000, None, 200)
    assert metadata(S.ONGOING, 32766, ORDERS).prepare_fence_producer_epoch().producer_epoch == 32767
    with pytest.raises(InvariantError):
        metadata(S.ONGOING, 32767, ORDERS).prepare_fence_producer_epoch()


def test_a_new_producer_id_begins_with_epoch_zero() -> None:
    subject = metadata(S.COMPLETE_COMMIT, 32766)
    subject.complete(subject.prepare_producer_id_rotation(8, 1000, 200, keep_last_epoch=True))
    assert (subject.producer_id, subject.producer_epoch) == (8, 0)
    assert (subject.last_producer_id, subject.last_producer_epoch) == (7, 32766)
    assert subject.is_valid_producer_id(7, 32766)
    assert not subject.is_valid_producer_id(7, 12)
    with pytest.raises(InvariantError):
        metadata(S.ONGOING, 32766).prepare_producer_id_rotation(9, 1000, 200, keep_last_epoch=False)


def test_a_producer_that_names_no_epoch_keeps_no_former_epoch() -> None:
    """Only a producer that named its epoch may repeat the request with it after a lost answer
    (KIP-360); for others no former epoch is kept."""
    subject = metadata(S.COMPLETE_COMMIT, 32766)
    subject.complete(subject.prepare_producer_id_rotation(8, 1000, 200, keep_last_epoch=False))
    assert (subject.producer_epoch, subject.last_producer_epoch) == (0, -1)


def test_a_fence_that_failed_does_not_raise_the_epoch_again() -> None:
    """KAFKA-9666: a fence that could not be written does not raise the epoch at the next
    attempt."""
    subject = metadata(S.ONGOING, 3, ORDERS)
    subject.fence_failed = True
    assert subject.prepare_fence_producer_epoch().producer_epoch == 3


def test_a_producer_id_is_never_negative() -> None:
    subject = metadata()
    subject.producer_id = -1
    with pytest.raises(InvariantError):
        subject.prepare_add_partitions((ORDERS,), 200)


@pytest.mark.parametrize("state", [s for s in S if not s.is_prepared])
def test_only_a_decided_transaction_waits_for_markers(state: S) -> None:
    with pytest.raises(InvariantError, match="has no markers to write"):
        metadata(state, 3, ORDERS).remove_partition(ORDERS)


@pytest.mark.parametrize(
    ("state", "commit", "abort"),
    [
        (S.EMPTY, 48, 48),
        (S.PREPARE_COMMIT, 51, 48),
        (S.PREPARE_ABORT, 48, 51),
        (S.COMPLETE_COMMIT, 0, 48),
        (S.COMPLETE_ABORT, 48, 0),
    ],
)
def test_ending_a_transaction_that_is_not_open(state: S, commit: int, abort: int) -> None:
    """DP-134: if no transaction is open, the same end succeeds again, and another end is
    INVALID_TXN_STATE."""
    assert (end_txn_error(state, True), end_txn_error(state, False)) == (commit, abort)


def test_states_have_the_names_of_kafka() -> None:
    assert list(STATE_BY_TITLE) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
