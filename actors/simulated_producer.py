"""A modelled producer: batching, acks, retries and idempotence as Kafka's client has them.

One batch per request. A batch that failed with a retriable error goes back to the head of its
partition's queue with its sequence number, after ``retry.backoff.ms``; with idempotence the broker
refuses what overtook it (OUT_OF_ORDER_SEQUENCE_NUMBER) and those follow in order.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..protocol.awaiting import Disconnected, Pending
from ..protocol.data import (
    ACKS_ALL,
    InitProducerIdRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from ..protocol.errors import ErrorCode, UsageError
from ..protocol.record_batch import Record, build_batch
from ..protocol.small_batch import build_batch_of_one, build_batch_of_small
from ..protocol.values import TopicPartition
from .channels import broker_name
from .simulated_client import RETRY_BACKOFF_MS, SimulatedClient, check_numbers, refuse_setting

if TYPE_CHECKING:
    from .runtime import Process, Runtime

_NONE = ErrorCode.NONE

_LEAST = {
    "linger_ms": 0,
    "batch_records": 1,
    "max_in_flight": 1,
    "retry_backoff_ms": 0,
    "request_timeout_ms": 0,
    "delivery_timeout_ms": 0,
}
"""The least value of each setting."""


@dataclass(frozen=True)
class ProducerSettings:
    """Kafka's producer settings, with the defaults of the 3.x clients (data_plane 16.2)."""

    acks: int = ACKS_ALL
    enable_idempotence: bool = True
    linger_ms: float = 0
    batch_records: int = 1000
    """Records a batch holds at most."""
    max_in_flight: int = 5
    retry_backoff_ms: int = RETRY_BACKOFF_MS
    request_timeout_ms: int = 30000
    delivery_timeout_ms: int = 120000

    def __post_init__(self) -> None:
        """Raise ``UsageError`` for values no producer can work with."""
        if isinstance(self.acks, bool) or self.acks not in (ACKS_ALL, 0, 1):
            refuse_setting(self, "acks", "-1 (all), 0 or 1")
        if not isinstance(self.enable_idempotence, bool):
            refuse_setting(self, "enable_idempotence", "True or False")
        check_numbers(self, _LEAST)


Callback = Callable[[ErrorCode, int], object]
"""Called once per record with (error, offset); the offset is -1 unless it is known."""


def _check_record(value: object, key: object) -> None:
    """Raises ``UsageError`` unless a record can be made of them."""
    for part in (value, key):
        if part is not None and not isinstance(part, bytes):
            raise UsageError(f"value and key must be bytes or None, not {value!r} and {key!r}")


class _Batch:
    __slots__ = ("base_sequence", "created_at_ms", "records", "sent_at_us")

    def __init__(self, created_at_ms: int) -> None:
        self.records: list[tuple[bytes | None, bytes | None, int, Callback | None]] = []
        self.base_sequence = -1  # given at the first send, kept over retries
        self.created_at_ms = created_at_ms
        self.sent_at_us = 0


