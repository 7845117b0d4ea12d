"""Fetch: who may read what, long polling, follower bookkeeping (data_plane 6).

Theory of operation. A fetch is read once when it arrives. That first read accounts the progress
of a follower: end offset, ISR, high watermark, in this order, after the result was taken, so an
answer carries the high watermark from before this very fetch. If it brought too little, the fetch
waits under the names of its partitions; whatever completes it reads everything again.

The loop below is the hottest of the whole data plane: every record passes it once per replica,
and every idle follower every half second. Hence its shortcut for a follower at the log's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..protocol.data import (
    READ_COMMITTED,
    EpochEndOffset,
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    RequestContext,
)
from ..protocol.errors import ErrorCode, KafkaError
from ..protocol.values import TopicPartition
from .delayed_operations import DelayedFetch
from .fetch_responses import (
    empty_response,
    follower_response,
    with_diverging_epoch,
    with_no_aborted_transactions,
    with_preferred_replica,
)
from .fetch_session import INITIAL_EPOCH, CachedPartition, FetchSession
from .hosting import PartitionHost
from .log import Log
from .partition import Partition
from .replica import Replica
from .replica_selector import preferred_replica

_NONE = ErrorCode.NONE


class FetchHandling(PartitionHost):
    """The fetch side of a ``ReplicaManager``."""

    fetch_expirations = 0

    def fetch_messages(
        self,
        request: FetchRequest,
        context: RequestContext,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        """Answer a follower's or consumer's fetch; ``respond`` is called once, now or later."""
        now_ms = self.host.now_ms()
        specs: Sequence[FetchPartition | CachedPartition] = request.partitions
        session = None
        if request.session_epoch > INITIAL_EPOCH or request.session_id:
            resolved = self.fetch_sessions.resolve(request, now_ms)
            if isinstance(resolved, ErrorCode):
                respond(FetchResponse(resolved, 0, ()))
                return
            session = resolved
            if session is not None:
                specs = session.to_read()
            elif request.session_epoch > INITIAL_EPOCH:
                specs = ()
        operation = DelayedFetch(self, request, specs, session, context.api_version, respond)
        responses, size, is_final = self._read(operation, now_ms, account=True)
        if (
            is_final
            or request.max_wait_ms <= 0
            or size >= min(request.min_bytes, request.max_bytes, self._fetch_bytes_max)
            or (session is None and not specs)
        ):
            self._respond(operation, responses, now_ms)
        elif session is not None and session.is_privileged:
            # Found through the ``fetch_entries`` of its partitions, not by their names.
            session.parked = operation
            self.timer.add(operation, request.max_wait_ms)
        else:
            self.fetch_purgatory.try_complete_else_watch(
                operation, [spec.topic_partition for spec in specs]
            )

    @property
    def delayed_fetch_count(self) -> int:
        """Fetches that wait, of followers and consumers."""
        return self.fetch_purgatory.delayed_count + self.fetch_sessions.parked_count

    def finish_fetch(self, operation: DelayedFetch) -> None:
        """Read again and answer what is there (a parked fetch completed or timed out)."""
        now_ms = self.host.now_ms()
        session = operation.session
        if session is not None:
            operation.specs = session.to_read()
            if session.parked is operation:
                session.parked = None
        responses, _, _ = self._read(operation, now_ms, account=False)
        self._respond(operation, responses, now_ms)

    def _respond(
        self, operation: DelayedFetch, responses: list[FetchPartitionResponse], now_ms: int
    ) -> None:
        request = operation.request
        session = operation.session
        session_id = 0
        if session is not None:
            session_id = session.session_id
            if responses:
                responses = session.filter_response(responses)
        elif request.session_epoch == INITIAL_EPOCH:
            session_id = self.fetch_sessions.create(
                request.replica_id >= 0, request.partitions, responses, now_ms
            )
        operation.respond(FetchResponse(_NONE, session_id, tuple(responses)))

    # -- reading ----------------------------------------------------------------------------

    def _read(
        self, operation: DelayedFetch, now_ms: int, account: bool
    ) -> tuple[list[FetchPartitionResponse], int, bool]:
        """Read all partitions in order: responses, bytes, whether it must be answered now.

        ``account`` updates the follower's state. Of an incremental session, partitions without
        news may be left out.
        """
        request = operation.request
        replica_id = request.replica_id
        session = operation.session
        hosted = self._partitions
        responses: list[FetchPartitionResponse] = []
        moved: list[Partition] = []
        remaining = min(request.max_bytes, self._fetch_bytes_max)
        size = 0
        is_final = False
        for spec in operation.specs:
            topic_partition = spec.topic_partition
            partition = hosted.get(topic_partition)
            replica: Replica | None = None
            if replica_id >= 0 and partition is not None and partition.is_leader:
                replica = partition.find_replica(replica_id)
            if (
                replica is not None
                and partition is not None
                and (log := partition.log) is not None
                and spec.current_leader_epoch in (-1, partition.leader_epoch)
                and spec.last_fetched_epoch in (-1, log.latest_epoch)
                and log.log_start_offset <= spec.fetch_offset <= log.log_end_offset
                and not log.storage.directory.is_offline
            ):
                # A follower in step with this log: the one case that has to be fast.
                end_offset = log.log_end_offset
                if spec.fetch_offset < end_offset:
                    read = log.read(
                        spec.fetch_offset, min(spec.max_bytes, remaining), end_offset, not size
                    )
                    responses.append(follower_response(topic_partition, log, read.batches))
                    size += read.size
                    remaining = max(0, remaining - read.size)
                elif session is None or _has_news(log, spec):
                    responses.append(follower_response(topic_partition, log, ()))
                if account:
                    self._account(session, partition, replica, spec, now_ms, moved)
                continue
            response, read_size = self._read_partition(
                operation, spec, partition, replica, remaining, not size
            )
            responses.append(response)
            size += read_size
            remaining = max(0, remaining - read_size)
            if response.error is not _NONE or response.diverging_epoch is not None:
                is_final = True
            elif response.preferred_read_replica >= 0:
                is_final = is_final or self.behaviour.preferred_replica_answers_at_once
            elif account and replica is not None and partition is not None:
                self._account(session, partition, replica, spec, now_ms, moved)
        for partition in moved:
            self.complete_delayed(partition)
        return responses, size, is_final

    def _account(
        self,
        session: FetchSession | None,
        partition: Partition,
        replica: Replica,
        spec: FetchPartition | CachedPartition,
        now_ms: int,
        moved: list[Partition],
    ) -> None:
        """Note a follower's progress; ``moved`` collects partitions whose waiters may go on."""
        previous_log_start = replica.log_start_offset
        log = partition.log
        assert log is not None
        high_watermark_moved = partition.update_follower(
            replica, spec.fetch_offset, spec.log_start_offset, now_ms, log.log_end_offset
        )
        if high_watermark_moved or (
            self.delete_purgatory.delayed_count and replica.log_start_offset != previous_log_start
        ):
            moved.append(partition)
        if session is not None and session.is_privileged and isinstance(spec, CachedPartition):
            if spec.replica is not replica:
                spec.link(partition, replica)
            # One outside the ISR is read again each time: it may join with any of its fetches.
            if (
                spec.fetch_offset == log.log_end_offset
                and replica.broker_id in partition.isr
                and not _has_news(log, spec)
            ):
                spec.fall_idle()

    def _read_partition(
        self,
        operation: DelayedFetch,
        spec: FetchPartition | CachedPartition,
        partition: Partition | None,
        replica: Replica | None,
        bytes_max: int,
        is_first: bool,
    ) -> tuple[FetchPartitionResponse, int]:
        """Read one partition: its response and the bytes it brought.

        ``is_first``: no partition before it brought any, so one batch may exceed the limits.
        """
        topic_partition = spec.topic_partition
        request = operation.request
        api_version = operation.api_version
        if partition is None:
            error = self.lookup_error(topic_partition)
            if error is ErrorCode.KAFKA_STORAGE_ERROR and 0 <= api_version <= 5:
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            return FetchPartitionResponse(topic_partition, error), 0
        error = partition.access_error(spec.current_leader_epoch, operation.require_leader)
        if error is _NONE and 0 <= api_version < 10 and partition.settings.compression_is_zstd:
            error = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        log = partition.log
        if error is not _NONE or log is None:
            return FetchPartitionResponse(topic_partition, error), 0
        if request.replica_id >= 0 and replica is None:
            return self._read_as_foreigner(operation, topic_partition, log), 0
        fetch_offset = spec.fetch_offset
        if request.replica_id < 0 and self.selector is not None and operation.has_client_metadata:
            preferred = preferred_replica(
                self.selector, partition, self.metadata_cache, fetch_offset, request.rack_id
            )
            if preferred >= 0:
                _leave_unread(operation, topic_partition)
                response = empty_response(topic_partition, log)
                return with_preferred_replica(response, preferred), 0
        if spec.last_fetched_epoch >= 0:
            diverging = _check_divergence(log, fetch_offset, spec.last_fetched_epoch)
            if isinstance(diverging, ErrorCode):
                return FetchPartitionResponse(topic_partition, diverging), 0
            if diverging is not None:
                return with_diverging_epoch(empty_response(topic_partition, log), diverging), 0
        if not log.log_start_offset <= fetch_offset <= log.log_end_offset:
            return FetchPartitionResponse(topic_partition, ErrorCode.OFFSET_OUT_OF_RANGE), 0
        return self._read_log(operation, spec, log, bytes_max, is_first)

    def _read_log(
        self,
        operation: DelayedFetch,
        spec: FetchPartition | CachedPartition,
        log: Log,
        bytes_max: int,
        is_first: bool,
    ) -> tuple[FetchPartitionResponse, int]:
        request = operation.request
        fetch_offset = spec.fetch_offset
        bound = _upper_bound(request, log)
        high_watermark = log.high_watermark
        last_stable_offset = log.last_stable_offset
        read_committed = request.replica_id < 0 and request.isolation_level == READ_COMMITTED
        if fetch_offset >= bound:
            response = empty_response(spec.topic_partition, log)
            if read_committed:
                response = with_no_aborted_transactions(response)
            return response, 0
        # Fetch v0 to v2 return no batch beyond the limits, not even the first.
        at_least_one = is_first and not 0 <= operation.api_version <= 2
        try:
            read = log.read(fetch_offset, min(spec.max_bytes, bytes_max), bound, at_least_one)
        except KafkaError as error:
            if error.code is ErrorCode.KAFKA_STORAGE_ERROR:
                self.on_storage_failure(spec.topic_partition, error)
            return FetchPartitionResponse(spec.topic_partition, error.code), 0
        aborted = None
        if read_committed:
            end = read.batches[-1].last_offset + 1 if read.batches else bound
            aborted = tuple(log.aborted_transactions(fetch_offset, end))
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

    def _read_as_foreigner(
        self, operation: DelayedFetch, topic_partition: TopicPartition, log: Log
    ) -> FetchPartitionResponse:
        """A follower that is not assigned to the partition (data_plane 6.6)."""
        if self.behaviour.foreign_follower_is_error:
            return FetchPartitionResponse(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
        _leave_unread(operation, topic_partition)
        return empty_response(topic_partition, log)

    # -- waiting ----------------------------------------------------------------------------

    def is_fetch_satisfied(self, operation: DelayedFetch) -> bool:
        """Whether a parked fetch may be answered (data_plane 6.4, cases A to H)."""
        request = operation.request
        hosted = self._partitions
        min_bytes = request.min_bytes
        accumulated = 0
        session = operation.session
        specs: Iterable[FetchPartition | CachedPartition] = operation.specs
        if session is not None and session.is_privileged:
            specs = session.active.values()
        for spec in specs:
            topic_partition = spec.topic_partition
            partition = hosted.get(topic_partition)
            if partition is None:
                return True
            log = partition.log
            if log is None or (operation.require_leader and not partition.is_leader):
                return True
            if -1 < spec.current_leader_epoch < partition.leader_epoch:
                return True
            if operation.unread is not None and topic_partition in operation.unread:
                continue
            bound = _upper_bound(request, log)
            fetch_offset = spec.fetch_offset
            if fetch_offset < bound:
                if min_bytes <= 1 or fetch_offset < log.active.base_offset < bound:
                    return True
                accumulated += _bytes_between(log, fetch_offset, spec.max_bytes, bound)
                if accumulated >= min_bytes:
                    return True
            elif fetch_offset > log.log_end_offset:
                return True  # the log was cut below the position
            epoch = spec.last_fetched_epoch
            if epoch >= 0 and epoch != log.latest_epoch:
                end = log.end_offset_for_epoch(epoch)
                if end.leader_epoch < epoch or end.end_offset < fetch_offset:
                    return True
        return False


def _has_news(log: Log, spec: FetchPartition | CachedPartition) -> bool:
    """Whether an incremental session's client does not know the log's marks yet."""
    return not isinstance(spec, CachedPartition) or (
        log.high_watermark != spec.sent_high_watermark
        or log.log_start_offset != spec.sent_log_start_offset
    )


def _leave_unread(operation: DelayedFetch, topic_partition: TopicPartition) -> None:
    if operation.unread is None:
        operation.unread = {}
    operation.unread[topic_partition] = None


def _upper_bound(request: FetchRequest, log: Log) -> int:
    """End (exclusive) of what the reader may see (data_plane 6.1)."""
    if request.replica_id >= 0:
        return log.log_end_offset
    if request.isolation_level == READ_COMMITTED:
        return log.last_stable_offset
    return log.high_watermark


def _bytes_between(log: Log, fetch_offset: int, max_bytes: int, bound: int) -> int:
    if fetch_offset < log.log_start_offset:
        return max_bytes  # the read will fail: answer now
    return log.read(fetch_offset, max_bytes, bound, True).size


def _check_divergence(
    log: Log, fetch_offset: int, last_fetched_epoch: int
) -> EpochEndOffset | ErrorCode | None:
    """Compare a fetcher's last epoch with this log's history (data_plane 6.8)."""
    end = log.end_offset_for_epoch(last_fetched_epoch)
    if end.end_offset < 0 or fetch_offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if end.leader_epoch < last_fetched_epoch or end.end_offset < fetch_offset:
        return end
    return None
