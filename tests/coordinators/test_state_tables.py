"""The states of groups and transactions and their transitions, pair by pair, as in Kafka."""

from __future__ import annotations

from fakekafka.coordinators.groups.group import PREVIOUS_STATES
from fakekafka.coordinators.transactions.states import EXPIRABLE_STATES, VALID_PREVIOUS_STATES

GROUPS = {
    "Empty": {"PreparingRebalance"},
    "PreparingRebalance": {"Stable", "CompletingRebalance", "Empty"},
    "CompletingRebalance": {"PreparingRebalance"},
    "Stable": {"CompletingRebalance"},
    "Dead": {"Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead"},
}
TRANSACTIONS = {
    "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing", "PrepareEpochFence"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
    "Dead": {"Empty", "CompleteAbort", "CompleteCommit"},
    "PrepareEpochFence": {"Ongoing"},
}


def test_a_group_has_kafkas_state_transitions() -> None:
    """A group has the transitions of ``GroupState.validPreviousStates``."""
    found = {
        state.value: {before.value for before in previous}
        for state, previous in PREVIOUS_STATES.items()
    }
    assert found == GROUPS


def test_a_transaction_has_kafkas_state_transitions() -> None:
    """DP-134: a transaction has the transitions of ``TransactionState.validPreviousStates``; ids
    expire in three of its states."""
    found = {
        state.title: {before.title for before in previous}
        for state, previous in VALID_PREVIOUS_STATES.items()
    }
    assert found == TRANSACTIONS
    assert {state.title for state in EXPIRABLE_STATES} == TRANSACTIONS["Dead"]
