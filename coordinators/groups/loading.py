"""Reading a partition of ``__consumer_offsets``: batch by batch, then the groups it tells of
(Kafka: ``GroupMetadataManager.doLoadGroupsAndOffsets``)."""

from __future__ import annotations

from collections.abc import Iterator

from ...protocol.errors import ClientError
from ...protocol.records.batch import RecordBatch
from ...protocol.records.format import Record
from ...protocol.values import TopicPartition
from ..consumer_groups.group import ConsumerGroup
from ..consumer_groups.records import GroupRecord, RecordKind
from ..consumer_groups.records import decode as decode_modern
from .group import Group
from .offsets import CommitRecord
from .records import (
    GroupValue,
    OffsetKey,
    OffsetValue,
    decode_group_value,
    decode_key,
    decode_value,
)

_Commits = dict[OffsetKey, CommitRecord]


class LoadedPartition:
    """State of a partition according to the records read so far."""

    __slots__ = ("_modern", "_modern_records", "_offsets", "_retention_ms", "_values", "pending")

    def __init__(self, retention_ms: int | None, has_consumer_groups: bool = False) -> None:
        """``retention_ms`` is what offsets live for that do not say, where each has its time.

        Records of groups of the consumer protocol are passed over unless there may be some.
        """
        self._retention_ms = retention_ms
        self._modern = has_consumer_groups
        self._modern_records: dict[str, list[GroupRecord]] = {}
        self._offsets: _Commits = {}
        self._values: dict[str, GroupValue] = {}
        self.pending: dict[int, _Commits] = {}
        """By producer id: commits of transactions whose end is not in the log yet."""

    def take(self, batch: RecordBatch) -> None:
        """Take the next batch in; records that nobody can read are passed over."""
        if batch.is_control:
            self._end_transaction(batch)
            return
        target = self._offsets
        if batch.is_transactional:
            target = self.pending.setdefault(batch.producer_id, {})
        for record in batch.records():
            try:
                self._take_record(record, batch.base_offset, target)
            except ClientError:
                continue

    def _take_record(self, record: Record, batch_offset: int, target: _Commits) -> None:
        if record.key is None:
            return
        if self._modern and self._take_modern(record.key, record.value):
            return
        key = decode_key(record.key)
        if isinstance(key, OffsetKey):
            if record.value is None:
                target.pop(key, None)
            else:
                target[key] = CommitRecord(
                    batch_offset, self._with_expiry(decode_value(record.value))
                )
        elif record.value is None:
            self._values.pop(key.group_id, None)
        else:
            self._values[key.group_id] = decode_group_value(record.value)

    def _take_modern(self, key: bytes, value: bytes | None) -> bool:
        """Return whether it was a record of a group of the consumer protocol."""
        found = decode_modern(key, value)
        if found is None:
            return False
        if found.kind is RecordKind.GROUP_EPOCH and found.value is None:
            self._modern_records.pop(found.group_id, None)
        else:
            self._modern_records.setdefault(found.group_id, []).append(found)
        return True

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

    def groups(self, wall_ms: int) -> Iterator[Group | ConsumerGroup]:
        """The groups in the order in which they were stored, those without a record of their own
        (they only commit) behind."""
        groups: dict[str, Group | ConsumerGroup] = {
            group_id: Group.of_value(group_id, value) for group_id, value in self._values.items()
        }
        for group_id, records in self._modern_records.items():
            if any(r.kind is RecordKind.GROUP_EPOCH for r in records):
                modern = groups[group_id] = ConsumerGroup(group_id)
                modern.apply(records)

        def group_of(group_id: str) -> Group | ConsumerGroup:
            known = groups.get(group_id)
            if known is None:
                known = groups[group_id] = Group(group_id, wall_ms)
            return known

        for key, commit in self._offsets.items():
            partition = TopicPartition(key.topic, key.partition)
            group_of(key.group_id).offsets.committed[partition] = commit
        for producer_id, commits in self.pending.items():
            for key, commit in commits.items():
                pending = group_of(key.group_id).offsets.pending_in_transactions
                partition = TopicPartition(key.topic, key.partition)
                pending.setdefault(producer_id, {})[partition] = commit
        yield from groups.values()