class _Queue:
    """What waits for one partition."""

    __slots__ = (
        "batches",
        "in_flight",
        "is_waking",
        "next_sequence",
        "not_before_ms",
        "open_batch",
        "topic_partition",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.batches: deque[_Batch] = deque()
        self.open_batch: _Batch | None = None  # last of ``batches`` while it takes records
        self.in_flight = 0
        self.next_sequence = 0
        self.not_before_ms = 0
        self.is_waking = False  # a call at ``not_before_ms`` is on its way


class SimulatedProducer(SimulatedClient):
    """Produces records to the partitions it is told to."""

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        process: Process,
        bootstrap: tuple[int, ...],
        settings: ProducerSettings,
    ) -> None:
        super().__init__(runtime, name, process, bootstrap, settings.request_timeout_ms)
        self.settings = settings
        self._queues: dict[tuple[str, int], _Queue] = {}
        self._producer_id = -1
        self._producer_epoch = -1
        self._asking_id = False
        self.acknowledged = 0
        self.failed = 0
        self.retries = 0
        self.on_service_time: Callable[[TopicPartition, int, int], object] | None = None
        """Called with (partition, records, microseconds from send to answer)."""

    def produce(
        self,
        topic_partition: tuple[str, int],
        value: bytes | None,
        key: bytes | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Queue a record for (topic, partition); it is sent as soon as batching and the in-flight
        limit allow.

        Raises ``UsageError`` for a partition, a value or a key of another type.
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
            and not settings.linger_ms
            and queue.in_flight < settings.max_in_flight
            and queue.not_before_ms <= now
            and settings.delivery_timeout_ms > 0
            and (leader := self.leaders.get(where)) is not None
            and (self._producer_id >= 0 or not settings.enable_idempotence)
        ):  # nothing to wait for: without the queue
            alone = _Batch(now)
            alone.records.append((key, value, now, callback))
            self._send(where, queue, alone, leader[0])
            return
        batch = queue.open_batch
        if batch is None:
            batch = queue.open_batch = _Batch(now)
            queue.batches.append(batch)
            if settings.linger_ms:
                self.call_later_ms(settings.linger_ms, lambda: self._drain(where, queue))
        records = batch.records
        records.append((key, value, now, callback))
        if len(records) >= settings.batch_records:
            queue.open_batch = None
            self._drain(where, queue)
        elif not settings.linger_ms:
            self._drain(where, queue)

    def _new_queue(self, topic_partition: tuple[str, int]) -> _Queue:
        match topic_partition:
            case (str(topic), int(number)) if number >= 0:
                where = TopicPartition(topic, number)
            case _:
                raise UsageError(f"write a partition as ('orders', 0), not {topic_partition!r}")
        queue = self._queues[where] = _Queue(where)
        self.use_topic(topic)
        return queue

    @property
    def unfinished(self) -> int:
        """Batches queued or in flight."""
        return sum(len(queue.batches) + queue.in_flight for queue in self._queues.values())

    # -- sending -------------------------------------------------------------------------------

    def on_metadata(self) -> None:
        for queue in self._queues.values():
            self._drain(queue.topic_partition, queue)

    def _drain(self, topic_partition: TopicPartition, queue: _Queue) -> None:
        batches = queue.batches
        settings = self.settings
        now_ms = self.now_ms
        while batches and queue.in_flight < settings.max_in_flight:
            now = now_ms()
            batch = batches[0]
            if now - batch.created_at_ms >= settings.delivery_timeout_ms:
                batches.popleft()
                if queue.open_batch is batch:
                    queue.open_batch = None
                self._finish(batch, ErrorCode.REQUEST_TIMED_OUT, -1)
                continue
            if queue.not_before_ms > now:
                if not queue.is_waking:
                    queue.is_waking = True
                    self.call_later_ms(
                        queue.not_before_ms - now, lambda: self._wake(topic_partition, queue)
                    )
                return
            leader = self.leaders.get(topic_partition)
            if leader is None:
                self.refresh_metadata()
                return
            if self._producer_id < 0 and settings.enable_idempotence:
                self._ask_producer_id()
                return
            batches.popleft()
            if queue.open_batch is batch:
                queue.open_batch = None
            self._send(topic_partition, queue, batch, leader[0])

    def _wake(self, topic_partition: TopicPartition, queue: _Queue) -> None:
        queue.is_waking = False
        self._drain(topic_partition, queue)

    def _ask_producer_id(self) -> None:
        if self._asking_id:
            return
        self._asking_id = True
        broker_id = self._known[self._next_broker % len(self._known)]
        pending = self.ask(
            broker_name(broker_id),
            InitProducerIdRequest(None, 60000),
            self.settings.request_timeout_ms,
        )
        pending.add_done_callback(self._producer_id_answered)

    def _producer_id_answered(self, pending: Pending[Any]) -> None:
        if self.stopped:
            return
        self._asking_id = False
        if pending.exception is not None or pending.result().error != ErrorCode.NONE:
            self._next_broker += 1
            self.call_later_ms(self.settings.retry_backoff_ms, self.on_metadata)
            return
        self._producer_id = pending.result().producer_id
        self._producer_epoch = pending.result().producer_epoch
        self.on_metadata()

    def _send(
        self, topic_partition: TopicPartition, queue: _Queue, batch: _Batch, leader: int
    ) -> None:
        records = batch.records
        if batch.base_sequence < 0:
            batch.base_sequence = queue.next_sequence
            queue.next_sequence += len(records)
        settings = self.settings
        request = ProduceRequest(
            settings.acks,
            settings.request_timeout_ms,
            (ProducePartition(topic_partition, self._encode(batch)),),
        )
        now_us = self._now_us
        batch.sent_at_us = now_us()
        if settings.acks == 0:
            self.send(broker_name(leader), request)
            self._finish(batch, ErrorCode.NONE, -1)
            return
        queue.in_flight += 1
        self.peer.ask_then(
            broker_name(leader),
            request,
            settings.request_timeout_ms,
            functools.partial(self._answered, topic_partition, queue, batch),
        )

    def _encode(self, batch: _Batch) -> bytes:
        records = batch.records
        # Without idempotence these were never asked for and are -1.
        producer_id, producer_epoch = self._producer_id, self._producer_epoch
        base_sequence = batch.base_sequence if producer_id >= 0 else -1
        if len(records) == 1:
            key, value, timestamp, _ = records[0]
            if key is None and value is not None:
                return build_batch_of_one(
                    value, timestamp, producer_id, producer_epoch, base_sequence
                )
        else:
            small = build_batch_of_small(records, producer_id, producer_epoch, base_sequence)
            if small is not None:
                return small
        encoded = [
            Record(index, timestamp, key, value, ())
            for index, (key, value, timestamp, _) in enumerate(records)
        ]
        return build_batch(encoded, 0, -1, producer_id, producer_epoch, base_sequence)

    def _answered(
        self,
        topic_partition: TopicPartition,
        queue: _Queue,
        batch: _Batch,
        outcome: ProduceResponse | BaseException,
    ) -> None:
        if self.stopped:
            return
        queue.in_flight -= 1
        if isinstance(outcome, BaseException):
            error, offset = ErrorCode.NETWORK_EXCEPTION, -1
            if not isinstance(outcome, Disconnected):
                error = ErrorCode.REQUEST_TIMED_OUT
        else:
            answer = outcome.partitions[0]
            error, offset = answer.error, answer.base_offset
        if error is _NONE or error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            if self.on_service_time is not None:
                elapsed_us = self._now_us() - batch.sent_at_us
                self.on_service_time(topic_partition, len(batch.records), elapsed_us)
            self._finish(batch, _NONE, offset)
        elif self._should_retry(error, batch):
            self.retries += 1
            self._requeue(queue, batch)
            self.refresh_metadata()
        else:
            self._finish(batch, error, -1)
        if queue.batches:
            self._drain(topic_partition, queue)

    def _should_retry(self, error: ErrorCode, batch: _Batch) -> bool:
        if self.now_ms() - batch.created_at_ms >= self.settings.delivery_timeout_ms:
            return False
        if error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return self.settings.enable_idempotence  # what comes before it is being retried
        return error.is_retriable

    def _requeue(self, queue: _Queue, batch: _Batch) -> None:
        queue.not_before_ms = self.now_ms() + self.settings.retry_backoff_ms
        position = 0
        for waiting in queue.batches:
            if waiting.base_sequence < 0 or waiting.base_sequence > batch.base_sequence:
                break
            position += 1
        queue.batches.insert(position, batch)

    def _finish(self, batch: _Batch, error: ErrorCode, base_offset: int) -> None:
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
