"""Produce requests: checks, append, acknowledgement (docs/kafka/produce.md), and the wait for the
in-sync replicas with acks=all."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...protocol.data import (
    ACKS_ALL,
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    RequestContext,
)
from ...protocol.errors import ErrorCode, KafkaError
from ...protocol.host import Host
from ...protocol.internal_topics import INTERNAL_TOPICS
from ...protocol.records.format import LENGTH_OVERHEAD, Readable
from ...protocol.values import TopicPartition
from ..log.leader_append import append_as_leader
from ..log.validator import ORIGIN_CLIENT
from ..log.verification import UNGUARDED, VerificationGuard
from ..partition.hosted_partitions import HostedPartitions
from ..waiting.purgatory import DelayedOperation
from .delayed_requests import DelayedRequests

if TYPE_CHECKING:
    from ...protocol.releases.behaviour import Behaviour
    from ..partition.partition import Partition
    from ..waiting.timing_wheel import Bucket

ADMIN_CLIENT_ID = "__admin_client"

_NONE = ErrorCode.NONE
_ERRORS_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Errors whose response has -1 as the log start offset."""

_BATCH_OVERHEAD = 61
_unpack_size = struct.Struct(">i").unpack_from
_MAGIC_AT = 16
_ZSTD = 4

Guards = Mapping[TopicPartition, VerificationGuard]
"""Guards with which transactions were verified, by partition."""


