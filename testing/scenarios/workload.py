"""The clients of a scenario: open loop (a rate) or closed loop (a window)."""

from __future__ import annotations

from typing import Any

from ...protocol.errors import ErrorCode
from ...protocol.values import TopicPartition
from ..simulation import Simulation
from .spec import WorkloadSpec


class Workload:
    """The clients of one ``WorkloadSpec``."""

    def __init__(self, simulation: Simulation, spec: WorkloadSpec, partitions: int) -> None:
        self._simulation = simulation
        self._runtime = simulation.runtime
        self.spec = spec
        numbers = spec.partitions if spec.partitions is not None else range(partitions)
        self._targets = [TopicPartition(spec.topic, number) for number in numbers]
        self.acknowledged: list[bytes] = []
        self.failed = 0
        self.sent = 0
        self.running = False
        self.prefix = f"{spec.name}:".encode()
        """Of every value it sends."""
        self.producers = [
            simulation.producer(
                name,
                acks=spec.acks,
                enable_idempotence=spec.idempotent and spec.acks == -1,
                linger_ms=spec.linger_ms,
            )
            for name in spec.producer_names
        ]
        for name in spec.consumer_names:
            simulation.consumer(
                [(spec.topic, target.partition) for target in self._targets], name=name
            )

    def start(self) -> None:
        """Begin: arrivals on a clock (open), or a window of unanswered records (closed)."""
        self.running = True
        if not self.producers:
            return
        if self.spec.model == "open":
            self._arrive()
        else:
            for producer in self.producers:
                for _ in range(self.spec.in_flight):
                    self._send(producer)

    def stop(self) -> None:
        self.running = False

    @property
    def unfinished(self) -> int:
        return sum(producer.unfinished for producer in self.producers)

    @property
    def retries(self) -> int:
        return sum(producer.retries for producer in self.producers)

    def _arrive(self) -> None:
        if self.running:
            producer = self.producers[self.sent % len(self.producers)]
            self._send(producer)
            interval_us = int(1_000_000 / self.spec.rate_per_s)
            self._runtime.call_later(producer, interval_us, self._arrive)

    def _send(self, producer: Any) -> None:
        low, high = self.spec.record_bytes
        size = low if low == high else self._runtime.rng.randint(low, high)
        value = (self.prefix + b"%08d" % self.sent).ljust(size, b".")
        where = self._targets[self.sent % len(self._targets)]
        self.sent += 1

        def answered(error: ErrorCode, _offset: int) -> None:
            if error == ErrorCode.NONE:
                self.acknowledged.append(value)
            else:
                self.failed += 1
            if self.running and self.spec.model == "closed":
                # Not from inside the answer: an unreachable cluster would recurse.
                self._runtime.call_later(producer, 0, lambda: self._send(producer))

        producer.produce(where, value, callback=answered)
