"""What waits at a broker: produce with acks=all, fetch, delete-records
(docs/kafka/purgatory.md#purgatory).

Each holds the handler that made it and asks it again when poked; completing answers the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...protocol.data import (
    DeleteRecordsResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    ProducePartitionResponse,
    ProduceResponse,
)
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..waiting.purgatory import DelayedOperation

if TYPE_CHECKING:
    from ..partition.partition import Partition
    from .fetch import FetchHandling
    from .offsets import OffsetsHandling
    from .produce import ProduceHandling
    from .sessions import CachedPartition, FetchSession

_NONE = ErrorCode.NONE


class DelayedProduce(DelayedOperation):
    """Waits until every appended partition is acknowledged by the in-sync replicas."""

    __slots__ = ("_handler", "_pending", "_respond", "_responses")

    def __init__(
        self,
        handler: ProduceHandling,
        timeout_ms: int,
        responses: list[ProducePartitionResponse],
        pending: list[tuple[int, int]],
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        super().__init__(timeout_ms)
        self._handler = handler
        self._responses = responses
        self._pending = pending
        """(index into the responses, required offset) of partitions not acknowledged yet."""
        self._respond = respond

    def try_complete(self) -> bool:
        acknowledged = self._handler.acknowledged
        responses = self._responses
        pending = self._pending
        position = 0
        while position < len(pending):
            index, required_offset = pending[position]
            response = responses[index]
            error = acknowledged(response.topic_partition, required_offset)
            if error is None:
                position += 1
                continue
            if error is not _NONE:
                responses[index] = self._handler.failed_produce(response.topic_partition, error)
            del pending[position]
        return not pending and self.force_complete()

    def on_complete(self) -> None:
        for index, _ in self._pending:
            topic_partition = self._responses[index].topic_partition
            self._responses[index] = self._handler.failed_produce(
                topic_partition, ErrorCode.REQUEST_TIMED_OUT
            )
        self._pending = []
        self._respond(ProduceResponse(tuple(self._responses)))

    def on_expiration(self) -> None:
        self._handler.produce_expirations += 1


class DelayedProduceToOne(DelayedOperation):
    """``DelayedProduce`` of a single partition, as almost all are: nothing to look up."""

    __slots__ = (
        "_handler",
        "_partition",
        "_required_offset",
        "_respond",
        "_response",
    )

    def __init__(
        self,
        handler: ProduceHandling,
        timeout_ms: int,
        response: ProducePartitionResponse,
        partition: Partition,
        required_offset: int,
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        # The fields of the bases, without two calls: made for every produce with acks=all.
        self.expiration_ms = 0
        self._bucket = None
        self.delay_ms = timeout_ms
        self.is_completed = False
        self._purgatory = None
        self._keys = ()
        self._handler = handler
        self._response = response
        self._partition = partition
        self._required_offset = required_offset
        self._respond = respond

    def try_complete(self) -> bool:
        partition = self._partition
        log = partition.log
        if log is not None and partition.is_leader:
            if log.high_watermark < self._required_offset:
                return False
            error = _NONE
            if len(partition.maximal_isr) < partition.min_isr:
                error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        else:  # given away: the one hosted now is asked
            topic_partition = self._response.topic_partition
            undecided = self._handler.acknowledged(topic_partition, self._required_offset)
            if undecided is None:
                return False
            error = undecided
        if self.is_completed:
            return False
        # ``force_complete`` without the steps that need not be taken once it is decided.
        self.is_completed = True
        self._leave()
        response = self._response
        if error is not _NONE:
            response = self._handler.failed_produce(response.topic_partition, error)
        respond = self._respond
        respond(ProduceResponse((response,)))
        return True

    def on_complete(self) -> None:
        """Its time is up, undecided."""
        error = ErrorCode.REQUEST_TIMED_OUT
        response = self._handler.failed_produce(self._response.topic_partition, error)
        self._respond(ProduceResponse((response,)))

    def on_expiration(self) -> None:
        self._handler.produce_expirations += 1


class DelayedFetch(DelayedOperation):
    """A fetch: first read when it arrives, read again when it completes
    (docs/kafka/fetch.md#waiting)."""

    __slots__ = (
        "api_version",
        "handler",
        "is_plain",
        "request",
        "respond",
        "session",
        "specs",
        "unread",
    )

    def __init__(
        self,
        handler: FetchHandling,
        request: FetchRequest,
        specs: Sequence[FetchPartition | CachedPartition],
        session: FetchSession | None,
        api_version: int,
        respond: Callable[[FetchResponse], object],
    ) -> None:
        # The fields of the bases, without two calls: made for every fetch.
        self.expiration_ms = 0
        self._bucket = None
        self.delay_ms = request.max_wait_ms
        self.is_completed = False
        self._purgatory = None
        self._keys = ()
        self.handler = handler
        self.request = request
        self.specs = specs
        self.session = session
        self.api_version = api_version
        self.respond = respond
        self.is_plain = False
        """Of a consumer without a session that waits for anything to read, in one partition."""
        self.unread: dict[TopicPartition, None] | None = None
        """Partitions whose log was not looked at, so that no growth of it counts: a follower is
        not assigned to them, or a consumer is sent to another replica."""

    @property
    def has_client_metadata(self) -> bool:
        """Whether it came from a client of Fetch v11, who may read from followers."""
        return self.api_version >= 11 or self.api_version < 0

    @property
    def require_leader(self) -> bool:
        return self.request.replica_id >= 0 or not (
            self.handler.behaviour.fetch_from_follower and self.has_client_metadata
        )

    def try_complete(self) -> bool:
        handler = self.handler
        if self.is_plain and not self.is_completed and handler.answer_plainly(self):
            return True
        return handler.is_fetch_satisfied(self) and self.force_complete()

    def on_complete(self) -> None:
        self.handler.finish_fetch(self)

    def on_expiration(self) -> None:
        self.handler.fetch_expirations += 1


class DelayedDeleteRecords(DelayedOperation):
    """Waits until the live replicas of each partition raised their log start."""

    __slots__ = ("_handler", "_pending", "_respond", "_results")

    def __init__(
        self,
        handler: OffsetsHandling,
        timeout_ms: int,
        results: list[tuple[TopicPartition, ErrorCode, int]],
        pending: dict[int, int],
        respond: Callable[[DeleteRecordsResponse], object],
    ) -> None:
        super().__init__(timeout_ms)
        self._handler = handler
        self._results = results
        self._pending = pending
        """Index into the results -> requested log start of partitions not deleted yet."""
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

    def on_complete(self) -> None:
        for index in self._pending:
            topic_partition = self._results[index][0]
            self._results[index] = (topic_partition, ErrorCode.REQUEST_TIMED_OUT, -1)
        self._pending = {}
        self._respond(DeleteRecordsResponse(tuple(self._results)))
