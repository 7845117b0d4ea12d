"""The offsets of one group: committed, being appended, and pending in transactions
(docs/kafka/groups-and-transactions.md#committed-offsets)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...protocol.errors import ErrorCode
from ...protocol.groups import NO_GENERATION, NO_MEMBER, CommittedOffset, OffsetCommitPartition
from ...protocol.values import TopicPartition
from ...replication.log.verification import UNGUARDED, Unguarded, VerificationGuard
from .records import OffsetValue


class TransactionalCommit(NamedTuple):
    """Offsets that take effect when a producer's transaction commits (KIP-98, KIP-447)."""

    group_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[OffsetCommitPartition, ...]
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    generation: int = NO_GENERATION
    guard: VerificationGuard | Unguarded | None = UNGUARDED
    """Guard with which the transaction was verified (KIP-890)."""


class CommitRecord(NamedTuple):
    """An offset and the position of its record in the log; the later of two records wins.

    The position of a transactional offset is that of its record, not of the transaction's marker,
    so that a coordinator which loads the compacted log reaches the same result.
    """

    batch_offset: int | None
    """Base offset of the record's batch; None until the batch is appended."""
    value: OffsetValue


def _is_newer(commit: CommitRecord, known: CommitRecord | None) -> bool:
    if known is None or known.batch_offset is None:
        return True
    return commit.batch_offset is not None and known.batch_offset < commit.batch_offset


class GroupOffsets:
    """Committed offsets of a group, by partition."""

    __slots__ = ("committed", "pending", "pending_in_transactions")

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, CommitRecord] = {}
        self.pending: dict[TopicPartition, OffsetValue] = {}
        """Offsets being appended to the log, not acknowledged yet."""
        self.pending_in_transactions: dict[int, dict[TopicPartition, CommitRecord]] = {}
        """Offsets of open transactions, by producer id."""

    @property
    def is_empty(self) -> bool:
        return not (self.committed or self.pending or self.pending_in_transactions)

    def get(self, partition: TopicPartition) -> OffsetValue | None:
        commit = self.committed.get(partition)
        return None if commit is None else commit.value

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether a commit for the partition is pending, transactional or not (KIP-447)."""
        return partition in self.pending or any(
            partition in commits for commits in self.pending_in_transactions.values()
        )

    def fetch(self, partition: TopicPartition, require_stable: bool) -> CommittedOffset:
        """Return the OffsetFetch response for a partition."""
        if require_stable and self.is_unstable(partition):
            return CommittedOffset(partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        value = self.get(partition)
        if value is None:
            return CommittedOffset(partition, ErrorCode.NONE)
        return CommittedOffset(
            partition, ErrorCode.NONE, value.offset, value.leader_epoch, value.metadata
        )

    # -- plain commits -------------------------------------------------------------------------

    def prepare(self, values: Mapping[TopicPartition, OffsetValue]) -> None:
        """Note offsets that are about to be appended."""
        self.pending.update(values)

    def appended(self, partition: TopicPartition, commit: CommitRecord) -> None:
        """Commit an offset whose record is replicated, unless it was removed meanwhile."""
        staged = self.pending.get(partition)
        if staged is None:
            return
        if _is_newer(commit, self.committed.get(partition)):
            self.committed[partition] = commit
        if staged == commit.value:
            del self.pending[partition]

    def failed(self, partition: TopicPartition, value: OffsetValue) -> None:
        """Drop a pending offset whose record could not be appended."""
        if self.pending.get(partition) == value:
            del self.pending[partition]

    # -- transactional commits -----------------------------------------------------------------

    def prepare_in_transaction(
        self, producer_id: int, values: Mapping[TopicPartition, OffsetValue]
    ) -> None:
        """Note offsets that are about to be appended in the producer's transaction."""
        commits = self.pending_in_transactions.setdefault(producer_id, {})
        for partition, value in values.items():
            commits[partition] = CommitRecord(None, value)

    def appended_in_transaction(
        self, producer_id: int, partition: TopicPartition, commit: CommitRecord
    ) -> None:
        """Note the position of a replicated record, whose offset awaits the transaction's end."""
        commits = self.pending_in_transactions.get(producer_id, {})
        staged = commits.get(partition)
        if staged is not None and staged.value == commit.value:
            commits[partition] = commit

    def failed_in_transaction(self, producer_id: int, partition: TopicPartition) -> None:
        """Drop an offset that could not be appended; the client retries, perhaps elsewhere."""
        commits = self.pending_in_transactions.get(producer_id)
        if commits is not None:
            commits.pop(partition, None)
            if not commits:
                del self.pending_in_transactions[producer_id]

    def complete_transaction(self, producer_id: int, is_commit: bool) -> None:
        """Commit or discard the offsets of a transaction whose marker is in the log."""
        commits = self.pending_in_transactions.pop(producer_id, {})
        if not is_commit:
            return
        for partition, commit in commits.items():
            if commit.batch_offset is not None and _is_newer(commit, self.committed.get(partition)):
                self.committed[partition] = commit

    # -- removal -------------------------------------------------------------------------------

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Remove all offsets of partitions; return the partitions with a committed offset."""
        removed = []
        for partition in partitions:
            self.pending.pop(partition, None)
            for commits in self.pending_in_transactions.values():
                commits.pop(partition, None)
            if self.committed.pop(partition, None) is not None:
                removed.append(partition)
        return removed

    def remove_expired(
        self, is_expired: Callable[[TopicPartition, OffsetValue], bool]
    ) -> list[TopicPartition]:
        """Remove expired offsets without a pending commit; return their partitions."""
        expired = [
            partition
            for partition, commit in self.committed.items()
            if partition not in self.pending and is_expired(partition, commit.value)
        ]
        for partition in expired:
            del self.committed[partition]
        return expired
