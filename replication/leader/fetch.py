"""Fetch requests: access, long polling, progress of followers (docs/kafka/fetch.md).

Theory of operation. The partitions of a fetch are read when it arrives. This first read also
records the progress of a follower: end offset, ISR, high watermark, in this order, after the
result was taken, so a response has the high watermark from before this fetch. If the read returned
too little, the fetch waits under the names of its partitions, and they are all read again when it
completes.

Followers with an incremental session are served in ``follower_fetch``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

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
from .sessions import CachedPartition, FetchSession

if TYPE_CHECKING:
    from ...protocol.releases.behaviour import Behaviour

_NONE = ErrorCode.NONE


class FetchHandler:
    """Serves the fetches of consumers, and those of followers without an incremental session."""

    def __init__(
        self,
        reader: PartitionReader,
        followers: FollowerFetchHandler,
        delayed: DelayedRequests,
        sessions: FetchSessionCache,
        host: Host,
    ) -> None:
        self.sessions: FetchSessionCache = sessions
        self.behaviour: Behaviour = reader.behaviour
        self._host = host
        self._by_name = reader.by_name
        self._fetch_bytes_max = reader.fetch_bytes_max
        self._quota = reader.quota
        self._throttled_topics = reader.quota.topics
        self._reader = reader
        self._followers = followers
        self._delayed = delayed
        self._fetches = delayed.fetches
        self._fetches_to_end = delayed.fetches_to_end

    def is_fetch_satisfied(self, operation: DelayedFetch) -> bool:
        """Return whether a waiting fetch may be answered."""
        return self._reader.is_fetch_satisfied(operation)

    def fetch_messages(
        self,
        request: FetchRequest,
        context: RequestContext,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        """Answer the fetch of a follower or consumer; ``respond`` is called once, now or later."""
        now_ms = self._host.now_ms()
        session: FetchSession | None = None
        if request.session_epoch > INITIAL_EPOCH or request.session_id:
            resolved = self.sessions.resolve(request, now_ms)
            if resolved is None or isinstance(resolved, FetchSession):
                session = resolved
            else:
                respond(FetchResponse(resolved, 0, ()))
                return
            if session is not None and session.is_privileged:
                self._followers.fetch_of_follower(
                    request, session, context.api_version, respond, now_ms
                )
                return
        specs: Sequence[FetchPartition | CachedPartition] = request.partitions
        if session is not None:
            specs = session.to_read()
        elif request.session_epoch > INITIAL_EPOCH:
            specs = ()
        operation = DelayedFetch(self, request, specs, session, context.api_version, respond)
        responses, size, is_final = self._read(operation, now_ms, account=True)
        if (
            is_final
            or request.max_wait_ms <= 0
            or size >= request.min_bytes
            or size >= request.max_bytes
            or size >= self._fetch_bytes_max
            or (session is None and not specs)
            or (size and self._reader.is_fetch_satisfied(operation))
        ):
            self._respond(operation, responses)
        else:
            purgatory = self._fetches if request.replica_id < 0 else self._fetches_to_end
            purgatory.watch(operation, [spec.topic_partition for spec in specs], now_ms)

    @property
    def delayed_count(self) -> int:
        """Number of waiting fetches, of followers and consumers."""
        return (
            self._fetches.delayed_count
            + self._fetches_to_end.delayed_count
            + self.sessions.parked_count
        )

    def finish_fetch(self, operation: DelayedFetch) -> None:
        """Read again and answer a waiting fetch, which completed or timed out."""
        if operation.session is not None:
            operation.specs = operation.session.to_read()
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
                request.replica_id >= 0, request.partitions, responses, self._host.now_ms()
            )
        if self._throttled_topics and request.replica_id >= 0:
            self._quota.record_answer(responses)
        operation.respond(FetchResponse(_NONE, session_id, tuple(responses)))

    def _read(
        self, operation: DelayedFetch, now_ms: int, account: bool
    ) -> tuple[list[FetchPartitionResponse], int, bool]:
        """Read all partitions in order; return responses, their bytes, and whether to answer now.

        ``account`` records the progress if a follower fetches.
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
        for spec in operation.specs:
            partition = hosted.get(spec.topic_partition)
            replica: Replica | None = None
            if replica_id >= 0 and partition is not None and partition.is_leader:
                replica = partition.find_replica(replica_id)
            response, read_size = self._reader.read_partition(
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
                and self._followers.account(partition, replica, spec, partition.log, now_ms)
            ):
                moved.append(partition)
        for partition in moved:
            self._delayed.complete(partition)
        return responses, size, is_final
