"""Fetches of followers in an incremental session: the hottest loop of all.

Every record passes through here once per follower, and every idle follower twice a second. The
handler does the same as ``FetchHandler``, for this case only and in fewer steps: the session has
the partitions that may have news, each linked to the leader's partition and the follower's replica.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol.data import FetchPartition, FetchPartitionResponse, FetchRequest, FetchResponse
from ...protocol.errors import ErrorCode
from ...protocol.host import Host
from ...protocol.records.batch import RecordBatch
from ..log.log import Log
from ..partition.partition import Partition
from ..partition.replica import Replica
from .delayed_requests import DelayedRequests
from .reading import PartitionReader
from .sessions import CachedPartition, FetchSession, FollowerFetch, is_answered

if TYPE_CHECKING:
    from ..waiting.timing_wheel import WheelTimer

_NONE = ErrorCode.NONE


class FollowerFetchHandler:
    """Serves the fetches of followers in their sessions."""

    def __init__(self, reader: PartitionReader, delayed: DelayedRequests, host: Host) -> None:
        self.host: Host = host
        self.timer: WheelTimer = delayed.timer
        self._causes = delayed.timer.causes
        self.reader: PartitionReader = reader
        self._by_name = reader.by_name
        self._fetch_bytes_max = reader.fetch_bytes_max
        self._quota = reader.quota
        self._throttled_topics = reader.quota.topics
        self._delayed = delayed
        self._deletions = delayed.deletions
        self._fetches_to_end = delayed.fetches_to_end

    def is_fetch_satisfied(self, fetch: FollowerFetch) -> bool:
        """Return whether a waiting fetch may be answered."""
        return self.reader.is_fetch_satisfied(fetch)

    def fetch_of_follower(
        self,
        request: FetchRequest,
        session: FetchSession,
        api_version: int,
        respond: Callable[[FetchResponse], object],
        now_ms: int,
    ) -> None:
        """Answer the next fetch of a session, now or later.

        Usually the follower is in step and at the log end, and there is no news: the fetch
        acknowledges the data of the previous one, and waits. This method inlines ``_serve`` for
        that case.
        """
        if session.parked is not None:
            self.finish_parked(session.parked)  # the client has not waited for the response
        fetch = session.fetch
        if fetch is None:
            fetch = FollowerFetch(self, session, api_version, request, respond)
        fetch.request = request
        fetch.respond = respond
        fetch.unread = None
        if self._causes is not None:
            fetch.cause = self._causes.current()
        wait_ms = request.max_wait_ms
        active = session.active
        if len(active) == 1 and wait_ms > 0 and request.min_bytes > 0:
            (spec,) = active.values()
            partition = spec.partition
            replica = spec.replica
            if (
                partition is not None
                and replica is not None
                and (log := partition.log) is not None
                and (fetch_offset := spec.fetch_offset) == log.log_end_offset
                and (sent_high_watermark := spec.sent_high_watermark) == log.high_watermark
                and spec.sent_log_start_offset == log.log_start_offset
                and ((epoch := spec.current_leader_epoch) == partition.leader_epoch or epoch == -1)
                and ((epoch := spec.last_fetched_epoch) == log.latest_epoch or epoch == -1)
            ):
                spec.is_in_step = True
                if (
                    partition.update_follower(
                        replica, fetch_offset, spec.log_start_offset, now_ms, fetch_offset
                    )
                    or self._deletions.delayed_count
                ):
                    self._delayed.complete(partition)
                elif (
                    log.high_watermark == sent_high_watermark and replica.broker_id in partition.isr
                ):
                    spec.mark_idle()
                session.parked = fetch
                until_ms = fetch.until_ms = now_ms + wait_ms
                if fetch.bucket is None or fetch.expiration_ms > until_ms:
                    self._set_timer(fetch, wait_ms, now_ms)
                return
        self._serve(fetch, session, now_ms)

    def _serve(self, fetch: FollowerFetch, session: FetchSession, now_ms: int) -> None:
        """Read the partitions that may have news; answer, or wait if the data is too little.

        The follower's progress is recorded after each read, so that the response has the high
        watermark from before this fetch.
        """
        request = fetch.request
        limit = request.max_bytes
        if limit > self._fetch_bytes_max:
            limit = self._fetch_bytes_max
        size = 0
        is_throttled = bool(self._throttled_topics)  # then partitions are read with every check
        is_final = request.max_wait_ms <= 0
        responses: list[FetchPartitionResponse] = []
        named: list[CachedPartition] = []  # entries of the partitions in ``responses``
        moved: list[Partition] = []
        for spec in session.active_in_order():
            partition = spec.partition
            replica = spec.replica
            if partition is None:
                partition, replica = self._partition_and_replica(spec, request.replica_id)
            log = None if partition is None else partition.log
            may_idle = False
            if (
                replica is not None
                and log is not None
                and partition is not None
                and not is_throttled
                and ((epoch := spec.current_leader_epoch) == partition.leader_epoch or epoch == -1)
                and ((epoch := spec.last_fetched_epoch) == log.latest_epoch or epoch == -1)
                and log.log_start_offset <= (fetch_offset := spec.fetch_offset)
                and fetch_offset <= (end_offset := log.log_end_offset)
                and not log.storage.directory.is_offline
            ):
                # The follower's log is a prefix of this one: no error and no truncation.
                spec.is_in_step = True
                may_idle = (
                    fetch_offset == end_offset
                    and log.high_watermark == spec.sent_high_watermark
                    and log.log_start_offset == spec.sent_log_start_offset
                )
                if not may_idle:
                    named.append(spec)
                    responses.append(_read_in_step(spec, log, limit - size, not size))
                    for batch in responses[-1].records:
                        size += len(batch.data)
            else:
                response, read_size = self._read_checked(fetch, spec, limit - size, not size)
                named.append(spec)
                responses.append(response)
                size += read_size
                if response.error is not _NONE or response.diverging_epoch is not None:
                    is_final = True
                    continue
                may_idle = True
            if replica is not None and partition is not None and log is not None:
                if self.account(partition, replica, spec, log, now_ms):
                    moved.append(partition)
                if spec.replica is not replica:
                    spec.link(partition, replica)
                if may_idle and log.high_watermark == spec.sent_high_watermark:
                    spec.maybe_mark_idle()
        for partition in moved:
            self._delayed.complete(partition)
        if is_final or size >= request.min_bytes or size >= limit:
            if responses:
                responses = session.new_responses(named, responses)
            if is_throttled:
                self._quota.record_answer(responses)
            respond, fetch.respond = fetch.respond, is_answered
            respond(FetchResponse(_NONE, session.session_id, tuple(responses)))
        else:
            self._park(fetch, request.max_wait_ms, now_ms)

    def finish_parked(self, fetch: FollowerFetch) -> None:
        """Read again and answer a waiting fetch, which completed or timed out."""
        session = fetch.session
        session.parked = None
        limit = fetch.request.max_bytes
        if limit > self._fetch_bytes_max:
            limit = self._fetch_bytes_max
        size = 0
        is_throttled = bool(self._throttled_topics)
        responses: list[FetchPartitionResponse] = []
        for spec in session.active_in_order():
            partition = spec.partition
            if (
                spec.is_in_step  # since it arrived, only the offsets can have moved
                and not is_throttled
                and partition is not None
                and (log := partition.log) is not None
                and log.log_start_offset <= (fetch_offset := spec.fetch_offset)
                and not log.storage.directory.is_offline
            ):
                if (
                    fetch_offset == log.log_end_offset
                    and log.high_watermark == spec.sent_high_watermark
                    and log.log_start_offset == spec.sent_log_start_offset
                ):
                    continue
                response = _read_in_step(spec, log, limit - size, not size)
                for batch in response.records:
                    size += len(batch.data)
                spec.sent_high_watermark = response.high_watermark
                spec.sent_log_start_offset = response.log_start_offset
            else:
                response, read_size = self._read_checked(fetch, spec, limit - size, not size)
                size += read_size
                if not spec.must_respond(response):
                    continue
            responses.append(response)
            spec.order = session.next_order
            session.next_order += 1
        if is_throttled:
            self._quota.record_answer(responses)
        respond, fetch.respond = fetch.respond, is_answered
        respond(FetchResponse(_NONE, session.session_id, tuple(responses)))

    def watch_again(self, fetch: FollowerFetch) -> None:
        """Link a waiting fetch again to the partitions that released their entries."""
        for spec in fetch.session.active.values():
            if spec.partition is None:
                partition, replica = self._partition_and_replica(spec, fetch.request.replica_id)
                if partition is not None and replica is not None:
                    spec.link(partition, replica)

    def _read_checked(
        self, fetch: FollowerFetch, spec: CachedPartition, bytes_max: int, is_first: bool
    ) -> tuple[FetchPartitionResponse, int]:
        """Read with every check; return the response and the number of bytes read."""
        spec.is_in_step = False
        partition, replica = self._partition_and_replica(spec, fetch.request.replica_id)
        return self.reader.read_partition(
            fetch, spec, partition, replica, max(0, bytes_max), is_first
        )

    def _park(self, fetch: FollowerFetch, wait_ms: int, now_ms: int) -> None:
        """Let the fetch wait, found by the ``fetch_entries`` of its partitions instead of a key."""
        fetch.session.parked = fetch
        fetch.until_ms = now_ms + wait_ms
        if fetch.bucket is None or fetch.expiration_ms > fetch.until_ms:
            self._set_timer(fetch, wait_ms, now_ms)

    def _set_timer(self, fetch: FollowerFetch, wait_ms: int, now_ms: int) -> None:
        """Set the timer of a fetch, replacing one that would fire later."""
        if fetch.bucket is not None:
            fetch.cancel()
        self.timer.add_at(fetch, wait_ms, now_ms)

    def _partition_and_replica(
        self, spec: CachedPartition, replica_id: int
    ) -> tuple[Partition | None, Replica | None]:
        """Return the leader's partition and the follower's replica in it."""
        if spec.partition is not None:
            return spec.partition, spec.replica
        partition = self._by_name.get(spec.topic_partition)
        if partition is None or not partition.is_leader:
            return partition, None
        return partition, partition.find_replica(replica_id)

    def account(
        self,
        partition: Partition,
        replica: Replica,
        spec: FetchPartition | CachedPartition,
        log: Log,
        now_ms: int,
    ) -> bool:
        """Record a follower's progress; return True if operations that wait on the partition may
        complete."""
        previous_log_start = replica.log_start_offset
        log_start_offset = spec.log_start_offset
        if partition.update_follower(
            replica, spec.fetch_offset, log_start_offset, now_ms, log.log_end_offset
        ):
            return True
        return log_start_offset != previous_log_start and self._deletions.delayed_count > 0

    def complete_fetches(self, partition: Partition) -> None:
        """Wake and try to complete the fetches that wait on a partition whose log grew."""
        if self._fetches_to_end.delayed_count:
            self._fetches_to_end.check_and_complete(partition.topic_partition)
        # Only the sessions of followers add entries.
        entries: list[CachedPartition] | None = partition.fetch_entries  # type: ignore[assignment]
        log = partition.log
        if not entries or log is None:
            return
        end_offset = log.log_end_offset
        last = log.active.last_batch
        last_offset = -1  # a fetch at this offset returns only the last batch
        is_throttled = bool(self._throttled_topics)
        if last is not None and not log.storage.directory.is_offline and not is_throttled:
            last_offset = last.base_offset
        response: FetchPartitionResponse | None = None
        for entry in tuple(entries):
            if entry.is_idle:
                entry.wake()
            session = entry.session
            if session is None or (parked := session.parked) is None:
                continue
            if (
                entry.fetch_offset == last_offset
                and entry.is_in_step
                and parked.request.min_bytes <= 1
                and len(session.active) == 1
                and last is not None
            ):  # the last batch satisfies the fetch
                session.parked = None
                if (
                    response is None
                    or response.high_watermark != log.high_watermark
                    or response.log_start_offset != log.log_start_offset
                ):  # else the followers share the response
                    response = _in_step(entry, log, (last,))
                entry.sent_high_watermark = response.high_watermark
                entry.sent_log_start_offset = response.log_start_offset
                entry.order = order = session.next_order
                session.next_order = order + 1
                respond, parked.respond = parked.respond, is_answered
                respond(FetchResponse(_NONE, session.session_id, (response,)))
            elif parked.request.min_bytes > 1 or entry.fetch_offset >= end_offset or is_throttled:
                parked.try_complete()
            else:
                self.finish_parked(parked)


def _read_in_step(
    spec: CachedPartition, log: Log, bytes_max: int, is_first: bool
) -> FetchPartitionResponse:
    """Return the batches that a follower in step lacks, or only high watermark and log start."""
    fetch_offset = spec.fetch_offset
    end_offset = log.log_end_offset
    records: tuple[RecordBatch, ...] = ()
    if fetch_offset < end_offset:
        last = log.active.last_batch
        if is_first and last is not None and last.base_offset == fetch_offset:
            records = (last,)  # usually the batch that was just appended
        else:
            bytes_max = max(0, min(bytes_max, spec.max_bytes))
            records = log.read(fetch_offset, bytes_max, end_offset, is_first).batches
    return _in_step(spec, log, records)


def _in_step(
    spec: CachedPartition, log: Log, records: tuple[RecordBatch, ...]
) -> FetchPartitionResponse:
    producers = log.producers
    high_watermark = log.high_watermark
    return FetchPartitionResponse(
        spec.topic_partition,
        _NONE,
        high_watermark,
        high_watermark
        if producers is None or producers.first_unstable_offset < 0
        else log.last_stable_offset,
        log.log_start_offset,
        records,
    )
