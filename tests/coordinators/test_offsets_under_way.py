"""Concurrent commits of one partition: which of them counts, and from when on."""

from __future__ import annotations

import itertools

import pytest
from fakekafka.coordinators.groups.offsets import CommitRecord, GroupOffsets
from fakekafka.coordinators.groups.records import OffsetValue
from fakekafka.protocol.errors import ErrorCode
from fakekafka.tests.support.group_rig import AUDIT, ORDERS

PRODUCER, OTHER = 4711, 4712


def value(offset: int) -> OffsetValue:
    return OffsetValue(offset, -1, "", 0)


@pytest.fixture
def offsets() -> GroupOffsets:
    return GroupOffsets()


@pytest.mark.parametrize("answers", list(itertools.permutations((1, 2, 3))))
def test_of_pending_commits_the_later_one_in_the_log_counts(
    offsets: GroupOffsets, answers: tuple[int, ...]
) -> None:
    """The commit later in the log counts, whatever the order in which commits are replicated.

    A smaller offset committed later counts too, as a consumer may go back
    (``GroupMetadata.onOffsetCommitAppend``).
    """
    for number in (1, 2, 3):
        offsets.prepare({ORDERS: value(100 - number)})
    for done, number in enumerate(answers):
        offsets.appended(ORDERS, CommitRecord(number, value(100 - number)))
        known = offsets.get(ORDERS)
        assert known is not None
        # Once the last one is replicated, answers to those before it change nothing.
        assert known.offset == 100 - max(answers[: done + 1])
    assert not offsets.is_unstable(ORDERS)


def test_a_partition_is_unstable_until_its_last_commit_is_replicated(offsets: GroupOffsets) -> None:
    """KIP-447: a partition is unstable until its last commit is replicated, whatever was answered
    before."""
    offsets.prepare({ORDERS: value(1)})
    offsets.prepare({ORDERS: value(2)})
    offsets.appended(ORDERS, CommitRecord(0, value(1)))
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (value(1), True)
    offsets.appended(ORDERS, CommitRecord(1, value(2)))
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (value(2), False)


def test_an_offset_that_a_transaction_will_move_is_unstable(offsets: GroupOffsets) -> None:
    """KIP-447: a reader that requires stable offsets has to ask again until the transaction
    ends."""
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(1)})
    assert offsets.fetch(ORDERS, True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert offsets.fetch(ORDERS, False).error is ErrorCode.NONE
    assert offsets.fetch(AUDIT, True).error is ErrorCode.NONE
    offsets.appended_in_transaction(PRODUCER, ORDERS, CommitRecord(0, value(1)))
    assert offsets.fetch(ORDERS, True).error is ErrorCode.UNSTABLE_OFFSET_COMMIT
    offsets.complete_transaction(PRODUCER, True)
    told = offsets.fetch(ORDERS, True)
    assert (told.error, told.offset) == (ErrorCode.NONE, 1)


def test_a_commit_that_fails_leaves_a_later_one_under_way(offsets: GroupOffsets) -> None:
    """A failed commit leaves a later one pending (``GroupMetadata.failPendingOffsetWrite``)."""
    offsets.prepare({ORDERS: value(1)})
    offsets.prepare({ORDERS: value(2)})
    offsets.failed(ORDERS, value(1))
    assert offsets.is_unstable(ORDERS)
    offsets.appended(ORDERS, CommitRecord(1, value(2)))
    assert offsets.get(ORDERS) == value(2)
    offsets.prepare({ORDERS: value(3)})
    offsets.failed(ORDERS, value(3))
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (value(2), False)


def test_of_two_commits_in_a_transaction_the_later_one_counts(offsets: GroupOffsets) -> None:
    """Of two commits in a transaction the later one counts, even if the first is answered last."""
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(1)})
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(2)})
    offsets.appended_in_transaction(PRODUCER, ORDERS, CommitRecord(1, value(2)))
    offsets.appended_in_transaction(PRODUCER, ORDERS, CommitRecord(0, value(1)))
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (None, True)
    offsets.complete_transaction(PRODUCER, is_commit=True)
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (value(2), False)


def test_of_two_transactions_the_record_later_in_the_log_counts(offsets: GroupOffsets) -> None:
    """Of two transactions the commit later in the log counts, whichever ends last
    (``GroupMetadata.completePendingTxnOffsetCommit``)."""
    for producer_id, place in ((PRODUCER, 0), (OTHER, 1)):
        offsets.prepare_in_transaction(producer_id, {ORDERS: value(place), AUDIT: value(place)})
        for where in (ORDERS, AUDIT):
            offsets.appended_in_transaction(producer_id, where, CommitRecord(place, value(place)))
    offsets.complete_transaction(OTHER, is_commit=True)
    assert offsets.is_unstable(ORDERS)
    offsets.complete_transaction(PRODUCER, is_commit=True)
    assert (offsets.get(ORDERS), offsets.get(AUDIT)) == (value(1), value(1))
    assert not offsets.is_unstable(ORDERS)


def test_an_aborted_transaction_commits_nothing_and_leaves_nothing(offsets: GroupOffsets) -> None:
    offsets.prepare({ORDERS: value(1)})
    offsets.appended(ORDERS, CommitRecord(0, value(1)))
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(9)})
    offsets.appended_in_transaction(PRODUCER, ORDERS, CommitRecord(1, value(9)))
    offsets.complete_transaction(PRODUCER, is_commit=False)
    assert (offsets.get(ORDERS), offsets.is_unstable(ORDERS)) == (value(1), False)


def test_an_offset_not_replicated_at_the_end_of_its_transaction_does_not_count(
    offsets: GroupOffsets,
) -> None:
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(9)})
    offsets.complete_transaction(PRODUCER, is_commit=True)
    assert offsets.get(ORDERS) is None


def test_a_deleted_offset_does_not_return_when_its_transaction_commits(
    offsets: GroupOffsets,
) -> None:
    """An offset deleted with its topic does not return when the transaction that held it
    commits."""
    offsets.prepare_in_transaction(PRODUCER, {ORDERS: value(9), AUDIT: value(9)})
    for where in (ORDERS, AUDIT):
        offsets.appended_in_transaction(PRODUCER, where, CommitRecord(0, value(9)))
    assert offsets.remove([ORDERS]) == []
    offsets.complete_transaction(PRODUCER, is_commit=True)
    assert (offsets.get(ORDERS), offsets.get(AUDIT)) == (None, value(9))