class ProduceHandler:
    """Appends the records of clients and coordinators, and responds once they are acknowledged."""

    def __init__(
        self,
        hosted: HostedPartitions,
        delayed: DelayedRequests,
        complete_fetches: Callable[[Partition], object],
        on_storage_failure: Callable[[TopicPartition, Exception], object],
        host: Host,
    ) -> None:
        """``complete_fetches`` is called with each partition whose log grew."""
        self.behaviour: Behaviour = hosted.behaviour
        self._errors_without_log_start = _ERRORS_WITHOUT_LOG_START
        if not self.behaviour.invalid_timestamp_has_log_start:
            self._errors_without_log_start |= {ErrorCode.INVALID_TIMESTAMP}
        self._by_name = hosted.by_name
        self._lookup_error = hosted.lookup_error
        self._metadata_cache = hosted.metadata_cache
        self._produces = delayed.produces
        self._delayed = delayed
        self._complete_fetches = complete_fetches
        self._on_storage_failure = on_storage_failure
        self._host = host

    def append_records(
        self,
        request: ProduceRequest,
        context: RequestContext,
        respond: Callable[[ProduceResponse], object],
        origin: str = ORIGIN_CLIENT,
        guards: Guards | None = None,
    ) -> None:
        """Append to the local leaders; ``respond`` is called once, now or when acknowledged.

        With acks=0 it is called now as well; the connection then sends nothing, or closes if a
        partition failed. ``origin`` is ``client`` or ``coordinator`` (which may write internal
        topics, without sequence checks). ``guards`` are the guards with which transactions were
        verified; None if transactions are not verified.
        """
        acks = request.acks
        partitions = request.partitions
        if acks != ACKS_ALL and acks not in (0, 1):
            refused = [self._refuse_acks(entry, context, origin) for entry in partitions]
            respond(ProduceResponse(tuple(refused)))
            return
        now_ms, wall_ms = self._host.now_ms(), self._host.wall_ms()
        responses: list[ProducePartitionResponse] = []
        # (partition, True if its high watermark moved, index of its response, required offset)
        appended: list[tuple[Partition, bool, int, int]] = []
        for entry in partitions:
            responses.append(
                self._append_one(
                    entry, context, origin, acks, now_ms, wall_ms, len(responses), appended, guards
                )
            )
        # Done after all appends, as completions must not run in the middle of a request.
        if len(appended) > 1:
            for partition, _, _, _ in appended:
                partition.wake_fetchers()
        for partition, high_watermark_moved, _, _ in appended:
            if high_watermark_moved:
                self._delayed.complete_after_append(partition)
            self._complete_fetches(partition)
        if acks != ACKS_ALL or not appended:
            respond(ProduceResponse(tuple(responses)))
            return
        if len(partitions) == 1:
            partition, _, _, required_offset = appended[0]
            operation = DelayedProduceToOne(
                self, request.timeout_ms, responses[0], partition, required_offset, respond
            )
            log = partition.log
            is_undecided = (
                log is not None and log.high_watermark < required_offset and partition.is_leader
            )
            if not is_undecided and operation.try_complete():
                return
            self._produces.watch(operation, (partition.topic_partition,), now_ms)
            return
        pending = [(index, required_offset) for _, _, index, required_offset in appended]
        self._produces.try_complete_else_watch(
            DelayedProduce(self, request.timeout_ms, responses, pending, respond),
            [entry.topic_partition for entry in partitions],
            now_ms,
        )

    def _refuse_acks(
        self, entry: ProducePartition, context: RequestContext, origin: str
    ) -> ProducePartitionResponse:
        """Return INVALID_REQUIRED_ACKS or the error of an earlier check, as a response
        (docs/kafka/produce.md#checks)."""
        topic_partition = entry.topic_partition
        error = _NONE
        if origin == ORIGIN_CLIENT:
            error = self.refusal(topic_partition, entry.records, context)
        if error in (_NONE, ErrorCode.INVALID_TOPIC_EXCEPTION):  # row 6: after the acks
            error = ErrorCode.INVALID_REQUIRED_ACKS
        return self.failed_produce(topic_partition, error, includes_log_start=False)

    def refusal(
        self, topic_partition: TopicPartition, records: Readable | None, context: RequestContext
    ) -> ErrorCode:
        """Return the error of the checks that precede the look-up of the partition
        (docs/kafka/produce.md#checks)."""
        api_version = context.api_version
        if api_version >= 0 and not self._metadata_cache.contains(topic_partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if records is None:
            return ErrorCode.INVALID_RECORD
        if api_version >= 3 or api_version < 0:
            size = len(records)
            if (
                size < _BATCH_OVERHEAD
                or records[_MAGIC_AT] != 2
                or (
                    (_unpack_size(records, 8)[0] != size - LENGTH_OVERHEAD)
                    and not _is_single_batch(records)
                )
            ):
                return ErrorCode.INVALID_RECORD
            if 0 <= api_version < 7 and records[22] & 7 == _ZSTD:
                return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if topic_partition[0] in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        return _NONE

    def _append_one(
        self,
        entry: ProducePartition,
        context: RequestContext,
        origin: str,
        acks: int,
        now_ms: int,
        wall_ms: int,
        index: int,
        appended: list[tuple[Partition, bool, int, int]],
        guards: Guards | None,
    ) -> ProducePartitionResponse:
        """Append the batches of one partition; add an entry to ``appended`` on success."""
        topic_partition = entry.topic_partition
        records = entry.records
        if origin == ORIGIN_CLIENT:
            error = self.refusal(topic_partition, records, context)
            if error is not _NONE:
                return self.failed_produce(topic_partition, error, includes_log_start=False)
        partition = self._by_name.get(topic_partition)
        if partition is None:
            return self.failed_produce(topic_partition, self._lookup_error(topic_partition))
        log = partition.log
        if not partition.is_leader or log is None:
            return self.failed_produce(topic_partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if (
            acks == ACKS_ALL
            and len(partition.isr) < partition.settings.min_insync_replicas
            and len(partition.isr) < partition.min_isr
        ):
            return self.failed_produce(topic_partition, ErrorCode.NOT_ENOUGH_REPLICAS)
        api_version = context.api_version
        try:
            info = append_as_leader(
                log,
                records,
                partition.leader_epoch,
                wall_ms,
                origin,
                api_version if api_version >= 0 else None,
                UNGUARDED if guards is None else guards.get(topic_partition),
            )
        except KafkaError as error:
            return self._append_failed(topic_partition, error)
        except OSError as failure:
            self._on_storage_failure(topic_partition, failure)
            return self.failed_produce(topic_partition, ErrorCode.KAFKA_STORAGE_ERROR)
        moved = partition.maybe_increment_high_watermark(now_ms)
        if not moved and partition.report is not None:
            partition.report.log_moved(log)
        appended.append((partition, moved, index, info.last_offset + 1))
        return ProducePartitionResponse(
            topic_partition,
            _NONE,
            info.first_offset,
            info.log_append_time_ms,
            log.log_start_offset,
        )

    def _append_failed(
        self, topic_partition: TopicPartition, error: KafkaError
    ) -> ProducePartitionResponse:
        code = error.code
        if code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._on_storage_failure(topic_partition, error)
        elif code is ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH  # Produce does not use the newer code
        response = self.failed_produce(topic_partition, code)
        return ProducePartitionResponse(
            topic_partition,
            response.error,
            -1,
            -1,
            response.log_start_offset,
            error.record_errors,
            error.message or None,
        )

    def failed_produce(
        self, topic_partition: TopicPartition, error: ErrorCode, *, includes_log_start: bool = True
    ) -> ProducePartitionResponse:
        """Return the response for a failure, with the log start offset if included."""
        if error is ErrorCode.INVALID_RECORD and not self.behaviour.invalid_record_error:
            error = ErrorCode.CORRUPT_MESSAGE
        log_start_offset = -1
        if includes_log_start and error not in self._errors_without_log_start:
            partition = self._by_name.get(topic_partition)
            if partition is not None and partition.log is not None:
                log_start_offset = partition.log.log_start_offset
        return ProducePartitionResponse(topic_partition, error, -1, -1, log_start_offset)

    def acknowledged(
        self, topic_partition: TopicPartition, required_offset: int
    ) -> ErrorCode | None:
        """Return the outcome of an append with acks=all
        (docs/kafka/produce.md#acknowledgement); None while undecided."""
        partition = self._by_name.get(topic_partition)
        if partition is None:
            return self._lookup_error(topic_partition)
        log = partition.log
        if not partition.is_leader or log is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if log.high_watermark < required_offset:
            return None
        return self.outcome(partition)

    def brokers_not_caught_up(
        self, topic_partition: TopicPartition, required_offset: int
    ) -> list[str]:
        """Return the brokers of the in-sync replicas for which an append still waits."""
        partition = self._by_name.get(topic_partition)
        return [] if partition is None else partition.brokers_not_caught_up(required_offset)

    def outcome(self, partition: Partition) -> ErrorCode:
        """Return the outcome of an append with acks=all that is below the high watermark."""
        if len(partition.maximal_isr) < partition.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return _NONE


def _is_single_batch(records: Readable) -> bool:
    """Return whether the first batch is the only whole one; a torn batch after it is trimmed on
    append."""
    size = int.from_bytes(records[8:12], "big", signed=True) + LENGTH_OVERHEAD
    left = len(records) - size
    if not left or size < _BATCH_OVERHEAD:  # the checksum detects an invalid size
        return True
    if left <= _MAGIC_AT:
        return left > 0
    next_size = int.from_bytes(records[size + 8 : size + 12], "big", signed=True)
    return left < next_size + LENGTH_OVERHEAD


# -- waiting for the in-sync replicas (docs/kafka/purgatory.md#purgatory) ----------------------


def _failed(appended: ProducePartitionResponse, error: ErrorCode) -> ProducePartitionResponse:
    """Return the response with an error, but with its offsets, as the records were appended.

    Kafka's ``DelayedProduce`` changes only the error.
    """
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
        handler: ProduceHandler,
        timeout_ms: int,
        responses: list[ProducePartitionResponse],
        pending: list[tuple[int, int]],
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        super().__init__(timeout_ms)
        self._handler = handler
        self._responses = responses
        self._pending = pending
        """(index into the responses, required offset) of each partition not acknowledged yet."""
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

    def awaited_brokers(self) -> list[str]:
        names: dict[str, None] = {}
        for index, required_offset in self._pending:
            partition = self._responses[index].topic_partition
            names.update(
                dict.fromkeys(self._handler.brokers_not_caught_up(partition, required_offset))
            )
        return list(names)

    def on_complete(self) -> None:
        for index, _ in self._pending:
            appended = self._responses[index]
            self._responses[index] = _failed(appended, ErrorCode.REQUEST_TIMED_OUT)
        self._pending = []
        self._respond(ProduceResponse(tuple(self._responses)))


class DelayedProduceToOne(DelayedOperation):
    """``DelayedProduce`` for a single partition, the usual case, without look-ups."""

    __slots__ = (
        "_handler",
        "_partition",
        "_required_offset",
        "_respond",
        "_response",
    )

    def __init__(
        self,
        handler: ProduceHandler,
        timeout_ms: int,
        response: ProducePartitionResponse,
        partition: Partition,
        required_offset: int,
        respond: Callable[[ProduceResponse], object],
    ) -> None:
        # The fields of the base classes, set without two calls: every produce with acks=all has
        # an operation.
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
        else:  # no longer led: use the partition hosted now
            topic_partition = self._response.topic_partition
            undecided = self._handler.acknowledged(topic_partition, self._required_offset)
            if undecided is None:
                return False
            error = undecided
        if self.is_completed:
            return False
        # ``force_complete``, inlined without steps that are not needed here.
        self.is_completed = True
        self.leave()
        response = self._response
        if error is not _NONE:
            response = _failed(response, error)
        respond = self._respond
        respond(ProduceResponse((response,)))
        return True

    def awaited_brokers(self) -> list[str]:
        return self._handler.brokers_not_caught_up(
            self._response.topic_partition, self._required_offset
        )

    def on_complete(self) -> None:
        """Respond with REQUEST_TIMED_OUT, as the operation timed out undecided."""
        response = _failed(self._response, ErrorCode.REQUEST_TIMED_OUT)
        self._respond(ProduceResponse((response,)))
