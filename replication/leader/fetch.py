"""Fetch: who may read what, long polling, follower bookkeeping (docs/kafka/fetch.md).

Theory of operation. A fetch is read once when it arrives. That first read accounts the progress
of a follower: end offset, ISR, high watermark, in this order, after the result was taken, so an
answer carries the high watermark from before this very fetch. If it brought too little, the fetch
waits under the names of its partitions; whatever completes it reads everything again.

Followers with an incremental session are served in ``follower_fetch``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...protocol.data import (
    FetchPartition,
    FetchPartitionResponse,
    FetchRequest,
    FetchResponse,
    RequestContext,
)
from ...protocol.errors import ErrorCode
from ...protocol.fetch_session_epochs import INITIAL_EPOCH
from ...protocol.host import Host
from ..partition.partition import Partition
from ..partition.replica import Replica
from .delayed_fetch import DelayedFetch
from .delayed_requests import DelayedRequests
from .follower_fetch import FollowerFetchHandler
from .reading import PartitionReader
from .session_cache import FetchSessionCache
from .sessions import CachedPartition

_NONE = ErrorCode.NONE


class FetchHandler:
    """Serves consumers, and followers that begin."""

    __slots__ = (
        "_account",
        "_by_name",
        "_complete",
        "_fetch_bytes_max",
        "_fetch_of_follower",
        "_fetches",
        "_fetches_to_end",
        "_is_plain_consumer",
        "_now_ms",
        "_quota",
        "_read_partition",
        "_read_plainly",
        "_throttled_topics",
        "behaviour",
        "counts",
        "is_fetch_satisfied",
        "sessions",
    )

    def __init__(
        self,
        reader: PartitionReader,
        followers: FollowerFetchHandler,
        delayed: DelayedRequests,
        sessions: FetchSessionCache,
        host: Host,
    ) -> None:
        self.sessions = sessions
        self.behaviour = reader.behaviour
        self.counts = followers.counts
        self.is_fetch_satisfied = reader.is_fetch_satisfied
        self._now_ms = host.now_ms
        """Bound once, like all that every request asks."""
        self._by_name = reader.by_name
        self._fetch_bytes_max = reader.fetch_bytes_max
        self._quota = reader.quota
        self._throttled_topics = reader.quota.topics
        self._is_plain_consumer = reader.is_plain_consumer
        self._read_plainly = reader.read_plainly
        self._read_partition = reader.read_partition
        self._fetch_of_follower = followers.fetch_of_follower
        self._account = followers.account
        self._fetches = delayed.fetches
        self._fetches_to_end = delayed.fetches_to_end
        self._complete = delayed.complete

    def fetch_messages(
        self,
        request: FetchRequest,
        context: RequestContext,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        """Answer a follower's or consumer's fetch; ``respond`` is called once, now or later."""
        now = self._now_ms
        now_ms = now()
        session = None
        if request.session_epoch > INITIAL_EPOCH or request.session_id:
            resolved = self.sessions.resolve(request, now_ms)
            if isinstance(resolved, ErrorCode):
                respond(FetchResponse(resolved, 0, ()))
                return
            session = resolved
            if session is not None and session.is_privileged:
                self._fetch_of_follower(request, session, context.api_version, respond, now_ms)
                return
        specs: Sequence[FetchPartition | CachedPartition] = request.partitions
        if session is not None:
            specs = session.to_read()
        elif request.session_epoch > INITIAL_EPOCH:
            specs = ()
        operation = DelayedFetch(self, request, specs, session, context.api_version, respond)
        if request.max_wait_ms > 0 and session is None and self._is_plainly_at_end(request, specs):
            if len(specs) == 1:
                version = context.api_version
                operation.is_plain = request.min_bytes <= 1 and (version > 2 or version < 0)
                self._fetches.watch(operation, (specs[0].topic_partition,), now_ms)
            else:
                names = [spec.topic_partition for spec in specs]
                self._fetches.watch(operation, names, now_ms)
            return
        responses, size, is_final = self._read(operation, now_ms, account=True)
        if (
            is_final
            or request.max_wait_ms <= 0
            or size >= request.min_bytes
            or size >= request.max_bytes
            or size >= self._fetch_bytes_max
            or (session is None and not specs)
            or (size and self.is_fetch_satisfied(operation))
        ):
            self._respond(operation, responses)
        else:
            purgatory = self._fetches if request.replica_id < 0 else self._fetches_to_end
            purgatory.watch(operation, [spec.topic_partition for spec in specs], now_ms)

    def _is_plainly_at_end(
        self, request: FetchRequest, specs: Sequence[FetchPartition | CachedPartition]
    ) -> bool:
        """Return whether a consumer without a session stands at the high watermark everywhere.

        Most of its fetches find it so: reading would bring nothing and refuse nothing, and the
        fetch waits. False also where it is not plain: the read will tell.
        """
        if (
            not self._is_plain_consumer(request)
            or request.session_epoch == INITIAL_EPOCH
            or request.min_bytes <= 0
            or request.max_bytes <= 0
        ):
            return False
        hosted = self._by_name
        for spec in specs:
            partition = hosted.get(spec.topic_partition)
            if partition is None or not partition.is_leader:
                return False
            log = partition.log
            epoch = spec.current_leader_epoch
            if (
                log is None
                or spec.fetch_offset != log.high_watermark
                or (epoch != -1 and epoch != partition.leader_epoch)
                or spec.last_fetched_epoch >= 0
                or partition.settings.compression_is_zstd
            ):
                return False
        return bool(specs)

    @property
    def delayed_count(self) -> int:
        """Fetches that wait, of followers and consumers."""
        return (
            self._fetches.delayed_count
            + self._fetches_to_end.delayed_count
            + self.sessions.parked_count
        )

    def answer_plainly(self, operation: DelayedFetch) -> bool:
        """Answer a parked plain fetch if there is anything to read for it now.

        What ``is_fetch_satisfied`` and ``finish_fetch`` do for the most frequent of them.
        """
        spec = operation.specs[0]
        partition = self._by_name.get(spec.topic_partition)
        if (
            partition is None
            or not partition.is_leader
            or (log := partition.log) is None
            or spec.fetch_offset >= log.high_watermark
        ):
            return False
        limit = operation.request.max_bytes
        if limit > self._fetch_bytes_max:
            limit = self._fetch_bytes_max
        plain = self._read_plainly(spec, partition, limit, True)
        if plain is None:
            return False
        operation.is_completed = True
        operation.leave()
        respond = operation.respond
        operation.let_go()
        respond(FetchResponse(_NONE, 0, (plain,)))
        return True

    def finish_fetch(self, operation: DelayedFetch) -> None:
        """Read again and answer what is there (a parked fetch completed or timed out)."""
        session = operation.session
        request = operation.request
        if session is not None:
            operation.specs = session.to_read()
        elif len(operation.specs) == 1 and request.session_epoch != INITIAL_EPOCH:
            spec = operation.specs[0]
            partition = self._by_name.get(spec.topic_partition)
            if (
                partition is not None
                and partition.is_leader
                and self._is_plain_consumer(request)
                and (operation.api_version > 2 or operation.api_version < 0)
            ):
                limit = min(request.max_bytes, self._fetch_bytes_max)
                plain = self._read_plainly(spec, partition, limit, True)
                if plain is not None:
                    operation.respond(FetchResponse(_NONE, 0, (plain,)))
                    return
        responses, _, _ = self._read(operation, 0, account=False)
        self._respond(operation, responses)

    def _respond(self, operation: DelayedFetch, responses: list[FetchPartitionResponse]) -> None:
        request = operation.request
        session = operation.session
        session_id = 0
        if session is not None:
            session_id = session.session_id
            if responses:
                responses = session.filter_response(responses)
        elif request.session_epoch == INITIAL_EPOCH:
            session_id = self.sessions.create(
                request.replica_id >= 0, request.partitions, responses, self._now_ms()
            )
        if self._throttled_topics and request.replica_id >= 0:
            self._quota.record_answer(responses)
        operation.respond(FetchResponse(_NONE, session_id, tuple(responses)))

    def _read(
        self, operation: DelayedFetch, now_ms: int, account: bool
    ) -> tuple[list[FetchPartitionResponse], int, bool]:
        """Read all partitions in order: responses, bytes, whether it must be answered now.

        ``account`` updates the follower's state, if a follower asks.
        """
        request = operation.request
        replica_id = request.replica_id
        hosted = self._by_name
        responses: list[FetchPartitionResponse] = []
        moved: list[Partition] = []
        limit = request.max_bytes
        if limit > self._fetch_bytes_max:
            limit = self._fetch_bytes_max
        remaining = limit
        size = 0
        is_final = False
        # Fetch v0 to v2 return no batch beyond the limits, not even the first.
        is_plain = self._is_plain_consumer(request) and not 0 <= operation.api_version <= 2
        for spec in operation.specs:
            partition = hosted.get(spec.topic_partition)
            if is_plain and partition is not None and partition.is_leader:
                plain = self._read_plainly(spec, partition, remaining, not size)
                if plain is not None:
                    responses.append(plain)
                    for batch in plain.records:
                        size += len(batch.data)
                    remaining = limit - size if limit > size else 0
                    continue
            replica: Replica | None = None
            if replica_id >= 0 and partition is not None and partition.is_leader:
                replica = partition.find_replica(replica_id)
            response, read_size = self._read_partition(
                operation, spec, partition, replica, remaining, not size
            )
            responses.append(response)
            if read_size:
                size += read_size
                remaining = max(0, limit - size)
            if response.error is not _NONE or response.diverging_epoch is not None:
                is_final = True
            elif response.preferred_read_replica >= 0:
                is_final = is_final or self.behaviour.preferred_replica_answers_at_once
            elif (
                account
                and replica is not None
                and partition is not None
                and partition.log is not None
                and self._account(partition, replica, spec, partition.log, now_ms)
            ):
                moved.append(partition)
        for partition in moved:
            self._complete(partition)
        return responses, size, is_final
