"""A modelled producer: batching, acks, retries and idempotence as in Kafka's client.

There is one batch per request. A batch that failed with a retriable error returns to the head of
its partition's queue with its sequence number, after ``retry.backoff.ms``. With idempotence the
broker refuses batches that overtook it (OUT_OF_ORDER_SEQUENCE_NUMBER), and these follow in order,
one by one. ``producer_queue`` describes how batches are numbered after one was given up. The model
is the Java client of 3.9, whatever the release of the brokers. Until 3.5 an error that arrived for
a batch already given up raised the epoch once more (``Sender.failBatch``, KAFKA-14884).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...protocol.awaiting import Disconnected, Pending
from ...protocol.data import (
    ACKS_ALL,
    InitProducerIdRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from ...protocol.declaring.native import checks_arguments
from ...protocol.errors import ErrorCode, UsageError
from ...protocol.names import broker_name
from ...protocol.values import TopicPartition, frozen
from ..interfaces import AbstractRuntime, Process
from .client import RETRY_BACKOFF_MS, SimulatedClient, check_numbers, refuse_setting
from .producer_queue import (
    EPOCH_MAX,
    NO_IDENTITY,
    Callback,
    Identity,
    PartitionQueue,
    ProducerBatch,
)

_NONE = ErrorCode.NONE

_Send = Callable[[TopicPartition, PartitionQueue, ProducerBatch, int], None]

_MINIMUMS = {
    "linger_ms": 0,
    "batch_records": 1,
    "max_in_flight": 1,
    "retry_backoff_ms": 0,
    "request_timeout_ms": 0,
    "delivery_timeout_ms": 0,
    "max_block_ms": 0,
}
"""Minimum of each setting."""


@frozen
class ProducerSettings:
    """Kafka's producer settings, with the defaults of the 3.x clients."""

    acks: int = ACKS_ALL
    """-1 for all in-sync replicas, 0 or 1; ``producer`` also takes ``"all"``."""
    enable_idempotence: bool = True
    """Kafka's ``enable.idempotence``."""
    linger_ms: float = 0
    """Time in milliseconds for which a batch waits for more records."""
    batch_records: int = 1000
    """Maximum number of records in a batch."""
    max_in_flight: int = 5
    """Maximum number of batches of a partition in flight."""
    retry_backoff_ms: int = RETRY_BACKOFF_MS
    """Time in milliseconds before a failed batch is sent again."""
    request_timeout_ms: int = 30000
    """Time in milliseconds for which a request waits for its answer."""
    delivery_timeout_ms: int = 120000
    """Time in milliseconds after which a batch is given up."""
    max_block_ms: int = 60000
    """Maximum time in milliseconds for which a record waits for its partition's metadata."""

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values that no producer can work with."""
        if isinstance(self.acks, bool) or self.acks not in (ACKS_ALL, 0, 1):
            refuse_setting(self, "acks", "-1 (all), 0 or 1")
        if not isinstance(self.enable_idempotence, bool):
            refuse_setting(self, "enable_idempotence", "True or False")
        check_numbers(self, _MINIMUMS)


@checks_arguments
def _check_record(value: object, key: object) -> None:
    """Raise ``UsageError`` unless value and key are bytes or None."""
    for part in (value, key):
        if part is not None and not isinstance(part, bytes):
            raise UsageError(f"value and key must be bytes or None, not {value!r} and {key!r}")


class SimulatedProducer(SimulatedClient):
    """Produces records to given partitions."""

    def __init__(
        self,
        runtime: AbstractRuntime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: ProducerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings.request_timeout_ms)
        self.settings: ProducerSettings = settings
        """Settings of the producer."""
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._identity: Identity = NO_IDENTITY
        self._is_requesting_producer_id = False
        self._queues_to_renumber: list[PartitionQueue] = []  # once there is an identity
        delivery_timeout_ms = settings.delivery_timeout_ms
        self._deadline_timer_age_ms = delivery_timeout_ms - settings.request_timeout_ms
        """Age up to which the request of a batch times out before the batch's delivery timeout."""
        self._sends_at_once = (
            not settings.linger_ms and delivery_timeout_ms > 0 and self._deadline_timer_age_ms >= 0
        )
        self._send: _Send = self._send_batch
        self._finish: Callable[[ProducerBatch, ErrorCode, int], None] = self._finish_batch
        if self.state_listener is not None:
            self._send, self._finish = self._send_recorded, self._finish_recorded
        self.acknowledged: int = 0
        """Number of records acknowledged."""
        self.failed: int = 0
        """Number of records given up."""
        self._reported_failed = -1  # the count last reported; -1 before the first report
        self.retries: int = 0
        """Number of times that a batch was put back to be sent again."""
        self.on_service_time: Callable[[TopicPartition, int, int], object] | None = None
        """Called with (partition, number of records, microseconds from send to answer) for each
        acknowledged batch; initially None."""
        self.on_renumbered: Callable[[TopicPartition, list[bytes | None]], object] | None = None
        """Called with (partition, values of a batch) when a batch that was sent is renumbered in a
        new epoch; initially None. If it was stored in the old epoch, it may be stored twice, as in
        Kafka."""

    @checks_arguments
    def produce(
        self,
        topic_partition: tuple[str, int],
        value: bytes | None,
        key: bytes | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Queue a record for (topic, partition), to be sent as soon as batching and the in-flight
        limit allow.

        ``callback(error, offset)`` is called with its outcome. Raises ``UsageError`` for a
        partition, a value or a key of another type.
        """
        queue = self._queues.get(topic_partition)
        if queue is None:
            queue = self._new_queue(topic_partition)
        where = queue.topic_partition
        if type(value) is not bytes or key is not None:
            _check_record(value, key)
        settings = self.settings
        now_ms = self.now_ms
        now = now_ms()
        if (
            not queue.batches
            and self._sends_at_once
            and queue.in_flight < settings.max_in_flight
            and queue.not_before_ms <= now
            and (leader := self.leaders.get(where)) is not None
            and queue.numbering_identity is self._identity
        ):  # nothing to wait for, so the batch bypasses the queue
            single_batch = ProducerBatch(now)
            single_batch.records.append((key, value, self.wall_ms(), callback))
            self._send(where, queue, single_batch, leader[0])
            return
        batch = queue.open_batch
        if batch is None:
            batch = queue.open_batch = ProducerBatch(now)
            queue.batches.append(batch)
            if self.state_listener is not None:
                self._record_invocation(queue, batch)
            if settings.linger_ms:
                self.call_later_ms(settings.linger_ms, functools.partial(self._drain, where, queue))
        records = batch.records
        records.append((key, value, self.wall_ms(), callback))
        if len(records) >= settings.batch_records:
            queue.open_batch = None
            self._drain(where, queue)
        elif not settings.linger_ms:
            self._drain(where, queue)

    def _new_queue(self, topic_partition: object) -> PartitionQueue:
        match topic_partition:
            case (str(topic), int(number)) if number >= 0:
                where = TopicPartition(topic, number)
            case _:
                raise UsageError(f"write a partition as ('orders', 0), not {topic_partition!r}")
        queue = self._queues[where] = PartitionQueue(where, self.settings.enable_idempotence)
        queue.is_known = where.partition < self.partitions.get(topic, 0)
        self.use_topic(topic)
        return queue

    @property
    def unfinished(self) -> int:
        """Number of batches queued or in flight."""
        return sum(len(queue.batches) + queue.in_flight for queue in self._queues.values())

    # -- sending -------------------------------------------------------------------------------

    def on_metadata(self) -> None:
        for queue in self._queues.values():
            if not queue.is_known:
                self._start_timeouts(queue)
            self._drain(queue.topic_partition, queue)

    def _start_timeouts(self, queue: PartitionQueue) -> None:
        """Start linger and delivery timeout when the partition becomes known: Kafka's ``send`` adds
        a record to a batch only then (``KafkaProducer.waitOnMetadata``)."""
        where = queue.topic_partition
        if where.partition >= self.partitions.get(where.topic, 0):
            return
        queue.is_known = True
        self._stop_expiry(queue)
        linger_ms = self.settings.linger_ms
        for batch in queue.batches:
            batch.created_at_ms = self.now_ms()
        if queue.batches and linger_ms:
            self.call_later_ms(linger_ms, functools.partial(self._drain, where, queue))

    def _deadline_ms(self, queue: PartitionQueue, batch: ProducerBatch) -> float:
        """Return the time at which a waiting batch is given up."""
        settings = self.settings
        timeout_ms = settings.delivery_timeout_ms if queue.is_known else settings.max_block_ms
        return batch.created_at_ms + timeout_ms

    def _expire_later(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Set a timer that gives up the first batch, as no answer will trigger that."""
        if queue.expiry is None:
            remaining_ms = self._deadline_ms(queue, batch) - self.now_ms()
            queue.expiry = self.call_later_ms(remaining_ms, functools.partial(self._expire, queue))

    def _expire(self, queue: PartitionQueue) -> None:
        queue.expiry = None
        self._drain(queue.topic_partition, queue)

    def _stop_expiry(self, queue: PartitionQueue) -> None:
        if queue.expiry is not None:
            queue.expiry.cancel()
            queue.expiry = None

    def _drain(self, topic_partition: TopicPartition, queue: PartitionQueue) -> None:
        batches = queue.batches
        settings = self.settings
        now_ms = self.now_ms
        while batches and queue.in_flight < settings.max_in_flight:
            now = now_ms()
            batch = batches[0]
            if now >= self._deadline_ms(queue, batch):
                batches.popleft()
                if queue.open_batch is batch:
                    queue.open_batch = None
                self._expire_batch(queue, batch)
                continue
            if queue.not_before_ms > now:
                if not queue.is_waking:
                    queue.is_waking = True
                    self.call_later_ms(
                        queue.not_before_ms - now,
                        functools.partial(self._wake, topic_partition, queue),
                    )
                return
            if (
                batch is queue.open_batch
                and now - batch.created_at_ms < settings.linger_ms
                and len(batch.records) < settings.batch_records
            ):
                return  # the linger timer sends it (``RecordAccumulator.batchReady``)
            leader = self.leaders.get(topic_partition)
            if leader is None:
                queue.lacks_leader = True
                self.refresh_metadata()
                self._expire_later(queue, batch)
                return
            if (
                batch.base_sequence >= 0 or queue.numbering_identity is not self._identity
            ) and not self._may_send(queue, batch):
                self._expire_later(queue, batch)
                return
            if queue.expiry is not None:
                self._stop_expiry(queue)
            batches.popleft()
            if queue.open_batch is batch:
                queue.open_batch = None
            self._send(topic_partition, queue, batch, leader[0])
            if now - batch.created_at_ms > self._deadline_timer_age_ms and not batch.has_deadline:
                batch.has_deadline = True
                remaining_ms = batch.created_at_ms + settings.delivery_timeout_ms - now
                self.call_later_ms(
                    remaining_ms, functools.partial(self._reach_deadline, queue, batch)
                )

    def _may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if self._identity is NO_IDENTITY and queue.is_idempotent:
            self._request_producer_id()
            return False
        return queue.may_send(batch, self._identity)

    def _reach_deadline(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Give up a batch at its delivery timeout, perhaps before its request has ended."""
        if self.stopped or batch.has_ended:
            return
        if batch not in queue.batches:
            self._expire_batch(queue, batch)
        self._drain(queue.topic_partition, queue)

    def _expire_batch(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """End a batch by its delivery timeout."""
        self._report_wait(queue, batch)
        queue.record_expired(batch)
        if queue.resolve_sequences():
            self._bump_epoch(queue)
        self._finish(batch, ErrorCode.REQUEST_TIMED_OUT, -1)

    def _report_wait(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Report to the recorder that a batch has waited until now for a broker."""
        if self.causes is not None:
            broker_id = queue.sent_to
            if broker_id is None:
                broker_id = self.metadata_requested_from
            peers = [] if broker_id is None else [broker_name(broker_id)]
            self.causes.record_timeout(peers, batch.operation, self.now_ms() - batch.created_at_ms)

    def _bump_epoch(self, queue: PartitionQueue) -> None:
        """Raise the producer epoch, and renumber the batches that this partition has sent
        (``TransactionManager.bumpIdempotentProducerEpoch``)."""
        if self._identity is not NO_IDENTITY:
            producer_id, epoch = self._identity
            can_bump = epoch < EPOCH_MAX
            self._identity = Identity(producer_id, epoch + 1) if can_bump else NO_IDENTITY
            self.report_state("producer", tuple(self._identity))
        if self._identity is not NO_IDENTITY:
            self._renumber(queue)
        elif queue not in self._queues_to_renumber:
            self._queues_to_renumber.append(queue)
            queue.numbering_identity = None
            self._request_producer_id()

    def _renumber(self, queue: PartitionQueue) -> None:
        queue.renumber(self._identity)
        if self.on_renumbered is not None:
            for batch in queue.tracked:
                self.on_renumbered(queue.topic_partition, [record[1] for record in batch.records])

    def _wake(self, topic_partition: TopicPartition, queue: PartitionQueue) -> None:
        queue.is_waking = False
        self._drain(topic_partition, queue)

    def _request_producer_id(self) -> None:
        if self._is_requesting_producer_id:
            return
        self._is_requesting_producer_id = True
        broker_id = self._known_brokers[self._next_broker % len(self._known_brokers)]
        pending = self.ask(
            broker_name(broker_id),
            InitProducerIdRequest(None, 60000),
            self.settings.request_timeout_ms,
        )
        pending.add_done_callback(self._producer_id_answered)

    def _producer_id_answered(self, pending: Pending[Any]) -> None:
        if self.stopped:
            return
        self._is_requesting_producer_id = False
        if pending.exception is not None or pending.result().error != ErrorCode.NONE:
            self._next_broker += 1
            self.call_later_ms(self.settings.retry_backoff_ms, self.on_metadata)
            return
        answer = pending.result()
        self._identity = Identity(answer.producer_id, answer.producer_epoch)
        self.report_state("producer", tuple(self._identity))
        waiting, self._queues_to_renumber = self._queues_to_renumber, []
        for queue in waiting:
            self._renumber(queue)
        self.on_metadata()

    def _record_invocation(self, queue: PartitionQueue, batch: ProducerBatch) -> int | None:
        batch.operation = self.record("client_invoke", "produce", queue.name)
        return batch.operation

    def _send_recorded(
        self,
        topic_partition: TopicPartition,
        queue: PartitionQueue,
        batch: ProducerBatch,
        leader: int,
    ) -> None:
        """Send a batch, as part of its operation in the recorded run."""
        runtime = self.runtime
        before = runtime.cause
        operation = batch.operation
        if batch.is_retried and (queue.lacks_leader or leader != queue.sent_to):
            self._report_wait(queue, batch)
        queue.sent_to, queue.lacks_leader = leader, False
        if operation is None:
            runtime.cause = self._record_invocation(queue, batch)
        elif batch.is_retried:
            text = f"{queue.name} again"
            runtime.cause = self.record("client_retry", "produce", text, operation)
        else:
            runtime.cause = operation
        self._send_batch(topic_partition, queue, batch, leader)
        runtime.cause = before

    def _send_batch(
        self,
        topic_partition: TopicPartition,
        queue: PartitionQueue,
        batch: ProducerBatch,
        leader: int,
    ) -> None:
        records = batch.records
        if batch.base_sequence < 0:
            batch.base_sequence = queue.next_sequence
            queue.next_sequence += len(records)
            if queue.is_idempotent and self.settings.acks:
                queue.tracked.append(batch)
        batch.is_renumbered = False
        settings = self.settings
        request = ProduceRequest(
            settings.acks,
            settings.request_timeout_ms,
            (ProducePartition(topic_partition, batch.encode(queue.identity)),),
        )
        now_us = self._now_us
        batch.sent_at_us = now_us()
        if settings.acks == 0:
            self.send(broker_name(leader), request)
            self._finish(batch, ErrorCode.NONE, -1)
            return
        queue.in_flight += 1
        self.port.ask_then(
            broker_name(leader),
            request,
            settings.request_timeout_ms,
            functools.partial(self._answered, topic_partition, queue, batch, leader),
        )

    def _answered(
        self,
        topic_partition: TopicPartition,
        queue: PartitionQueue,
        batch: ProducerBatch,
        leader: int,
        outcome: ProduceResponse | BaseException,
    ) -> None:
        if self.stopped:
            return
        queue.in_flight -= 1
        if isinstance(outcome, BaseException):
            error, offset = ErrorCode.NETWORK_EXCEPTION, -1
            if not isinstance(outcome, Disconnected):
                error = ErrorCode.REQUEST_TIMED_OUT
                self.avoid_broker(leader)
        else:
            answer = outcome.partitions[0]
            error, offset = answer.error, answer.base_offset
        if error is _NONE or error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            queue.record_acknowledged(batch)
            if not batch.has_ended:
                if self.on_service_time is not None:
                    elapsed_us = self._now_us() - batch.sent_at_us
                    self.on_service_time(topic_partition, len(batch.records), elapsed_us)
                self._finish(batch, _NONE, offset)
        elif batch.has_ended:
            pass  # the delivery timeout came first
        elif self._should_retry(error, queue, batch):
            self.retries += 1
            self.report_state("last_error", error.name)
            queue.not_before_ms = self.now_ms() + self.settings.retry_backoff_ms
            queue.put_back(batch)
            self.refresh_metadata()
        else:
            if queue.is_idempotent:
                queue.tracked.remove(batch)
                self._bump_epoch(queue)
            self._finish(batch, error, -1)
        if queue.numbering_identity is not self._identity and queue.resolve_sequences():
            self._bump_epoch(queue)
        if queue.batches:
            self._drain(topic_partition, queue)

    def _should_retry(self, error: ErrorCode, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Return whether to retry a batch (``Sender.canRetry``,
        ``TransactionManager.canRetry``)."""
        if self.now_ms() - batch.created_at_ms >= self.settings.delivery_timeout_ms:
            return False
        if queue.is_idempotent:
            if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                if queue.proves_gap(batch):
                    self._bump_epoch(queue)
                return True
            if error is ErrorCode.UNKNOWN_PRODUCER_ID:  # continue in a new epoch
                if not batch.is_renumbered:
                    self._bump_epoch(queue)
                return True
        return error.is_retriable

    def _finish_recorded(self, batch: ProducerBatch, error: ErrorCode, base_offset: int) -> None:
        if error:
            self.record("client_fail", "produce", error.name, batch.operation)
        else:
            text = None if base_offset < 0 else f"offset {base_offset}"
            self.record("client_ok", "produce", text, batch.operation)
        self._finish_batch(batch, error, base_offset)
        self.report_state("acknowledged", self.acknowledged)
        if self.failed != self._reported_failed:
            self.report_state("failed", self.failed)
            self._reported_failed = self.failed

    def _finish_batch(self, batch: ProducerBatch, error: ErrorCode, base_offset: int) -> None:
        batch.has_ended = True
        records = batch.records
        if error:
            self.failed += len(records)
        else:
            self.acknowledged += len(records)
        offset = base_offset
        for _, _, _, callback in records:
            if callback is not None:
                callback(error, offset)
            if offset >= 0:
                offset += 1
