"""Committed offsets: a cache in front of ``__consumer_offsets``
(docs/kafka/groups-and-transactions.md).

What a group commits is a record of the internal topic; it is visible once that record is
replicated. The leader of a partition of the topic is the coordinator of the groups that hash to
it; becoming leader means loading the partition, ceasing to be leader means forgetting it.

Members of a group are not tracked here: commits with a generation belong to a group with members
and are refused as the coordinator of an unknown group refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.data import (
    ACKS_ALL,
    INTERNAL_CONTEXT,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from ...protocol.errors import ErrorCode
from ...protocol.groups import (
    CommittedOffset,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from ...protocol.internal_topics import OFFSETS_TOPIC
from ...protocol.records.batch import Record, build_batch
from ...protocol.values import TopicPartition
from ...replication.follower.manager import bucket_of, java_string_hash
from .records import (
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

if TYPE_CHECKING:
    from ...protocol.host import Host
    from ...replication.partition.partition import Partition
    from ...replication.replica_manager import ReplicaManager

_ACKS_NONE = 0
_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}


def _not_awaited(_response: ProduceResponse) -> None:
    """What becomes of tombstones is of no interest: without them the offsets are gone, too."""


class OffsetManager:
    """Offsets of the groups this broker coordinates."""

    def __init__(self, host: Host, config: BrokerConfig, replica_manager: ReplicaManager) -> None:
        self._host = host
        self._config = config
        self._replicas = replica_manager
        self._owned: dict[int, dict[OffsetKey, OffsetValue]] = {}

    def partition_for(self, group_id: str) -> int:
        """Partition of ``__consumer_offsets`` whose leader coordinates the group."""
        known = self._replicas.metadata_cache.partition_count(OFFSETS_TOPIC)
        count = known or self._config["offsets.topic.num.partitions"]
        return bucket_of(java_string_hash(group_id), count)

    # -- leadership ----------------------------------------------------------------------------

    def leadership_changed(
        self, leaders: Iterable[Partition], followers: Iterable[Partition]
    ) -> None:
        """Load partitions of the internal topic that this broker leads now, drop the others."""
        for partition in leaders:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                self._owned[partition.topic_partition.partition] = self._load(partition)
        for partition in followers:
            if partition.topic_partition.topic == OFFSETS_TOPIC:
                self._owned.pop(partition.topic_partition.partition, None)

    def _load(self, hosted: Partition) -> dict[OffsetKey, OffsetValue]:
        offsets: dict[OffsetKey, OffsetValue] = {}
        if hosted.log is None:
            return offsets
        for batch in hosted.log.batches():
            if batch.is_control:
                continue
            for record in batch.records():
                key = None if record.key is None else decode_key(record.key)
                if key is None:
                    continue
                if record.value is None:
                    offsets.pop(key, None)
                else:
                    offsets[key] = decode_value(record.value)
        return offsets

    # -- deletion ------------------------------------------------------------------------------

    def partitions_stopped(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were stopped for good; those of the internal topic are coordinated no more.

        LeaderAndIsr, which tells of other losses of leadership, goes to living replicas only.
        """
        for partition in partitions:
            if partition.topic == OFFSETS_TOPIC:
                self._owned.pop(partition.partition, None)

    def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget what was committed for partitions that are being deleted.

        As Kafka's ``cleanupGroupMetadata`` has it: the offsets go at once, and each group gets
        tombstones that nobody waits for.
        """
        deleted = dict.fromkeys(partitions)
        for owner, offsets in self._owned.items():
            removed: dict[str, list[OffsetKey]] = {}
            for key in offsets:
                if TopicPartition(key.topic, key.partition) in deleted:
                    removed.setdefault(key.group_id, []).append(key)
            for keys in removed.values():
                for key in keys:
                    del offsets[key]
                self._append_tombstones(owner, keys)

    def _append_tombstones(self, owner: int, keys: list[OffsetKey]) -> None:
        now_ms = self._host.now_ms()
        data = build_batch(
            [Record(index, now_ms, encode_key(key), None, ()) for index, key in enumerate(keys)]
        )
        entry = ProducePartition(TopicPartition(OFFSETS_TOPIC, owner), data)
        request = ProduceRequest(_ACKS_NONE, self._config["offsets.commit.timeout.ms"], (entry,))
        self._replicas.append_records(request, INTERNAL_CONTEXT, _not_awaited, origin="coordinator")

    def _gate(self, group_id: str) -> ErrorCode:
        if self.partition_for(group_id) not in self._owned:
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE

    # -- requests ------------------------------------------------------------------------------

    def commit(
        self, request: OffsetCommitRequest, respond: Callable[[OffsetCommitResponse], object]
    ) -> None:
        """Store offsets; answered once they are replicated."""
        error = self._gate(request.group_id)
        if error == ErrorCode.NONE and request.generation >= 0:
            error = ErrorCode.ILLEGAL_GENERATION
        if error != ErrorCode.NONE:
            respond(
                OffsetCommitResponse(tuple((p.topic_partition, error) for p in request.partitions))
            )
            return
        errors = {p.topic_partition: self._check(p) for p in request.partitions}
        accepted = [p for p in request.partitions if errors[p.topic_partition] == ErrorCode.NONE]
        if not accepted:
            respond(OffsetCommitResponse(tuple(errors.items())))
            return
        self._append(request.group_id, accepted, errors, respond)

    def _check(self, partition: OffsetCommitPartition) -> ErrorCode:
        if not self._replicas.metadata_cache.contains(partition.topic_partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len(partition.metadata or "") > self._config["offset.metadata.max.bytes"]:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    def _append(
        self,
        group_id: str,
        accepted: list[OffsetCommitPartition],
        errors: dict[TopicPartition, ErrorCode],
        respond: Callable[[OffsetCommitResponse], object],
    ) -> None:
        now_ms = self._host.now_ms()
        entries = [
            (
                OffsetKey(group_id, *p.topic_partition),
                OffsetValue(p.offset, p.leader_epoch, p.metadata or "", now_ms),
            )
            for p in accepted
        ]
        data = build_batch(
            [
                Record(index, now_ms, encode_key(key), encode_value(value), ())
                for index, (key, value) in enumerate(entries)
            ]
        )
        owner = self.partition_for(group_id)
        where = TopicPartition(OFFSETS_TOPIC, owner)
        request = ProduceRequest(
            ACKS_ALL,
            self._config["offsets.commit.timeout.ms"],
            (ProducePartition(where, data),),
        )

        def appended(response: ProduceResponse) -> None:
            error = response.partitions[0].error
            error = _APPEND_ERRORS.get(error, error)
            owned = self._owned.get(owner)
            for (key, value), partition in zip(entries, accepted, strict=True):
                errors[partition.topic_partition] = error
                if error == ErrorCode.NONE and owned is not None:
                    owned[key] = value
            respond(OffsetCommitResponse(tuple(errors.items())))

        self._replicas.append_records(request, INTERNAL_CONTEXT, appended, origin="coordinator")

    def fetch(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        """Committed offsets; -1 where a group has none, which is no error."""
        error = self._gate(request.group_id)
        if error != ErrorCode.NONE:
            return OffsetFetchResponse(error, ())
        owned = self._owned[self.partition_for(request.group_id)]
        if request.partitions is None:
            wanted = sorted(
                TopicPartition(key.topic, key.partition)
                for key in owned
                if key.group_id == request.group_id
            )
        else:
            wanted = list(request.partitions)
        answers = []
        for partition in wanted:
            value = owned.get(OffsetKey(request.group_id, *partition))
            if value is None:
                answers.append(CommittedOffset(partition, ErrorCode.NONE))
            else:
                answers.append(
                    CommittedOffset(
                        partition,
                        ErrorCode.NONE,
                        value.offset,
                        value.leader_epoch,
                        value.metadata,
                    )
                )
        return OffsetFetchResponse(ErrorCode.NONE, tuple(answers))
