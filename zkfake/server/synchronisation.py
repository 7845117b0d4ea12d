"""Synchronisation of a follower: its history becomes the leader's (``LearnerHandler``)."""

from __future__ import annotations

from ..znode import TreeSnapshot
from .quorum_messages import SyncMode, Txn
from .storage import ZooKeeperStorage

Difference = tuple[SyncMode, int, TreeSnapshot | None, tuple[Txn, ...]]
"""Mode, zxid to truncate to, snapshot, transactions to log after that."""


def difference(
    storage: ZooKeeperStorage, follower_zxid: int, end: int, force_snapshot: bool
) -> Difference:
    """Return what takes a follower that has logged up to ``follower_zxid`` to position ``end``.

    What the follower has and the leader has not is truncated; when the leader's log does not reach
    back far enough, the follower gets the whole tree.
    """
    if force_snapshot or follower_zxid < storage.base_zxid:
        start = storage.applied_position()
        return SyncMode.SNAP, 0, storage.tree.snapshot(), storage.log_between(start, end)
    position = storage.position_of(follower_zxid)
    if position is not None and position <= end:
        return SyncMode.DIFF, 0, None, storage.log_between(position, end)
    start = min(storage.position_at_most(follower_zxid), end)
    common = storage.log[start - 1].zxid if start else storage.base_zxid
    return SyncMode.TRUNC, common, None, storage.log_between(start, end)
