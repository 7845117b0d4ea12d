"""Disk of a ZooKeeper server; it outlives the server object."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ...protocol.errors import invariant
from ..messages import CreateSession, ZkResponse
from ..tree import ZnodeTree
from ..znode import TreeSnapshot
from .journal import Entry, Epochs, Journal, Saved, Truncation
from .quorum_messages import Txn

COMMITTED_LOG_TXNS = 500
"""Number of applied transactions kept to bring a follower up to date without a snapshot."""


class ZooKeeperStorage:
    """The applied tree, the recent log of transactions, and the promised epochs.

    The tree is kept as of the last applied transaction, so no log is replayed at a start. Applied
    transactions are always committed. ``log`` ends with the transactions that are logged but not
    known to be committed; only these can be truncated.

    With a ``journal``, every change is appended there before it is made, and ``restored`` makes an
    equal storage in another process.
    """

    def __init__(self) -> None:
        self.tree: ZnodeTree = ZnodeTree()
        self.log: list[Txn] = []
        self._accepted_epoch = 0
        self._current_epoch = 0
        self.next_session_id: int = 0
        self.journal: Journal | None = None
        self.former_sessions: dict[int, None] = {}
        """Sessions of a former process, whose clients cannot come back: the leader, or the
        standalone server, expires them as soon as it serves."""
        self._applied_count = 0  # log[:_applied_count] is in the tree
        self._base_zxid = 0  # zxid of the transaction before log[0]

    @property
    def accepted_epoch(self) -> int:
        """Highest epoch this server has promised to take part in; >= ``current_epoch``."""
        return self._accepted_epoch

    @accepted_epoch.setter
    def accepted_epoch(self, epoch: int) -> None:
        if self.journal is not None:
            self.journal.append(Epochs(epoch, self._current_epoch))
        self._accepted_epoch = epoch

    @property
    def current_epoch(self) -> int:
        """Epoch of the leader whose history this server holds."""
        return self._current_epoch

    @current_epoch.setter
    def current_epoch(self, epoch: int) -> None:
        if self.journal is not None:
            self.journal.append(Epochs(self._accepted_epoch, epoch))
        self._current_epoch = epoch

    @property
    def last_logged_zxid(self) -> int:
        """Zxid of the last logged transaction, which leader election compares."""
        return self.log[-1].zxid if self.log else self.tree.last_zxid

    @property
    def base_zxid(self) -> int:
        """Zxid of the transaction just before the first one in ``log``."""
        return self._base_zxid if self.log else self.tree.last_zxid

    def append(self, txn: Txn) -> None:
        """Log a transaction, whose zxid must be higher than that of the last one."""
        invariant(txn.zxid > self.last_logged_zxid, "a logged zxid did not grow")
        if self.journal is not None:
            self.append_to_journal(txn)
        if not self.log:
            self._base_zxid = self.tree.last_zxid
        self.log.append(txn)

    @property
    def next_unapplied(self) -> Txn | None:
        """The first logged transaction that is not in the tree yet."""
        log = self.log
        return log[self._applied_count] if self._applied_count < len(log) else None

    def apply_next(self) -> tuple[Txn, ZkResponse]:
        """Apply the first logged transaction that is not in the tree yet."""
        txn = self.log[self._applied_count]
        response = self.tree.apply(txn.zxid, txn.time_ms, txn.session_id, txn.request)
        self._applied_count += 1
        if self._applied_count >= 2 * COMMITTED_LOG_TXNS:
            self._base_zxid = self.log[COMMITTED_LOG_TXNS - 1].zxid
            del self.log[:COMMITTED_LOG_TXNS]
            self._applied_count -= COMMITTED_LOG_TXNS
        return txn, response

    def position_of(self, zxid: int) -> int | None:
        """Return the number of transactions of ``log`` up to and including ``zxid``.

        Return None if ``zxid`` is neither in the log nor just before it.
        """
        if zxid == self.base_zxid:
            return 0
        index = self.position_at_most(zxid)
        return index if index and self.log[index - 1].zxid == zxid else None

    def position_at_most(self, zxid: int) -> int:
        """Return the number of transactions of ``log`` whose zxid is not above ``zxid``."""
        low, high = 0, len(self.log)
        while low < high:
            middle = (low + high) // 2
            if self.log[middle].zxid <= zxid:
                low = middle + 1
            else:
                high = middle
        return low

    def truncate_after(self, zxid: int) -> bool:
        """Remove the transactions logged after ``zxid``; return False, and do nothing, if some of
        them are applied or ``zxid`` is not in the log."""
        position = self.position_of(zxid)
        if position is None or position < self._applied_count:
            return False
        if self.journal is not None:
            self.journal.append(Truncation(zxid))
        del self.log[position:]
        return True

    def apply_all(self) -> None:
        """Apply the whole log and empty it, for a server without peers."""
        while self.next_unapplied is not None:
            self.apply_next()
        self.log.clear()
        self._applied_count = 0
        self.tree.take_changes()

    def install(self, snapshot: TreeSnapshot) -> None:
        """Replace tree and log with a snapshot."""
        self.tree = ZnodeTree.restored(snapshot)
        self.log.clear()
        self._applied_count = 0
        self.save()

    def log_between(self, start: int, end: int) -> tuple[Txn, ...]:
        """Return the transactions of ``log`` from position ``start`` to before ``end``."""
        return tuple(self.log[start:end])

    def applied_position(self) -> int:
        """Return the number of transactions of ``log`` that are in the tree."""
        return self._applied_count

    # --- outliving the process

    def append_to_journal(self, txn: Txn) -> None:
        """Append a transaction to the journal, after saving a snapshot if one is due."""
        journal = self.journal
        if journal is not None:
            if journal.is_due:
                self.save()
            journal.append(txn)

    def save(self) -> None:
        """Replace the journal's contents with a snapshot of the tree and the unapplied log."""
        if self.journal is not None:
            epochs = Epochs(self._accepted_epoch, self._current_epoch)
            rest: list[Entry] = [epochs, *self.log[self._applied_count :]]
            self.journal.save(Saved(self.next_session_id, self.tree.snapshot()), rest)

    def close(self) -> None:
        """Save a snapshot, so that the next start has nothing to replay, and close the journal."""
        journal = self.journal
        if journal is not None:
            with suppress(OSError):  # the log is enough to recover
                self.save()
            self.journal = None
            journal.close()

    @classmethod
    def restored(
        cls, server_id: int, saved: Saved | None, entries: Iterable[Entry]
    ) -> ZooKeeperStorage:
        """Return the storage that a journal describes, with no journal attached yet.

        The tree is that of the snapshot; the transactions logged after it are committed (or
        truncated) by the next server to lead or serve, as ZooKeeper does with its own log.
        """
        storage = cls()
        if saved is not None:
            storage.tree = ZnodeTree.restored(saved.tree)
            storage.next_session_id = saved.next_session_id
        sessions = dict.fromkeys(storage.tree.sessions)
        for entry in entries:
            if isinstance(entry, Epochs):
                storage._accepted_epoch = entry.accepted
                storage._current_epoch = entry.current
            elif isinstance(entry, Truncation):
                storage.truncate_after(entry.zxid)
            else:
                storage.append(entry)
                if isinstance(entry.request, CreateSession):
                    sessions[entry.session_id] = None
                    if entry.session_id >> 56 == server_id:
                        following = entry.session_id + 1
                        storage.next_session_id = max(storage.next_session_id, following)
        storage.former_sessions = sessions
        return storage
