"""Reads of one partition for a fetch, and the check whether a waiting fetch may be answered
(docs/kafka/fetch.md).

Both modules that serve fetches use this: ``fetch.py`` for consumers and for followers without an
incremental session, ``follower_fetch.py`` for followers with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...protocol.config import BrokerConfig
from ...protocol.data import (
    READ_COMMITTED,
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.records.batch import whole_batches
from ...protocol.values import TopicPartition
from ..log.log import Log
from ..log.lookups import aborted_transactions
from ..partition.hosted_partitions import HostedPartitions
from ..partition.partition import Partition
from ..partition.replica import Replica
from ..replication_quotas import ReplicationQuota
from .delayed_fetch import DelayedFetch
from .replica_selector import preferred_replica, replica_selector
from .sessions import CachedPartition, FollowerFetch

if TYPE_CHECKING:
    from ...protocol.releases.behaviour import Behaviour
    from ..partition.metadata_cache import MetadataCache
    from .replica_selector import ReplicaSelector

_NONE = ErrorCode.NONE


class PartitionReader:
    """Reads partitions for consumers and followers."""

    def __init__(
        self,
        hosted: HostedPartitions,
        config: BrokerConfig,
        on_storage_failure: Callable[[TopicPartition, Exception], object],
        quota: ReplicationQuota,
    ) -> None:
        """``quota`` is the leader's quota of throttled replication."""
        self.hosted: HostedPartitions = hosted
        self.by_name: dict[TopicPartition, Partition] = hosted.by_name
        self.behaviour: Behaviour = hosted.behaviour
        self.metadata_cache: MetadataCache = hosted.metadata_cache
        self.on_storage_failure: Callable[[TopicPartition, Exception], object] = on_storage_failure
        self.quota: ReplicationQuota = quota
        self._throttled_topics = quota.topics
        self.fetch_bytes_max: int = config["fetch.max.bytes"]
        self._always_returns_stable_offset: bool = hosted.behaviour.stable_offset_told_unasked
        self.selector: ReplicaSelector | None = replica_selector(config["replica.selector.class"])

    def read_partition(
        self,
        operation: DelayedFetch | FollowerFetch,
        spec: FetchPartition | CachedPartition,
        partition: Partition | None,
        replica: Replica | None,
        bytes_max: int,
        is_first: bool,
    ) -> tuple[FetchPartitionResponse, int]:
        """Read one partition; return its response and the number of bytes read.

        With ``is_first``, no partition before it returned any, so one batch may exceed the limits.
        """
        topic_partition = spec.topic_partition
        request = operation.request
        api_version = operation.api_version
        if partition is None:
            error = self.hosted.lookup_error(topic_partition)
            return FetchPartitionResponse(topic_partition, error), 0
        error = partition.access_error(spec.current_leader_epoch, operation.require_leader)
        if error is _NONE and 0 <= api_version < 10 and partition.settings.compression_is_zstd:
            error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        log = partition.log
        if error is not _NONE or log is None:
            return FetchPartitionResponse(topic_partition, error), 0
        if request.replica_id >= 0 and replica is None:
            return self._read_as_unassigned(operation, spec, log), 0
        fetch_offset = spec.fetch_offset
        if request.replica_id < 0 and self.selector is not None and operation.has_client_metadata:
            preferred = preferred_replica(
                self.selector, partition, self.metadata_cache, fetch_offset, request.rack_id
            )
            if preferred >= 0:
                _mark_unread(operation, topic_partition)
                response = _empty_response(
                    topic_partition,
                    log,
                    log.last_stable_offset,
                    preferred_read_replica=preferred,
                )
                return response, 0
        if spec.last_fetched_epoch >= 0:
            diverging = _check_divergence(log, fetch_offset, spec.last_fetched_epoch)
            if isinstance(diverging, ErrorCode):
                return FetchPartitionResponse(topic_partition, diverging), 0
            if diverging is not None:
                stable = log.last_stable_offset
                return _empty_response(topic_partition, log, stable, diverging_epoch=diverging), 0
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset:
            return FetchPartitionResponse(topic_partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0
        return self._read_log(operation, spec, partition, log, bytes_max, is_first)

    def _read_log(
        self,
        operation: DelayedFetch | FollowerFetch,
        spec: FetchPartition | CachedPartition,
        partition: Partition,
        log: Log,
        bytes_max: int,
        is_first: bool,
    ) -> tuple[FetchPartitionResponse, int]:
        request = operation.request
        fetch_offset = spec.fetch_offset
        bound = _upper_bound(request, log)
        high_watermark = log.high_watermark
        read_committed = request.replica_id < 0 and request.isolation_level == READ_COMMITTED
        returns_stable_offset = read_committed or self._always_returns_stable_offset
        last_stable_offset = log.last_stable_offset if returns_stable_offset else -1
        if fetch_offset >= bound:
            none = () if read_committed else None
            return _empty_response(spec.topic_partition, log, last_stable_offset, none), 0
        # Fetch v0 to v2 return no batch beyond the limits: even the first is cut.
        has_hard_limits = 0 <= operation.api_version <= 2
        limit = min(spec.max_bytes, bytes_max)
        if limit < 0:  # LogSegment.read throws IllegalArgumentException
            return FetchPartitionResponse(spec.topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR), 0
        try:
            read = log.read(
                fetch_offset, limit, bound, is_first and not has_hard_limits, has_hard_limits
            )
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.on_storage_failure(spec.topic_partition, error)
            return FetchPartitionResponse(spec.topic_partition, error.code), 0
        if self._throttled_topics and self.should_leader_throttle(partition, request.replica_id):
            return _empty_response(spec.topic_partition, log, last_stable_offset), 0
        aborted = None
        if read_committed:
            whole = whole_batches(read.batches)
            end = whole[-1].last_offset + 1 if whole else bound
            aborted = tuple(aborted_transactions(log, fetch_offset, end))
        return (
            FetchPartitionResponse(
                spec.topic_partition,
                _NONE,
                high_watermark,
                last_stable_offset,
                log.log_start_offset,
                read.batches,
                aborted,
            ),
            read.size,
        )

    def should_leader_throttle(self, partition: Partition, replica_id: int) -> bool:
        """Return whether a follower gets no data of a partition for now: the partition is
        throttled, the quota is exceeded, and the follower is not in the ISR, whose members must
        not fall behind (``ReplicaManager.shouldLeaderThrottle``)."""
        quota = self.quota
        return (
            replica_id >= 0
            and replica_id not in partition.isr
            and quota.is_throttled(partition.topic_partition)
            and quota.is_exceeded
        )

    def _ignores_new_data(
        self, partition: Partition, replica_id: int, in_active_segment: bool
    ) -> bool:
        """Return whether new data does not count for a waiting follower (``DelayedFetch``).

        0.10 makes members of the ISR wait, too, unless they lack data in a closed segment.
        """
        if self.should_leader_throttle(partition, replica_id):
            return True
        quota = self.quota
        return (
            in_active_segment
            and self.behaviour.in_sync_fetch_waits_for_quota
            and replica_id >= 0
            and quota.is_throttled(partition.topic_partition)
            and quota.is_exceeded
        )

    def _read_as_unassigned(
        self,
        operation: DelayedFetch | FollowerFetch,
        spec: FetchPartition | CachedPartition,
        log: Log,
    ) -> FetchPartitionResponse:
        """Return the response for a follower that is not assigned to the partition
        (docs/kafka/fetch.md#what-a-followers-fetch-does)."""
        topic_partition = spec.topic_partition
        if self.behaviour.foreign_follower_is_error:
            return FetchPartitionResponse(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.behaviour.foreign_follower_refused:
            # With the current epoch, it may be a new replica that the leader does not know yet.
            has_epoch = spec.current_leader_epoch >= 0
            return FetchPartitionResponse(
                topic_partition,
                ErrorCode.UNKNOWN_LEADER_EPOCH if has_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
        _mark_unread(operation, topic_partition)
        return _empty_response(topic_partition, log, log.last_stable_offset)

    # -- waiting ----------------------------------------------------------------------------

    def is_fetch_satisfied(self, operation: DelayedFetch | FollowerFetch) -> bool:
        """Return whether a waiting fetch may be answered (docs/kafka/fetch.md#waiting)."""
        request = operation.request
        hosted = self.by_name
        min_bytes = request.min_bytes
        if min_bytes > 1:  # at most what a response may hold (docs/kafka/fetch.md#limits)
            min_bytes = min(min_bytes, request.max_bytes, self.fetch_bytes_max)
        require_leader = operation.require_leader
        accumulated = 0
        session = operation.session
        specs: Iterable[FetchPartition | CachedPartition] = operation.specs
        is_followed = False
        if session is not None and session.is_privileged:
            is_followed = True  # its entries may be linked to their partitions
            specs = session.active.values()
        for spec in specs:
            topic_partition = spec.topic_partition
            partition = spec.partition if is_followed else None  # type: ignore[union-attr]
            if partition is None:
                partition = hosted.get(topic_partition)
                if partition is None:
                    return True
            log = partition.log
            if log is None or (require_leader and not partition.is_leader):
                return True
            if -1 < spec.current_leader_epoch < partition.leader_epoch:
                return True
            if operation.unread is not None and topic_partition in operation.unread:
                continue
            bound = log.log_end_offset if is_followed else _upper_bound(request, log)
            fetch_offset = spec.fetch_offset
            if fetch_offset < bound and not (
                self._throttled_topics
                and self._ignores_new_data(
                    partition, request.replica_id, fetch_offset >= log.active.base_offset
                )
            ):
                if min_bytes <= 1 or fetch_offset < log.active.base_offset < bound:
                    return True
                accumulated += _bytes_between(log, fetch_offset, spec.max_bytes, bound)
                if accumulated >= min_bytes:
                    return True
            elif fetch_offset > log.log_end_offset:
                return True  # the log was truncated below the fetch offset
            epoch = spec.last_fetched_epoch
            if epoch >= 0 and epoch != log.latest_epoch:
                end = log.end_offset_for_epoch(epoch)
                if end.leader_epoch < epoch or end.end_offset < fetch_offset:
                    return True
        return False


def _mark_unread(operation: DelayedFetch | FollowerFetch, topic_partition: TopicPartition) -> None:
    if operation.unread is None:
        operation.unread = {}
    operation.unread[topic_partition] = None


def _upper_bound(request: FetchRequest, log: Log) -> int:
    """Return the offset below which the reader may read (docs/kafka/fetch.md#who-may-read-what)."""
    if request.replica_id >= 0:
        return log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _bytes_between(log: Log, fetch_offset: int, max_bytes: int, bound: int) -> int:
    if fetch_offset < log.log_start_offset:
        return max_bytes  # the read will fail: answer now
    read = log.read(fetch_offset, max_bytes, bound, True)
    if read.batches and read.batches[-1].last_offset + 1 < bound:
        return max_bytes  # there is more, of the last batch or in the next segment
    return min(read.size, max_bytes)


def _check_divergence(
    log: Log, fetch_offset: int, last_fetched_epoch: int
) -> EpochEndOffset | ErrorCode | None:
    """Return the epoch at which a follower's log diverges from this one, an error, or None
    (docs/kafka/fetch.md#diverging-epochs)."""
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.end_offset < 0 or fetch_offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None


def _empty_response(
    topic_partition: TopicPartition,
    log: Log,
    last_stable_offset: int,
    aborted_transactions: tuple[AbortedTransaction, ...] | None = None,
    preferred_read_replica: int = -1,
    diverging_epoch: EpochEndOffset | None = None,
) -> FetchPartitionResponse:
    """Return a response without records: nothing is new, or the client must read elsewhere or
    truncate its log."""
    return FetchPartitionResponse(
        topic_partition,
        _NONE,
        log.high_watermark,
        last_stable_offset,
        log.log_start_offset,
        (),
        aborted_transactions,
        preferred_read_replica,
        diverging_epoch,
    )
