"""The offsets of one group: committed, on their way into the log, and pending in transactions
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
    """Offsets that count when the transaction of a producer commits (KIP-98, KIP-447)."""

    group_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[OffsetCommitPartition, ...]
    member_id: str = NO_MEMBER
    group_instance_id: str | None = None
    generation: int = NO_GENERATION
    guard: VerificationGuard | Unguarded | None = UNGUARDED
    """The one that the transaction was verified with (KIP-890)."""


class CommitRecord(NamedTuple):
    """An offset, and where its record stands in the log: of two, the later record counts.

    Records of a transaction count by where they were written, not by where the transaction
    ended; a coordinator that loads the compacted log sees the same.
    """

    batch_offset: int | None
    """Base offset of the batch; None until it has been appended."""
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
        """Sent to the log, not acknowledged yet."""
        self.pending_in_transactions: dict[int, dict[TopicPartition, CommitRecord]] = {}
        """By producer id: what the end of its transaction will decide on."""

    @property
    def is_empty(self) -> bool:
        return not (self.committed or self.pending or self.pending_in_transactions)

    def get(self, partition: TopicPartition) -> OffsetValue | None:
        commit = self.committed.get(partition)
        return None if commit is None else commit.value

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Return whether a commit of the partition is under way, in a transaction or not
        (KIP-447)."""
        return partition in self.pending or any(
            partition in commits for commits in self.pending_in_transactions.values()
        )

    def fetch(self, partition: TopicPartition, require_stable: bool) -> CommittedOffset:
        """The answer to who asks for the offset of a partition."""
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
        """These are about to be appended."""
        self.pending.update(values)

    def appended(self, partition: TopicPartition, commit: CommitRecord) -> None:
        """The record is replicated. Nothing happens to what was removed meanwhile."""
        staged = self.pending.get(partition)
        if staged is None:
            return
        if _is_newer(commit, self.committed.get(partition)):
            self.committed[partition] = commit
        if staged == commit.value:
            del self.pending[partition]

    def failed(self, partition: TopicPartition, value: OffsetValue) -> None:
        """The record could not be appended."""
        if self.pending.get(partition) == value:
            del self.pending[partition]

    # -- commits in transactions ---------------------------------------------------------------

    def prepare_in_transaction(
        self, producer_id: int, values: Mapping[TopicPartition, OffsetValue]
    ) -> None:
        """These are about to be appended in the producer's transaction."""
        commits = self.pending_in_transactions.setdefault(producer_id, {})
        for partition, value in values.items():
            commits[partition] = CommitRecord(None, value)

    def appended_in_transaction(
        self, producer_id: int, partition: TopicPartition, commit: CommitRecord
    ) -> None:
        """The record is replicated; it counts when the transaction commits."""
        commits = self.pending_in_transactions.get(producer_id, {})
        staged = commits.get(partition)
        if staged is not None and staged.value == commit.value:
            commits[partition] = commit

    def failed_in_transaction(self, producer_id: int, partition: TopicPartition) -> None:
        """The record could not be appended; the client tries again, perhaps elsewhere."""
        commits = self.pending_in_transactions.get(producer_id)
        if commits is not None:
            commits.pop(partition, None)
            if not commits:
                del self.pending_in_transactions[producer_id]

    def complete_transaction(self, producer_id: int, is_commit: bool) -> None:
        """The marker of the producer's transaction is in the log."""
        commits = self.pending_in_transactions.pop(producer_id, {})
        if not is_commit:
            return
        for partition, commit in commits.items():
            if commit.batch_offset is not None and _is_newer(commit, self.committed.get(partition)):
                self.committed[partition] = commit

    # -- removal -------------------------------------------------------------------------------

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Forget partitions altogether; gives those that had an offset."""
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
        """Forget offsets whose time is up, unless a commit is under way; gives their partitions."""
        expired = [
            partition
            for partition, commit in self.committed.items()
            if partition not in self.pending and is_expired(partition, commit.value)
        ]
        for partition in expired:
            del self.committed[partition]
        return expired
