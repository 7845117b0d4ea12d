"""Loading of groups and offsets from the batches of a ``__consumer_offsets`` partition
(Kafka: ``GroupMetadataManager.doLoadGroupsAndOffsets``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ...protocol.errors import ClientError
from ...protocol.records.batch import RecordBatch
from ...protocol.values import TopicPartition
from .group import Group, GroupEnvironment
from .offsets import CommitRecord, GroupOffsets
from .records import (
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_value,
)

Commits = dict[OffsetKey, CommitRecord]


class AnyGroup(Protocol):
    """A group of either protocol."""

    group_id: str
    offsets: GroupOffsets

    @property
    def is_dead(self) -> bool: ...

    @property
    def is_empty(self) -> bool: ...

    @property
    def is_consumer_group(self) -> bool: ...

    @property
    def state_name(self) -> str: ...

    def end(self) -> None: ...

    def tombstones(self) -> list[bytes]: ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def remove_expired_offsets(self, wall_ms: int, retention_ms: int) -> list[TopicPartition]: ...


class LoadedPartition:
    """State of a partition according to the records read so far."""

    def __init__(self, environment: GroupEnvironment, retention_ms: int | None) -> None:
        """``retention_ms`` is the lifetime of offsets without an expiry of their own; None if
        expiry depends on the state of the group."""
        self._environment = environment
        self._retention_ms = retention_ms
        self._offsets: Commits = {}
        self._values: dict[str, GroupValue] = {}
        self.pending: dict[int, Commits] = {}
        """Commits of transactions without a marker in the log yet, by producer id."""

    def apply_batch(self, batch: RecordBatch) -> None:
        """Apply the next batch; records that cannot be decoded are skipped."""
        if batch.is_control:
            self._end_transaction(batch)
            return
        target = self._offsets
        if batch.is_transactional:
            target = self.pending.setdefault(batch.producer_id, {})
        for record in batch.records():
            try:
                if record.key is not None:
                    self.apply_record(record.key, record.value, batch.base_offset, target)
            except ClientError:
                continue

    def apply_record(
        self, key_data: bytes, data: bytes | None, batch_offset: int, target: Commits
    ) -> None:
        """Apply a record; raise ``ClientError`` if it cannot be decoded."""
        key = decode_key(key_data)
        if isinstance(key, OffsetKey):
            if data is None:
                target.pop(key, None)
            else:
                target[key] = CommitRecord(batch_offset, self._with_expiry(decode_value(data)))
        elif data is None:
            self._values.pop(key.group_id, None)
        else:
            self._values[key.group_id] = decode_group_value(data)

    def _with_expiry(self, value: OffsetValue) -> OffsetValue:
        if self._retention_ms is None or value.expire_timestamp_ms >= 0:
            return value
        expire_timestamp_ms = value.commit_timestamp_ms + self._retention_ms
        return value._replace(expire_timestamp_ms=expire_timestamp_ms)

    def _end_transaction(self, batch: RecordBatch) -> None:
        marker = batch.control_marker()
        commits = self.pending.pop(batch.producer_id, {})
        if marker is None or not marker.is_commit:
            return
        for key, commit in commits.items():
            known = self._offsets.get(key)
            if known is None or (known.batch_offset or 0) < (commit.batch_offset or 0):
                self._offsets[key] = commit

    def groups_with_records(self) -> dict[str, AnyGroup]:
        """Return the groups that have a record of their own, in log order."""
        return {
            group_id: Group.from_value(group_id, value, self._environment)
            for group_id, value in self._values.items()
        }

    def groups(self) -> Iterable[AnyGroup]:
        """Return the groups with their offsets, followed by groups that only have offsets."""
        groups = self.groups_with_records()

        def offsets_of(group_id: str) -> GroupOffsets:
            known = groups.get(group_id)
            if known is None:
                known = groups[group_id] = Group(group_id, self._environment)
            return known.offsets

        for key, commit in self._offsets.items():
            partition = TopicPartition(key.topic, key.partition)
            offsets_of(key.group_id).committed[partition] = commit
        for producer_id, commits in self.pending.items():
            for key, commit in commits.items():
                pending = offsets_of(key.group_id).pending_in_transactions
                partition = TopicPartition(key.topic, key.partition)
                pending.setdefault(producer_id, {})[partition] = commit
        return groups.values()
