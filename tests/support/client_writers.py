"""Producers for test_leader_kills, which write 0, 1, 2, ... to every partition."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from typing import Any

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

TOPIC = "orders"
PARTITIONS = 3
PATIENCE_S = 60
IN_FLIGHT_MAX = 20_000


class Writer(threading.Thread):
    """Writes 0, 1, 2, ... to every partition until stopped, and records acknowledgements."""

    def __init__(self, servers: str) -> None:
        super().__init__(name="writer")
        self.servers = servers
        self.sent = 0
        """Number of values sent to each partition."""
        self.acknowledged: list[list[tuple[int | None, int]]] = [[] for _ in range(PARTITIONS)]
        """(offset, value) of each acknowledged record by partition, in response order."""
        self.failures: list[str] = []
        self.ended_s: float | None = None
        self.stop_asked = threading.Event()

    def run(self) -> None:
        try:
            self.write()
        except Exception as error:
            self.failures.append(repr(error))
        finally:
            self.ended_s = time.monotonic()

    def has_reached(self, value: int) -> bool:
        """Return True once every partition acknowledged this value, or writing has ended."""
        if self.ended_s is not None:
            return True
        return all(answers and answers[-1][1] >= value for answers in self.acknowledged)

    def write(self) -> None:
        raise NotImplementedError


class ConfluentWriter(Writer):
    """librdkafka with idempotence and its default of up to five requests in flight."""

    def write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 0,
                "retry.backoff.ms": 10,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "error_cb": self._on_error,
                "log_level": 0,
            }
        )
        self.produce_all(producer)
        left = producer.flush(PATIENCE_S)
        if left:
            self.failures.append(f"{left} records are not answered")

    def produce_all(self, producer: Producer) -> None:
        while not self.stop_asked.is_set():
            for partition in range(PARTITIONS):
                producer.produce(
                    TOPIC, b"%d" % self.sent, partition=partition, on_delivery=self._on_delivery
                )
            self.sent += 1
            producer.poll(0.001)
            while len(producer) > IN_FLIGHT_MAX and not self.stop_asked.is_set():
                producer.poll(0.05)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(f"{message.value()!r}: {error}")
        else:
            self.acknowledged[message.partition()].append((message.offset(), int(message.value())))

    def _on_error(self, error: Any) -> None:
        if error.fatal():
            self.failures.append(f"fatal: {error}")


class ConfluentInStepWriter(ConfluentWriter):
    """librdkafka with one record in flight per partition, so that none can overtake another."""

    def produce_all(self, producer: Producer) -> None:
        values = [0] * PARTITIONS  # next value per partition
        while not self.stop_asked.is_set() or min(values) < self.sent:
            for partition, value in enumerate(values):
                is_its_turn = len(self.acknowledged[partition]) == value
                if is_its_turn and (value < self.sent or not self.stop_asked.is_set()):
                    producer.produce(
                        TOPIC, b"%d" % value, partition=partition, on_delivery=self._on_delivery
                    )
                    values[partition] += 1
            self.sent = max(values)
            producer.poll(0.01)
            if self.failures:
                return


class AiokafkaWriter(Writer):
    """aiokafka with idempotence: one batch in flight per partition."""

    def write(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=self.servers,
            acks="all",
            enable_idempotence=True,
            linger_ms=1,
            retry_backoff_ms=10,
        )
        await producer.start()
        waiting: set[asyncio.Future[Any]] = set()
        while not self.stop_asked.is_set():
            for partition in range(PARTITIONS):
                answer = await producer.send(TOPIC, b"%d" % self.sent, partition=partition)
                answer.add_done_callback(functools.partial(self._answered, partition, self.sent))
                answer.add_done_callback(waiting.discard)
                waiting.add(answer)
            self.sent += 1
            await asyncio.sleep(0.001)
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=PATIENCE_S)
            if late:
                self.failures.append(f"{len(late)} records are not answered")
        await producer.stop()

    def _answered(self, partition: int, value: int, answer: asyncio.Future[Any]) -> None:
        error = answer.exception()
        if error is not None:
            self.failures.append(f"{value}: {error!r}")
        else:
            self.acknowledged[partition].append((answer.result().offset, value))


WRITERS = {
    "confluent-kafka": ConfluentWriter,
    "confluent-kafka-in-step": ConfluentInStepWriter,
    "aiokafka": AiokafkaWriter,
}
