"""The states of a transactional id and the transitions Kafka allows between them
(docs/kafka/transactions.md#states)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from ...protocol.errors import ErrorCode


class TransactionState(IntEnum):
    """Kafka's ``TransactionState``, numbered as in the records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """Kafka's name of the state, as DescribeTransactions returns it: ``PrepareCommit``."""
        return _TITLES[self]

    @property
    def is_prepared(self) -> bool:
        """True if the outcome is decided and its markers are being written."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


_TITLES = {
    state: "".join(word.title() for word in state.name.split("_")) for state in TransactionState
}
STATE_BY_TITLE: Mapping[str, TransactionState] = MappingProxyType(
    {title: state for state, title in _TITLES.items()}
)

_EMPTY = TransactionState.EMPTY
_ONGOING = TransactionState.ONGOING
_COMPLETE_COMMIT = TransactionState.COMPLETE_COMMIT
_COMPLETE_ABORT = TransactionState.COMPLETE_ABORT

VALID_PREVIOUS_STATES: Mapping[TransactionState, tuple[TransactionState, ...]] = MappingProxyType(
    {
        _EMPTY: (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
        _ONGOING: (_ONGOING, _EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT),
        TransactionState.PREPARE_COMMIT: (_ONGOING,),
        TransactionState.PREPARE_ABORT: (_ONGOING, TransactionState.PREPARE_EPOCH_FENCE),
        _COMPLETE_COMMIT: (TransactionState.PREPARE_COMMIT,),
        _COMPLETE_ABORT: (TransactionState.PREPARE_ABORT,),
        TransactionState.DEAD: (_EMPTY, _COMPLETE_ABORT, _COMPLETE_COMMIT),
        TransactionState.PREPARE_EPOCH_FENCE: (_ONGOING,),
    }
)
EXPIRABLE_STATES = (_EMPTY, _COMPLETE_COMMIT, _COMPLETE_ABORT)
"""States in which a transactional id may expire."""


def end_txn_error(state: TransactionState, is_commit: bool) -> ErrorCode:
    """Return the answer to EndTxn in a state other than Ongoing."""
    prepared, complete = (
        (TransactionState.PREPARE_COMMIT, _COMPLETE_COMMIT)
        if is_commit
        else (TransactionState.PREPARE_ABORT, _COMPLETE_ABORT)
    )
    if state is complete:
        return ErrorCode.NONE
    return ErrorCode.CONCURRENT_TRANSACTIONS if state is prepared else ErrorCode.INVALID_TXN_STATE
