"""Produce requests with acks=all that wait for the in-sync replicas
(docs/kafka/purgatory.md#purgatory, docs/kafka/produce.md#acknowledgement)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ...protocol.data import ProducePartitionResponse, ProduceResponse
from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..waiting.purgatory import DelayedOperation

if TYPE_CHECKING:
    from ..partition.partition import Partition
    from ..waiting.timing_wheel import Bucket

_NONE = ErrorCode.NONE


class ProduceOutcomes(Protocol):
    """Source of the outcome of an append."""

    def acknowledged(
        self, topic_partition: TopicPartition, required_offset: int
    ) -> ErrorCode | None: ...
    def behind(self, topic_partition: TopicPartition, required_offset: int) -> list[str]: ...


def _failed(appended: ProducePartitionResponse, error: ErrorCode) -> ProducePartitionResponse:
    """It was appended, so offsets are told: ``DelayedProduce`` changes nothing but the error."""
    return ProducePartitionResponse(
        appended.topic_partition,
        error,
        appended.base_offset,
        appended.log_append_time_ms,
        appended.log_start_offset,
    )


class DelayedProduce(DelayedOperation):
    """Waits until every appended partition is acknowledged by the in-sync replicas."""

    __slots__ = ("_handler", "_pending", "_respond", "_responses")

    def __init__(
        self,
        handler: ProduceOutcomes,
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
                responses[index] = _failed(response, error)
            del pending[position]
        return not pending and self.force_complete()

    def waited_for(self) -> list[str]:
        names: dict[str, None] = {}
        for index, required_offset in self._pending:
            partition = self._responses[index].topic_partition
            names.update(dict.fromkeys(self._handler.behind(partition, required_offset)))
        return list(names)

    def on_complete(self) -> None:
        for index, _ in self._pending:
            appended = self._responses[index]
            self._responses[index] = _failed(appended, ErrorCode.REQUEST_TIMED_OUT)
        self._pending = []
        self._respond(ProduceResponse(tuple(self._responses)))


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
        handler: ProduceOutcomes,
        timeout_ms: int,
        response: ProducePartitionResponse,
        partition: Partition,
        required_offset: int,
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        # The fields of the bases, without two calls: made for every produce with acks=all.
        self.expiration_ms = 0
        self.bucket: Bucket | None = None
        self.delay_ms = timeout_ms
        self.is_completed: bool = False
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
            isr_size = len(partition.maximal_isr)
            if isr_size < partition.settings.min_insync_replicas and isr_size < partition.min_isr:
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
        self.leave()
        response = self._response
        if error is not _NONE:
            response = _failed(response, error)
        respond = self._respond
        respond(ProduceResponse((response,)))
        return True

    def waited_for(self) -> list[str]:
        return self._handler.behind(self._response.topic_partition, self._required_offset)

    def on_complete(self) -> None:
        """Its time is up, undecided."""
        response = _failed(self._response, ErrorCode.REQUEST_TIMED_OUT)
        self._respond(ProduceResponse((response,)))
