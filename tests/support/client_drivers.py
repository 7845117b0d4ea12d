"""The same steps with three client libraries: produce, wait for acknowledgements, read back."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

KAFKA_PYTHON_WARNS = [
    # kafka-python leaves sockets of broken connections to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
"""Marks for tests with kafka-python."""


class ConfluentDriver:
    """Driver of confluent-kafka (librdkafka) with idempotence."""

    name = "confluent-kafka"

    def __init__(self, servers: str, topic: str, partitions: int) -> None:
        self.servers, self.topic, self.partitions = servers, topic, partitions
        self.acknowledged: list[bytes] = []
        self.failed: list[Any] = []

    def produce(self, values: list[bytes], go_on: threading.Event) -> None:
        from confluent_kafka import Producer

        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
            }
        )
        half = len(values) // 2
        for number, value in enumerate(values):
            if number == half:
                producer.flush()
                go_on.wait(30)
            producer.produce(
                self.topic, value, partition=number % self.partitions, on_delivery=self._delivered
            )
            producer.poll(0)
        producer.flush()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(message.value())
        else:
            self.failed.append(error)

    def read(self, count: int, timeout_s: float = 30) -> list[bytes | None]:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic, n, 0) for n in range(self.partitions)])
        read: list[bytes | None] = []
        ended: set[int | None] = set()
        deadline = time.monotonic() + timeout_s
        while len(ended) < self.partitions and time.monotonic() < deadline:
            for message in consumer.consume(5000, 0.2):
                if message.error() is None:
                    read.append(message.value())
                else:
                    ended.add(message.partition())
        consumer.close()
        return read


class KafkaPythonDriver(ConfluentDriver):
    """Driver of kafka-python."""

    name = "kafka-python"

    def produce(self, values: list[bytes], go_on: threading.Event) -> None:
        from kafka import KafkaProducer

        producer = KafkaProducer(bootstrap_servers=self.servers.split(","), acks="all", linger_ms=2)
        futures = []
        half = len(values) // 2
        for number, value in enumerate(values):
            if number == half:
                producer.flush()
                go_on.wait(30)
            partition = number % self.partitions
            futures.append((value, producer.send(self.topic, value, partition=partition)))
        producer.flush()
        for value, future in futures:
            try:
                future.get(timeout=30)
                self.acknowledged.append(value)
            except Exception as error:
                self.failed.append(error)
        producer.close()

    def read(self, count: int, timeout_s: float = 30) -> list[bytes | None]:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(
            bootstrap_servers=self.servers.split(","),
            group_id=None,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        parts = [TopicPartition(self.topic, n) for n in range(self.partitions)]
        consumer.assign(parts)
        ends = consumer.end_offsets(parts)
        read: list[bytes | None] = []
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=200, max_records=5000).values():
                read.extend(record.value for record in records)
            if all(consumer.position(part) >= ends[part] for part in parts):
                break
        consumer.close()
        return read


class AiokafkaDriver(ConfluentDriver):
    """Driver of aiokafka."""

    name = "aiokafka"

    def produce(self, values: list[bytes], go_on: threading.Event) -> None:
        asyncio.run(self._produce(values, go_on))

    async def _produce(self, values: list[bytes], go_on: threading.Event) -> None:
        from aiokafka import AIOKafkaProducer

        producer = AIOKafkaProducer(
            bootstrap_servers=self.servers, acks="all", enable_idempotence=True, linger_ms=2
        )
        await producer.start()
        half = len(values) // 2
        futures = []
        for number, value in enumerate(values):
            if number == half:
                await producer.flush()
                await asyncio.to_thread(go_on.wait, 30)
            partition = number % self.partitions
            future = await producer.send(self.topic, value, partition=partition)
            futures.append((value, future))
        await producer.flush()
        for value, future in futures:
            try:
                await asyncio.wait_for(future, 30)
                self.acknowledged.append(value)
            except Exception as error:
                self.failed.append(error)
        await producer.stop()

    def read(self, count: int, timeout_s: float = 30) -> list[bytes | None]:
        return asyncio.run(self._read(timeout_s))

    async def _read(self, timeout_s: float) -> list[bytes | None]:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.structs import TopicPartition

        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.servers, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        parts = [TopicPartition(self.topic, n) for n in range(self.partitions)]
        consumer.assign(parts)
        ends = await consumer.end_offsets(parts)
        read: list[bytes | None] = []
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            batches = await consumer.getmany(timeout_ms=200, max_records=5000)
            for records in batches.values():
                read.extend(record.value for record in records)
            positions = [await consumer.position(part) for part in parts]
            if all(at >= ends[part] for at, part in zip(positions, parts, strict=True)):
                break
        await consumer.stop()
        return read


DRIVERS = {driver.name: driver for driver in (ConfluentDriver, KafkaPythonDriver, AiokafkaDriver)}
