"""The clients of a scenario: open loop (a rate) or closed loop (a window)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ..actors.clients.producer import SimulatedProducer
from ..actors.node import Node
from ..actors.runtime.runtime import Runtime
from ..protocol.errors import ErrorCode
from ..protocol.host import name_as
from ..protocol.records.batch import RecordBatch
from ..protocol.values import TopicPartition
from ..testing.simulation import Simulation
from .spec import WorkloadSpec

if TYPE_CHECKING:
    from ..actors.clients.consumer import SimulatedConsumer

_DIGITS = 8
"""Number of digits of the record number that follows the prefix of a value."""


class Meter(Protocol):
    """Measures workloads."""

    def sent(self, workload: Workload, where: TopicPartition, value: bytes) -> None:
        """Note that a record for a partition has arrived at a producer."""

    def answered(
        self, workload: Workload, where: TopicPartition, arrived_us: int, error: ErrorCode
    ) -> None:
        """Note that a record which arrived at ``arrived_us`` was acknowledged or has failed."""

    def served(self, workload: Workload, records: int, elapsed_us: int) -> None:
        """Note that a batch was answered ``elapsed_us`` after it was last sent."""

    def read(self, workload: Workload, batch: RecordBatch, position: int) -> None:
        """Note that a consumer received a batch, of which it uses records from ``position`` on."""


class OpenLoop:
    """Calls ``send`` at a fixed interval, from ``start`` on.

    ``send`` returns the client that sent the record; the timer of the next arrival belongs to that
    client, so the load ends with it. An arrival never waits for an answer, so that coordinated
    omission cannot hide an outage.
    """

    def __init__(self, runtime: Runtime, interval_us: int, send: Callable[[int], Node]) -> None:
        self._runtime = runtime
        self._interval_us = interval_us
        self._send = send
        self.running: bool = False
        self.arrivals: int = 0

    def start(self) -> None:
        """Start the arrivals, the first of them now."""
        self.running = True
        self._arrive()

    def stop(self) -> None:
        """Stop the arrivals; records already sent are still answered."""
        self.running = False

    def _arrive(self) -> None:
        if self.running:
            number = self.arrivals
            self.arrivals += 1
            client = self._send(number)
            self._runtime.call_later(client, self._interval_us, self._arrive)


class ClosedLoop:
    """Calls ``send`` for each producer as often as its window allows, from ``start`` on.

    The sender reports each answer with ``answered``.
    """

    def __init__(
        self,
        runtime: Runtime,
        producers: Sequence[SimulatedProducer],
        in_flight: int,
        send: Callable[[SimulatedProducer], object],
    ) -> None:
        self._runtime = runtime
        self._producers = producers
        self._in_flight = in_flight
        self._send = send
        self.running: bool = False

    def start(self) -> None:
        """Let every producer fill its window."""
        self.running = True
        for producer in self._producers:
            for _ in range(self._in_flight):
                self._send(producer)

    def stop(self) -> None:
        """Send no more records; records already sent are still answered."""
        self.running = False

    def answered(self, producer: SimulatedProducer) -> None:
        """Send another record of a producer, one of whose records was answered."""
        if self.running:
            # Not from inside the callback, which would recurse if the cluster is unreachable.
            again = partial(self._send, producer)
            name_as(again, self.answered)
            self._runtime.call_later(producer, 0, again)


class Workload:
    """The clients of one ``WorkloadSpec``; ``meter`` measures every record."""

    def __init__(
        self,
        simulation: Simulation,
        spec: WorkloadSpec,
        partitions: int,
        meter: Meter | None = None,
    ) -> None:
        self._simulation = simulation
        self._runtime = simulation.runtime
        self.spec = spec
        numbers = spec.partitions if spec.partitions is not None else range(partitions)
        self._targets = [TopicPartition(spec.topic, number) for number in numbers]
        self.acknowledged: list[bytes] = []
        """Values that were acknowledged to their producer; with acks=0, values that it sent."""
        self.offsets: list[int] = []
        """Offsets of the values in ``acknowledged``; -1 if no broker returned one."""
        self.failed = 0
        self.sent: int = 0
        self.prefix: bytes = f"{spec.name}:".encode()
        """Prefix of every value that the workload sends."""
        self.producers: list[SimulatedProducer] = [
            simulation.producer(
                name,
                acks=spec.acks,
                enable_idempotence=spec.idempotent and spec.acks == -1,
                linger_ms=spec.linger_ms,
                **spec.settings,
            )
            for name in spec.producer_names
        ]
        self._loop = self._make_loop()
        self._meter = meter
        self.consumers: list[SimulatedConsumer] = [
            simulation.consumer(
                [(spec.topic, target.partition) for target in self._targets], name=name
            )
            for name in spec.consumer_names
        ]
        if meter is not None:
            self._measure(meter)

    def _measure(self, meter: Meter) -> None:
        for producer in self.producers:
            producer.on_service_time = lambda _, records, us: meter.served(self, records, us)
        for consumer in self.consumers:
            consumer.on_batch = lambda _, batch, position: meter.read(self, batch, position)

    def _make_loop(self) -> OpenLoop | ClosedLoop:
        spec = self.spec
        if spec.model == "open":
            interval_us = int(1_000_000 / spec.rate_per_s)
            return OpenLoop(self._runtime, interval_us, self._send_round_robin)
        return ClosedLoop(self._runtime, self.producers, spec.in_flight, self._send)

    def start(self) -> None:
        """Start the load: timed arrivals (open), or a window of unanswered records (closed)."""
        if self.producers:
            self._loop.start()

    def stop(self) -> None:
        """Send no more records; records already sent are still answered."""
        self._loop.stop()

    @property
    def unfinished(self) -> int:
        return sum(producer.unfinished for producer in self.producers)

    @property
    def retries(self) -> int:
        return sum(producer.retries for producer in self.producers)

    def _send_round_robin(self, number: int) -> SimulatedProducer:
        producer = self.producers[number % len(self.producers)]
        self._send(producer)
        return producer

    def _send(self, producer: SimulatedProducer) -> None:
        low, high = self.spec.record_bytes
        size = low if low == high else self._runtime.rng.randint(low, high)
        value = (self.prefix + b"%0*d" % (_DIGITS, self.sent)).ljust(size, b".")
        where = self._targets[self.sent % len(self._targets)]
        self.sent += 1
        meter = self._meter
        arrived_us = self._runtime.now_us()
        if meter is not None:
            meter.sent(self, where, value)

        def answered(error: ErrorCode, offset: int) -> None:
            if error == ErrorCode.NONE:
                self.acknowledged.append(value)
                self.offsets.append(offset)
            else:
                self.failed += 1
            if meter is not None:
                meter.answered(self, where, arrived_us, error)
            if isinstance(self._loop, ClosedLoop):
                self._loop.answered(producer)

        producer.produce(where, value, callback=answered)

    def partition_of(self, value: bytes) -> int:
        """Return the number of the partition to which a value was sent."""
        number = int(value[len(self.prefix) : len(self.prefix) + _DIGITS])
        return self._targets[number % len(self._targets)].partition
