"""A test rig of a transaction coordinator, whose log, brokers and clock the test controls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from types import SimpleNamespace
from typing import Any, cast

from fakekafka.coordinators.transactions.coordinator import TransactionCoordinator
from fakekafka.coordinators.transactions.metadata import TransactionMetadata
from fakekafka.coordinators.transactions.records import decode_key, decode_value
from fakekafka.protocol.awaiting import Task
from fakekafka.protocol.config import BrokerConfig
from fakekafka.protocol.data import InitProducerIdRequest, InitProducerIdResponse, ProduceRequest
from fakekafka.protocol.errors import ErrorCode
from fakekafka.protocol.internal_topics import TRANSACTIONS_TOPIC
from fakekafka.protocol.records.batch import RecordBatch, build_batch
from fakekafka.protocol.records.format import Record
from fakekafka.protocol.transactions import (
    EndTxnRequest,
    TransactionPartitions,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from fakekafka.protocol.values import TopicPartition
from fakekafka.protocol.versions import behaviour
from fakekafka.tests.support.batches import parse_batches
from fakekafka.tests.support.hosts import FakeClock, FakeHost
from fakekafka.tests.support.present import present

ORDERS = TopicPartition("orders", 0)
AUDIT = TopicPartition("audit", 1)
ID = "id"
TIMEOUT_MS = 60_000
Answered = Callable[[WriteTxnMarkersResponse | None], object]


class FakeLog:
    """Records the appends to a partition of the transaction log."""

    def __init__(self) -> None:
        self.stored: list[RecordBatch] = []
        self.settings = SimpleNamespace(max_message_bytes=1000)

    def batches(self) -> list[RecordBatch]:
        return self.stored


class TransactionRig:
    """A coordinator on broker 1, the log's leader; ``leaders`` are those of other partitions."""

    def __init__(self, version: str = "3.9", **config: Any) -> None:
        self.clock = FakeClock()
        self.host = FakeHost("broker-1", self.clock)
        self.log = FakeLog()
        log = TopicPartition(TRANSACTIONS_TOPIC, 0)
        self.leaders: dict[TopicPartition, int] = {ORDERS: 1, AUDIT: 2, log: 1}
        self.alive = [1, 2, 3]
        self.appends: list[tuple[ProduceRequest, Callable[[Any], object]]] = []
        self.holds_appends = False
        self.append_error = ErrorCode.NONE
        self.markers: list[tuple[int, WriteTxnMarkersRequest, Answered]] = []
        self.failures: list[BaseException] = []
        self.next_id = 99
        metadata_cache = SimpleNamespace(
            partition_count=lambda _topic: 1,
            partition_state=self._partition_state,
            is_alive=lambda broker_id: broker_id in self.alive,
        )
        produce = SimpleNamespace(append_records=self._append)
        replicas = SimpleNamespace(metadata_cache=metadata_cache, produce=produce)
        self.coordinator = TransactionCoordinator(
            self.host,
            BrokerConfig({"broker.id": 1, **config}, version),
            behaviour(version),
            cast(Any, replicas),
            self._next_producer_id,
            lambda broker, request, answered: self.markers.append((broker, request, answered)),
            self._start_task,
            started_ms=self.host.now_ms(),
        )

    def _partition_state(self, name: TopicPartition) -> Any:
        leader = self.leaders.get(name)
        return None if leader is None else SimpleNamespace(leader=leader)

    async def _next_producer_id(self) -> int:
        self.next_id += 1
        return self.next_id

    def _start_task(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        task = Task(coroutine)
        task.add_done_callback(
            lambda done: None if done.exception is None else self.failures.append(done.exception)
        )

    # -- the log -------------------------------------------------------------------------------

    def _append(
        self, request: ProduceRequest, _context: Any, done: Callable[[Any], object], origin: str
    ) -> None:
        assert (request.acks, origin) == (-1, "coordinator")
        self.appends.append((request, done))
        if not self.holds_appends:
            self.answer_append(self.append_error)

    def answer_append(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Respond to the oldest pending append."""
        request, done = self.appends.pop(0)
        entry = request.partitions[0]
        assert entry.topic_partition == (TRANSACTIONS_TOPIC, 0)
        if error is ErrorCode.NONE:
            self.log.stored += parse_batches(entry.records)
        done(SimpleNamespace(partitions=[SimpleNamespace(error=error)]))

    def written(self) -> list[str]:
        """Return the states in the log, each with its epoch, a tombstone as ``-``."""
        return ["-" if record.value is None else _shown(record) for record in self._records()]

    def _records(self) -> Iterable[Record]:
        return [record for batch in self.log.stored for record in batch.records()]

    def store(self, *records: tuple[bytes, bytes | None]) -> None:
        """Append records as a former coordinator wrote them."""
        batch = build_batch([Record(i, 0, k, v, ()) for i, (k, v) in enumerate(records)])
        self.log.stored += parse_batches(batch)

    # -- leadership ----------------------------------------------------------------------------

    def lead(self, epoch: int = 5, number: int = 0) -> None:
        """Become leader and load the log."""
        self.elect(epoch, number)
        self.clock.advance(0)

    def elect(self, epoch: int, number: int = 0) -> None:
        self.coordinator.leadership_changed([self.hosted(epoch, number)], [])

    def resign(self, epoch: int = 6, number: int = 0) -> None:
        self.coordinator.leadership_changed([], [self.hosted(epoch, number)])

    def hosted(self, epoch: int, number: int) -> Any:
        name = TopicPartition(TRANSACTIONS_TOPIC, number)
        return SimpleNamespace(topic_partition=name, leader_epoch=epoch, log=self.log)

    # -- requests ------------------------------------------------------------------------------

    def init(
        self,
        transactional_id: str | None = ID,
        timeout_ms: int = TIMEOUT_MS,
        producer_id: int = -1,
        epoch: int = -1,
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(transactional_id, timeout_ms, producer_id, epoch)
        return Task(self.coordinator.init_producer_id(request)).result()

    def add(
        self,
        *partitions: TopicPartition,
        producer_id: int = 100,
        epoch: int = 0,
        transactional_id: str = ID,
    ) -> ErrorCode:
        return self.begin_adding(
            *partitions, producer_id=producer_id, epoch=epoch, transactional_id=transactional_id
        ).result()

    def open_transaction(self) -> None:
        """Begin a transaction with two partitions."""
        self.init()
        assert self.add(ORDERS, AUDIT) is ErrorCode.NONE

    def begin_adding(
        self,
        *partitions: TopicPartition,
        producer_id: int = 100,
        epoch: int = 0,
        transactional_id: str = ID,
    ) -> Task[ErrorCode]:
        return Task(
            self.coordinator.add_partitions(
                transactional_id, producer_id, epoch, partitions or (ORDERS,)
            )
        )

    def end(
        self, is_commit: bool = True, producer_id: int = 100, epoch: int = 0, name: str = ID
    ) -> ErrorCode:
        return self.begin_ending(is_commit, producer_id, epoch, name).result()

    def begin_ending(
        self, is_commit: bool = True, producer_id: int = 100, epoch: int = 0, name: str = ID
    ) -> Task[ErrorCode]:
        request = EndTxnRequest(name, producer_id, epoch, is_commit)
        return Task(self.coordinator.end(request))

    def verify(
        self, *partitions: TopicPartition, producer_id: int = 100, epoch: int = 0, name: str = ID
    ) -> list[ErrorCode]:
        asked = TransactionPartitions(name, producer_id, epoch, partitions or (ORDERS,), True)
        return [error for _, error in self.coordinator.verify(asked).partitions]

    # -- markers -------------------------------------------------------------------------------

    def sent(self) -> list[tuple[int, WriteTxnMarkersRequest]]:
        """Return the markers in flight after running the sender once."""
        self.clock.advance(0)
        return [(broker, request) for broker, request, _ in self.markers]

    def answer_markers(self, errors: dict[TopicPartition, ErrorCode] | None = None) -> None:
        """Answer the oldest marker request with NONE except for the given partitions."""
        _, request, answered = self.markers.pop(0)
        answered(
            WriteTxnMarkersResponse(
                tuple(
                    (
                        marker.producer_id,
                        tuple(
                            (name, (errors or {}).get(name, ErrorCode.NONE))
                            for name in marker.partitions
                        ),
                    )
                    for marker in request.markers
                )
            )
        )

    def disconnect_markers(self) -> None:
        _, _, answered = self.markers.pop(0)
        answered(None)

    @property
    def metadata(self) -> TransactionMetadata:
        return present(self.coordinator.states.find(ID).metadata)

    @property
    def state(self) -> str:
        return self.metadata.state.title


def _shown(record: Record) -> str:
    name = present(decode_key(present(record.key)))
    metadata = decode_value(name, present(record.value))
    return f"{metadata.state.title} {metadata.producer_epoch}"
