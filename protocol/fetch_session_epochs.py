"""The epochs of incremental fetch sessions (KIP-227, docs/kafka/fetch-sessions.md)."""

from __future__ import annotations

INITIAL_EPOCH = 0
"""Epoch of a full fetch that requests a new session."""
FINAL_EPOCH = -1
"""Epoch of a full fetch that closes its session, or does without one."""
INVALID_SESSION_ID = 0
EPOCH_MAX = 2147483647


def next_epoch(epoch: int) -> int:
    """Return the epoch after ``epoch``. It wraps to 1, as 0 would create a new session."""
    return 1 if epoch == EPOCH_MAX else epoch + 1
