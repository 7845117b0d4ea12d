"""Surroundings of a controller under test: fake brokers, channels and a mailbox."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fakekafka.protocol.awaiting import Pending
from fakekafka.protocol.control import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.values import BrokerInfo, TopicPartition
from fakekafka.replication.partition.metadata_cache import MetadataCache
from fakekafka.statemachines.controller.histogram import Histogram
from fakekafka.statemachines.controller.queue import QueuedEvent
from fakekafka.tests.support.hosts import FakeHost


class Surroundings(Protocol):
    """The parts of a cluster that channels use."""

    host: FakeHost
    brokers: dict[int, FakeBroker]
    held: set[int]
    sent: list[tuple[int, Any]]


class OwnMailbox:
    """Delivers a controller's events at once."""

    def post(self, queued: QueuedEvent) -> bool:
        return True

    def deliver(self, queued: QueuedEvent) -> None:
        queued.take()

    def withdraw(self, queued: QueuedEvent) -> None:
        """Do nothing, as no run is recorded."""


class FakeBroker:
    """Acknowledges control requests and keeps the state that a broker would derive from them."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.roles: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
        self.metadata: dict[TopicPartition, UpdateMetadataPartitionState] = {}
        self.live_brokers: tuple[int, ...] = ()
        self.cache = MetadataCache(broker_id)
        self.waiting: list[tuple[Pending[bool], Callable[[], object]]] = []
        self.failed: set[TopicPartition] = set()
        """Partitions whose log directory failed."""
        self.refuses_deletion: set[TopicPartition] = set()

    def handle(self, request: Any) -> Any:
        if isinstance(request, LeaderAndIsrRequest):
            return LeaderAndIsrResponse(
                ErrorCode.NONE,
                tuple((s.topic_partition, self._become(s)) for s in request.partition_states),
            )
        if isinstance(request, UpdateMetadataRequest):
            self.live_brokers = tuple(broker.id for broker in request.live_brokers)
            self.cache.update(request)
            for state in request.partition_states:
                if state.leader == -2:
                    self.metadata.pop(state.topic_partition, None)
                else:
                    self.metadata[state.topic_partition] = state
            for pending, predicate in self.waiting:
                if predicate():
                    pending.set_result(True)
            return UpdateMetadataResponse(ErrorCode.NONE)
        assert isinstance(request, StopReplicaRequest)
        answers = []
        for stopped in request.partition_states:
            tp = stopped.topic_partition
            error = ErrorCode.NONE
            if stopped.delete_partition and tp in self.refuses_deletion:
                error = ErrorCode.KAFKA_STORAGE_ERROR
            elif stopped.delete_partition:
                self.roles.pop(tp, None)
            answers.append((tp, error))
        return StopReplicaResponse(ErrorCode.NONE, tuple(answers))

    def _become(self, state: LeaderAndIsrPartitionState) -> ErrorCode:
        tp = state.topic_partition
        if tp in self.failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        known = self.roles.get(tp)
        if known is not None and known.leader_epoch >= state.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.roles[tp] = state
        return ErrorCode.NONE


class RecordingChannels:
    """A FIFO queue per broker; every request is recorded and, unless held, answered."""

    def __init__(self, cluster: Surroundings) -> None:
        self._cluster = cluster
        self._queues: dict[int, deque[tuple[Any, Callable[[Any], object] | None]]] = {}
        self.log: list[str] = []

    def startup(self, brokers: Iterable[BrokerInfo]) -> None:
        for broker in brokers:
            self.add_broker(broker)

    def shutdown(self) -> None:
        self._queues.clear()

    def add_broker(self, broker: BrokerInfo) -> None:
        self._queues.setdefault(broker.id, deque())
        self.log.append(f"add {broker.id}")

    def remove_broker(self, broker_id: int) -> None:
        self._queues.pop(broker_id, None)
        self.log.append(f"remove {broker_id}")

    def queue_size(self, broker_id: int) -> int:
        return len(self._queues.get(broker_id, ()))

    def queue_times(self, _broker_id: int) -> Histogram:
        return Histogram()

    @property
    def total_queue_size(self) -> int:
        return sum(map(len, self._queues.values()))

    def send_request(
        self, broker_id: int, request: Any, callback: Callable[[Any], object] | None
    ) -> None:
        queue = self._queues.get(broker_id)
        if queue is None:
            return
        queue.append((request, callback))
        self._cluster.sent.append((broker_id, request))
        self._cluster.host.call_later_ms(0, lambda: self._deliver(broker_id, queue))

    def _deliver(
        self, broker_id: int, queue: deque[tuple[Any, Callable[[Any], object] | None]]
    ) -> None:
        if self._queues.get(broker_id) is not queue or broker_id in self._cluster.held:
            return
        broker = self._cluster.brokers.get(broker_id)
        if broker is None:
            return
        while queue:
            request, callback = queue.popleft()
            response = broker.handle(request)
            if callback is not None:
                callback(response)

    def release(self, broker_id: int) -> None:
        queue = self._queues.get(broker_id)
        if queue is not None:
            self._deliver(broker_id, queue)
