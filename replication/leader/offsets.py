"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords (docs/kafka/offsets-and-epochs.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ...protocol.data import (
    CONSUMER_REPLICA_ID,
    DEBUGGING_REPLICA_ID,
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochPartition,
    OffsetForLeaderEpochPartitionResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    RequestContext,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.internal_topics import INTERNAL_TOPICS
from ...protocol.values import TopicPartition
from ..log.log import Log
from ..log.lookups import legacy_fetch_offsets_before, offset_for_timestamp
from ..partition.hosted_partitions import HostedPartitions
from ..partition.partition import Partition
from ..waiting.purgatory import DelayedOperation
from .delayed_requests import DelayedRequests

if TYPE_CHECKING:
    from ...protocol.releases.behaviour import Behaviour

HIGH_WATERMARK_OFFSET = -1
"""Offset in DeleteRecords that stands for the high watermark."""

_SPECIAL_TIMES_SINCE = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
}
"""Special timestamps below -2, with the version of ListOffsets that introduced each."""
_NONE = ErrorCode.NONE


class OffsetsHandler:
    """Looks up offsets and epochs, and raises log start offsets."""

    def __init__(self, hosted: HostedPartitions, delayed: DelayedRequests) -> None:
        self.behaviour: Behaviour = hosted.behaviour
        self._by_name = hosted.by_name
        self._lookup_error = hosted.lookup_error
        self._deletions = delayed.deletions

    # -- ListOffsets ------------------------------------------------------------------------

    def list_offsets(
        self, request: ListOffsetsRequest, context: RequestContext
    ) -> ListOffsetsResponse:
        """Return offsets by timestamp or position, with an error per partition."""
        if context.api_version == 0:
            return self._list_old_style(request)
        entries = request.partitions
        repeated: Collection[TopicPartition] = ()
        if len(entries) > 1:
            counts = Counter([entry.topic_partition for entry in entries])
            if len(counts) < len(entries):
                repeated = {name for name, count in counts.items() if count > 1}
                if not self.behaviour.list_offsets_generated:
                    entries = tuple({entry.topic_partition: entry for entry in entries}.values())
        return ListOffsetsResponse(
            tuple(
                ListOffsetsPartitionResponse(entry.topic_partition, ErrorCode.INVALID_REQUEST)
                if entry.topic_partition in repeated
                else self._list_offset(request, entry, context.api_version)
                for entry in entries
            )
        )

    def _list_offset(
        self, request: ListOffsetsRequest, entry: ListOffsetsPartition, api_version: int
    ) -> ListOffsetsPartitionResponse:
        topic_partition = entry.topic_partition
        timestamp = entry.timestamp
        if timestamp < EARLIEST_TIMESTAMP and self.behaviour.special_timestamps_versioned:
            since = _SPECIAL_TIMES_SINCE.get(timestamp)
            if since is None or 0 <= api_version < since:
                return ListOffsetsPartitionResponse(topic_partition, ErrorCode.UNSUPPORTED_VERSION)
        if timestamp == EARLIEST_LOCAL_TIMESTAMP and self.behaviour.earliest_local_lookup:
            timestamp = EARLIEST_TIMESTAMP  # all data is local, as there is no remote storage
        partition = self._by_name.get(topic_partition)
        if partition is None:
            error = self._lookup_error(topic_partition)
            return ListOffsetsPartitionResponse(topic_partition, error)
        error = partition.access_error(
            entry.current_leader_epoch, request.replica_id != DEBUGGING_REPLICA_ID
        )
        log = partition.log
        if error is not _NONE or log is None:
            return ListOffsetsPartitionResponse(topic_partition, error)
        # Only real consumers have an isolation level; followers and debuggers see the whole log.
        is_client = request.replica_id == CONSUMER_REPLICA_ID
        bound = log.log_end_offset
        if is_client:
            bound = (
                log.last_stable_offset
                if request.isolation_level == READ_COMMITTED
                else log.high_watermark
            )
        if timestamp == EARLIEST_TIMESTAMP:
            return ListOffsetsPartitionResponse(
                topic_partition, _NONE, -1, log.log_start_offset, _epoch_at_start(log)
            )
        start_offset = partition.leader_epoch_start_offset
        # A new leader may not know yet how far its predecessor had committed (KIP-207).
        is_behind = is_client and start_offset is not None and log.high_watermark < start_offset
        if timestamp == LATEST_TIMESTAMP:
            if is_behind:
                return ListOffsetsPartitionResponse(topic_partition, ErrorCode.OFFSET_NOT_AVAILABLE)
            return ListOffsetsPartitionResponse(
                topic_partition, _NONE, -1, bound, partition.leader_epoch
            )
        if timestamp == LATEST_TIERED_TIMESTAMP and self.behaviour.special_timestamps_versioned:
            return ListOffsetsPartitionResponse(topic_partition, _NONE)
        found = self._offset_by_time(log, timestamp)
        if isinstance(found, ErrorCode):
            return ListOffsetsPartitionResponse(topic_partition, found)
        if found is None or found[0] >= bound:
            if is_behind:
                return ListOffsetsPartitionResponse(topic_partition, ErrorCode.OFFSET_NOT_AVAILABLE)
            return ListOffsetsPartitionResponse(topic_partition, _NONE)
        offset, found_timestamp, leader_epoch = found
        return ListOffsetsPartitionResponse(
            topic_partition, _NONE, found_timestamp, offset, leader_epoch
        )

    def _offset_by_time(self, log: Log, timestamp: int) -> tuple[int, int, int] | ErrorCode | None:
        """Return (offset, timestamp, epoch) of the record found by timestamp, None or an error."""
        if timestamp == MAX_TIMESTAMP and not self.behaviour.max_timestamp_lookup:
            timestamp -= 1  # an ordinary timestamp, before all others
        try:
            found = offset_for_timestamp(log, timestamp)
        except KafkaError as error:
            return error.code
        if found is None:
            return None
        return found.offset, found.timestamp, found.leader_epoch

    def _list_old_style(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        found = []
        entries = request.partitions
        if not self.behaviour.list_offsets_generated:
            entries = tuple({entry.topic_partition: entry for entry in entries}.values())
        for entry in entries:
            error, offsets = self.legacy_offsets(
                entry.topic_partition, entry.timestamp, entry.offsets_max, request.replica_id
            )
            found.append(
                ListOffsetsPartitionResponse(
                    entry.topic_partition, error, old_style_offsets=offsets
                )
            )
        return ListOffsetsResponse(tuple(found))

    def legacy_offsets(
        self, topic_partition: TopicPartition, timestamp: int, offsets_max: int, replica_id: int
    ) -> tuple[ErrorCode, tuple[int, ...]]:
        """Return up to ``offsets_max`` segment starts before a timestamp, newest first.

        This is ListOffsets v0.
        """
        partition = self._by_name.get(topic_partition)
        if partition is None:
            return self._lookup_error(topic_partition), ()
        error = partition.access_error(-1, replica_id != DEBUGGING_REPLICA_ID)
        log = partition.log
        if error is not _NONE or log is None:
            return error, ()
        if offsets_max < 0:  # Log.legacyFetchOffsetsBefore allocates an array of this size
            return ErrorCode.UNKNOWN_SERVER_ERROR, ()
        bound = log.log_end_offset if replica_id != CONSUMER_REPLICA_ID else log.high_watermark
        offsets = legacy_fetch_offsets_before(log, timestamp, offsets_max)
        if replica_id == CONSUMER_REPLICA_ID and any(offset > bound for offset in offsets):
            offsets = [bound, *(offset for offset in offsets if offset < bound)][:offsets_max]
        return _NONE, tuple(offsets)

    # -- OffsetForLeaderEpoch ---------------------------------------------------------------

    def offsets_for_leader_epoch(
        self, request: OffsetForLeaderEpochRequest
    ) -> OffsetForLeaderEpochResponse:
        """Return the end offsets of epochs in the leader's history; (-1, -1) if undefined."""
        return OffsetForLeaderEpochResponse(
            tuple(self._offset_for_epoch(entry) for entry in request.partitions)
        )

    def _offset_for_epoch(
        self, entry: OffsetForLeaderEpochPartition
    ) -> OffsetForLeaderEpochPartitionResponse:
        topic_partition = entry.topic_partition
        partition = self._by_name.get(topic_partition)
        if partition is None:
            return OffsetForLeaderEpochPartitionResponse(
                topic_partition, self._lookup_error(topic_partition)
            )
        error = partition.access_error(entry.current_leader_epoch, True)
        log = partition.log
        if error is not _NONE or log is None:
            return OffsetForLeaderEpochPartitionResponse(topic_partition, error)
        end = log.end_offset_for_epoch(entry.leader_epoch)
        leader_epoch, end_offset = end.leader_epoch, end.end_offset
        if not self.behaviour.epoch_truncation_rounds:
            # With KIP-101 alone, return no epoch, and no offset for an epoch before the history.
            earliest = log.earliest_epoch
            if earliest < 0 or entry.leader_epoch < earliest:
                end_offset = -1
            leader_epoch = -1
        return OffsetForLeaderEpochPartitionResponse(
            topic_partition, _NONE, leader_epoch, end_offset
        )

    # -- DeleteRecords ----------------------------------------------------------------------

    def delete_records(
        self,
        request: DeleteRecordsRequest,
        context: RequestContext,
        respond: Callable[[DeleteRecordsResponse], object],
    ) -> None:
        """Raise log start offsets; respond when the live replicas have followed, or on timeout."""
        results: list[tuple[TopicPartition, ErrorCode, int]] = []
        pending: dict[int, int] = {}
        for topic_partition, offset in request.offsets:
            error, wanted_offset = self._delete_before(topic_partition, offset)
            if error is _NONE:
                pending[len(results)] = wanted_offset
            results.append((topic_partition, error, -1))
        if not pending:
            respond(DeleteRecordsResponse(tuple(results)))
            return
        keys = [results[index][0] for index in pending]
        operation = DelayedDeleteRecords(self, request.timeout_ms, results, pending, respond)
        self._deletions.try_complete_else_watch(operation, keys)

    def _delete_before(self, topic_partition: TopicPartition, offset: int) -> tuple[ErrorCode, int]:
        """Raise the leader's own log start offset; return an error and the offset to wait for."""
        if topic_partition.topic in INTERNAL_TOPICS:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, -1
        partition = self._by_name.get(topic_partition)
        if partition is None:
            return self._lookup_error(topic_partition), -1
        log = partition.log
        if not partition.is_leader or log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        if not partition.settings.deletes:
            return ErrorCode.POLICY_VIOLATION, -1
        wanted_offset = log.high_watermark if offset == HIGH_WATERMARK_OFFSET else offset
        if wanted_offset < 0 or wanted_offset > log.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE, -1
        if wanted_offset > log.log_start_offset:
            log.maybe_increment_log_start_offset(wanted_offset)
            if partition.report is not None:
                partition.report.log_moved(log)
            partition.wake_fetchers()
        return _NONE, wanted_offset

    def low_watermark_of(self, topic_partition: TopicPartition) -> tuple[ErrorCode, int]:
        """Return an error, or NONE and the low watermark of a partition led here."""
        partition: Partition | None = self._by_name.get(topic_partition)
        if partition is None:
            return self._lookup_error(topic_partition), -1
        if not partition.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER, -1
        return _NONE, partition.low_watermark

    def brokers_below_log_start(self, topic_partition: TopicPartition, offset: int) -> list[str]:
        """Return the live brokers whose replicas still have records below an offset."""
        partition: Partition | None = self._by_name.get(topic_partition)
        return [] if partition is None else partition.brokers_below_log_start(offset)


def _epoch_at_start(log: Log) -> int:
    """Return the leader epoch of the log's first record; -1 if the history does not cover it."""
    return log.epoch_at_log_start


class DelayedDeleteRecords(DelayedOperation):
    """Waits until the live replicas of each partition have raised their log start offsets."""

    __slots__ = ("_handler", "_pending", "_respond", "_results")

    def __init__(
        self,
        handler: OffsetsHandler,
        timeout_ms: int,
        results: list[tuple[TopicPartition, ErrorCode, int]],
        pending: dict[int, int],
        respond: Callable[[DeleteRecordsResponse], object],
    ) -> None:
        super().__init__(timeout_ms)
        self._handler = handler
        self._results = results
        self._pending = pending
        """Requested log start offset of each unfinished partition, by its index in the results."""
        self._respond = respond

    def try_complete(self) -> bool:
        for index, wanted_offset in tuple(self._pending.items()):
            topic_partition = self._results[index][0]
            error, low_watermark = self._handler.low_watermark_of(topic_partition)
            if error is not _NONE:
                self._results[index] = (topic_partition, error, -1)
            elif low_watermark >= wanted_offset:
                self._results[index] = (topic_partition, _NONE, low_watermark)
            else:
                continue
            del self._pending[index]
        return not self._pending and self.force_complete()

    def awaited_brokers(self) -> list[str]:
        names: dict[str, None] = {}
        for index, offset in self._pending.items():
            topic_partition = self._results[index][0]
            brokers = self._handler.brokers_below_log_start(topic_partition, offset)
            names.update(dict.fromkeys(brokers))
        return list(names)

    def on_complete(self) -> None:
        for index in self._pending:
            topic_partition = self._results[index][0]
            self._results[index] = (topic_partition, ErrorCode.REQUEST_TIMED_OUT, -1)
        self._pending = {}
        self._respond(DeleteRecordsResponse(tuple(self._results)))
