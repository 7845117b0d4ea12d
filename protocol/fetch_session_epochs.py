"""The epochs of incremental fetch sessions (KIP-227, docs/kafka/fetch-sessions.md)."""

from __future__ import annotations

INITIAL_EPOCH = 0
"""Of a full fetch that asks for a session."""
FINAL_EPOCH = -1
"""Of a full fetch that closes its session, or wants none."""
INVALID_SESSION_ID = 0
EPOCH_MAX = 2147483647


def next_epoch(epoch: int) -> int:
    """The epoch after ``epoch``: never 0 again, which would create a session."""
    return 1 if epoch == EPOCH_MAX else epoch + 1
